"""What a branch's newest versions brought, told once: change points that were not there when it was looked before."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from dnsrig.comparison.history import Change, History, Series, of_one_metric
from dnsrig.comparison.summary import compare_two
from dnsrig.runs.run import Run

Key = tuple[str, str, str, str, str]
"""Of a change: experiment, metric, series, the first version with it, and its direction."""


@dataclass(frozen=True)
class News:
    """A change that was not told yet."""

    series: Series
    change: Change
    key: Key

    @property
    def is_regression(self) -> bool:
        return self.change.kind == "worse"


def news(history: History, told: Collection[Key]) -> list[News]:
    """The changes of ``history`` but those in ``told``, regressions first.

    A change is the same as one that was told where it has the same direction and begins at the same version. More
    trials may move it by a version: then it is told again.
    """
    found = [
        News(series, change, _key(history, series, change)) for series in history.series for change in series.changes
    ]
    return sorted((one for one in found if one.key not in told), key=lambda one: not one.is_regression)


def shows_again(one: News, run: Run) -> bool:
    """Whether ``run``, in which both versions were measured, tells the same apart from chance, in the same direction.

    They are compared as the run's report compares them: round by round where it has enough of them, so that drift
    between rounds hides nothing. Never below five repeats.
    """
    found = of_one_metric(run, one.series.metric.name)
    same = next((series for series in found if series.label == one.series.label), None)
    variants = {point.version.id: point.trials[0].record.spec.variant for point in (same.points if same else ())}
    before, after = (variants.get(point.version.id) for point in (one.change.last, one.change.first))
    if before is None or after is None:
        return False
    compared = compare_two(run, after, before, one.series.metric)
    return replace(compared, p_corrected=compared.p).change == one.change.kind


def _key(history: History, series: Series, change: Change) -> Key:
    version = change.first.version
    return (history.experiment, series.metric.name, series.label, version.commit or "/".join(version.id), change.kind)
