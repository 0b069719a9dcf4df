"""The history of a metric over the versions of a server: its trials from any number of runs, version by version,
between which versions it changed, and which changes are new since the last look.

A series is a kind of server under one set of the other parameters. A series contains only trials that were asked to do
the same on the same machine; a run that differs otherwise is refused, with the name of the difference.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from dnsrig.comparison import run_differences, versions
from dnsrig.comparison.compare import metric_name
from dnsrig.comparison.run_differences import Pair
from dnsrig.comparison.summary import compare_two, describe, main_metric, samples_of
from dnsrig.comparison.versions import Version
from dnsrig.errors import DnsrigError
from dnsrig.metrics import Metric
from dnsrig.rundir import Manifest, Outcome, Scalar, TrialSpec, Variant
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.stats import samples
from dnsrig.stats.change_points import change_points
from dnsrig.stats.samples import Sample, Samples
from dnsrig.stats.statistics import ALPHA, FEWEST_REPEATS, Comparison

MOST_DIFFERENCES = 5
"""Most differences that are shown of a run that does not belong to the history."""

Order = Callable[[Sequence[Version]], list[Version]]


@dataclass(frozen=True)
class Value:
    """What one trial measured."""

    run: Run
    trial: Trial
    sample: Sample


@dataclass(frozen=True)
class Point:
    """The trials of a version."""

    version: Version
    label: str
    trials: list[Trial]
    values: list[Value]
    """The values of the trials that have one."""

    @property
    def outcomes(self) -> Counter[Outcome]:
        return Counter(trial.record.outcome for trial in self.trials)

    @property
    def samples(self) -> Samples:
        return Samples(value.sample for value in self.values)

    @property
    def counts(self) -> bool:
        """Whether change points are looked for in it: where servers failed, or trials at their limit say nothing of
        the metric, those with a figure are a biased choice."""
        valued = {id(value.trial) for value in self.values}
        lost = [t for t in self.trials if t.record.outcome in ("timeout", "server-failed") and id(t) not in valued]
        return bool(self.values) and not lost


@dataclass(frozen=True)
class Change:
    """What changed between two versions: all trials since the change before, against all until the next."""

    before: list[Point]
    after: list[Point]
    p: float
    """The p of the permutation test (`change_points`)."""
    comparison: Comparison

    @property
    def last(self) -> Point:
        """The last version before it."""
        return self.before[-1]

    @property
    def first(self) -> Point:
        """The first version with it."""
        return self.after[0]

    @property
    def censored(self) -> bool:
        """Whether some of the trials are only known to have reached a limit: figures count them with it."""
        return any(point.samples.censored for point in (*self.before, *self.after))

    @property
    def apart(self) -> bool:
        """Whether no run has trials of both versions: what differed between the runs looks like the change."""
        return {v.run.manifest.run for v in self.last.values}.isdisjoint(v.run.manifest.run for v in self.first.values)

    @property
    def kind(self) -> str:
        """``better``, ``worse``, or ``different``: the spread changed rather than the median, or neither is better."""
        interval, percent = self.comparison.interval, self.comparison.percent
        if interval is None or percent is None or interval.low <= 100 <= interval.high:
            return "different"
        if self.comparison.better == "neither":
            return "different"
        return "better" if (percent < 100) == (self.comparison.better == "lower") else "worse"


@dataclass(frozen=True)
class Series:
    """The versions of one kind of server under the same parameters, in their order."""

    metric: Metric
    kind: str
    parameters: dict[str, Scalar]
    """The values on the matrix without the server."""
    points: list[Point]
    changes: list[Change]

    @property
    def label(self) -> str:
        return " ".join([self.kind, *(f"{name}={value}" for name, value in self.parameters.items())])


@dataclass(frozen=True)
class History:
    experiment: str
    title: str
    runs: list[Run]
    series: list[Series]
    """By metric, in the order asked for."""
    alpha: float
    """The alpha of each search for changes: the alpha of the whole, divided by the number of series."""

    @property
    def metrics(self) -> list[tuple[Metric, list[Series]]]:
        grouped = itertools.groupby(self.series, key=lambda series: series.metric)
        return [(metric, list(group)) for metric, group in grouped]


def history(
    runs: Sequence[Run],
    *,
    metrics: Sequence[str] = (),
    order: Order = versions.by_number,
    may_differ: Sequence[str] = (),
    alpha: float = ALPHA,
    least: int = FEWEST_REPEATS,
    newest: int | None = None,
) -> History:
    """The history that ``runs`` tell, the oldest run first, by ``metrics``; by default the main one.

    ``newest``: how many versions of each series are looked at, the last of them; None: all.
    Raises DnsrigError where runs differ in more than the server under test: ``may_differ`` names what is meant to, as
    in `compare.compare_runs`.
    """
    if not runs:
        raise DnsrigError("there is no run to tell a history of")
    check_alike([run.manifest for run in runs], may_differ)
    names = [metric_name(name, runs) for name in metrics] or [main_metric(runs[0])]
    found = [series for name in dict.fromkeys(names) for series in _series(runs, describe(name), order)]
    if newest is not None:
        found = [replace(series, points=series.points[-newest:]) for series in found]
    share = alpha / max(1, len(found))
    first = runs[0].manifest
    with_changes = [replace(series, changes=_changes(series, share, least)) for series in found]
    return History(first.experiment, first.title, list(runs), with_changes, share)


def of_one_metric(run: Run, metric: str) -> list[Series]:
    """The series of a run, its versions in any order, without a search for changes."""
    return list(_series([run], describe(metric), list))


def check_alike(manifests: Sequence[Manifest], may_differ: Sequence[str] = ()) -> None:
    """Refuse trials that were not asked to do the same, or not on the same machine, as the first of their series."""
    firsts: dict[tuple[object, ...], tuple[Manifest, Variant]] = {}
    for manifest in manifests:
        pairs: dict[int, tuple[Manifest, list[Pair]]] = {}
        for variant in manifest.variants:
            base, of_base = firsts.setdefault(_key(manifest, variant), (manifest, variant))
            pairs.setdefault(id(base), (base, []))[1].append(Pair(of_base, variant))
        for base, held in pairs.values():
            found = run_differences.differences(base, manifest, held, may_differ)
            if unlike := list(dict.fromkeys(str(d) for d in found if not d.asked_for)):
                more = f"; and {len(unlike) - MOST_DIFFERENCES} more" if len(unlike) > MOST_DIFFERENCES else ""
                raise DnsrigError(
                    f"the run {manifest.run} does not belong into one history with {base.run}: "
                    f"{'; '.join(unlike[:MOST_DIFFERENCES])}{more}",
                    hint="begin another history; or name with --may-differ what is meant to differ",
                )


def version_of(spec: TrialSpec) -> Version | None:
    """The version of the server under test; None for a trial without one."""
    server = spec.server
    return versions.of(server) if server is not None else None


def parameters(manifest: Manifest, variant: Variant) -> dict[str, Scalar]:
    """The values on the matrix but on the axis that names the server under test."""
    axes = [axis for axis in manifest.axes if all(_names_server(manifest, v, axis) for v in manifest.variants)]
    return {name: value for name, value in variant.parameters.items() if name not in axes}


def _names_server(manifest: Manifest, variant: Variant, axis: str) -> bool:
    version, named = version_of(manifest.specs[variant.id]), manifest.servers.get(str(variant.parameters.get(axis)))
    return version is not None and named is not None and versions.of(named) == version


def _key(manifest: Manifest, variant: Variant) -> tuple[object, ...]:
    """The key of the series that a variant belongs to."""
    version = version_of(manifest.specs[variant.id])
    kind = version.server.kind if version else ""
    return (kind, *sorted((name, str(value)) for name, value in parameters(manifest, variant).items()))


def _series(runs: Sequence[Run], metric: Metric, order: Order) -> Iterator[Series]:
    grouped: dict[tuple[object, ...], dict[tuple[str, ...], list[tuple[Run, Variant]]]] = {}
    for run in runs:
        for variant in run.manifest.variants:
            if (version := version_of(run.manifest.specs[variant.id])) is not None:
                of_key = grouped.setdefault(_key(run.manifest, variant), {})
                of_key.setdefault(version.id, []).append((run, variant))
    for by_version in grouped.values():
        run, variant = next(iter(by_version.values()))[0]
        first = version_of(run.manifest.specs[variant.id])
        assert first is not None
        points = list(_points(list(by_version.values()), metric, order))
        if points:
            yield Series(metric, first.server.kind, parameters(run.manifest, variant), points, [])


def _points(groups: Sequence[list[tuple[Run, Variant]]], metric: Metric, order: Order) -> Iterator[Point]:
    """A point for each version with finished trials."""
    measured: dict[tuple[str, ...], tuple[Version, list[tuple[Run, Trial]]]] = {}
    for group in groups:
        trials = [(run, trial) for run, variant in group for trial in run.of_variant(variant.id)]
        if trials and (version := version_of(trials[0][1].record.spec)) is not None:
            measured[version.id] = (version, trials)
    ordered = order([version for version, _ in measured.values()])
    for version, label in zip(ordered, versions.labels(ordered), strict=True):
        trials = measured[version.id][1]
        values = [Value(run, trial, sample) for run, trial in trials for sample in samples_of([trial], metric)]
        yield Point(version, label, [trial for _, trial in trials], values)


def _changes(series: Series, alpha: float, least: int) -> list[Change]:
    counted = [point for point in series.points if point.counts]
    found = change_points([point.samples.numbers for point in counted], alpha=alpha, least=least)
    places = [0, *(change.at for change in found), len(counted)]
    changes = []
    for change, (start, at, end) in zip(found, zip(places, places[1:], places[2:], strict=False), strict=True):
        before, after = counted[start:at], counted[at:end]
        compared = samples.compare(_pooled(after), _pooled(before), series.metric.better)
        changes.append(Change(before, after, change.p, compared))
    return changes


def _pooled(points: Iterable[Point]) -> Samples:
    """All samples of ``points``, which may be of several runs and so have no rounds in common."""
    return Samples(sample for point in points for sample in point.samples).without_rounds()


Key = tuple[str, str, str, str, str]
"""The key of a change: experiment, metric, series, the first version with it, and its direction."""


@dataclass(frozen=True)
class News:
    """A change that was not reported yet."""

    series: Series
    change: Change
    key: Key

    @property
    def is_regression(self) -> bool:
        return self.change.kind == "worse"


def news(history: History, told: Collection[Key]) -> list[News]:
    """The changes of ``history`` but those in ``told``, regressions first.

    A change is known if one with the same direction at the same version was reported. More
    trials may move it by a version: then it is reported again.
    """
    found = [
        News(series, change, _news_key(history, series, change))
        for series in history.series
        for change in series.changes
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


def _news_key(history: History, series: Series, change: Change) -> Key:
    version = change.first.version
    return (history.experiment, series.metric.name, series.label, version.commit or "/".join(version.id), change.kind)
