"""What the charts of single transfers share: which trials they are drawn of, and where their time begins."""

from __future__ import annotations

from collections.abc import Sequence

from dnsrig.comparison.summary import describe
from dnsrig.report import figures
from dnsrig.report.charts import _split
from dnsrig.rundir import Finding
from dnsrig.runs import transfers
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial

OUTCOMES = ("done", "timeout", "invalid")
"""Outcomes of trials that are drawn."""


def chosen(run: Run, findings: Sequence[Finding], traps: Sequence[str], most: int) -> list[Trial]:
    """The median repeat of at most ``most`` variants: of each of ``traps`` the variant in which it decided most, then
    the worst ones."""
    medians = [trial for variant in run.manifest.variants if (trial := _median(run, variant.id)) is not None]
    worst = list(reversed(_split.best_first(medians)))
    picked: list[Trial] = []
    for trap in traps:
        where = {finding.variant for finding in findings if finding.trap == trap and finding.verdict == "found"}
        fresh = [trial for trial in worst if trial.record.spec.variant.id in where and trial not in picked]
        picked += fresh[:1]
    picked += [trial for trial in worst if trial not in picked]
    return picked[:most]


def _median(run: Run, variant: str) -> Trial | None:
    """The repeat in the middle, of those in which something was transferred."""
    drawn = [t for t in run.of_variant(variant) if t.record.outcome in OUTCOMES and not transfers.of(t).is_empty()]
    return _split.median(drawn)


def begun_ns(trial: Trial) -> int:
    """When the instrument began, by its own word or else by its first query."""
    started = trial.transfer.get("start_ns")
    first = trial.transfers["asked_ns"].min()
    return int(started) if started else int(first) if isinstance(first, int) else 0


def title(trial: Trial, findings: Sequence[Finding]) -> str:
    """The title of a picture of one trial: its result, and what traps found."""
    spec = trial.record.spec
    metric = describe(spec.main_metric)
    result = figures.figure(trial.result, metric.unit) if trial.result is not None else trial.record.outcome
    found = [
        f.trap for f in findings if f.verdict == "found" and (f.variant, f.repeat) == (spec.variant.id, spec.repeat)
    ]
    beside = f". Found: {', '.join(dict.fromkeys(found))}" if found else ""
    return f"Repeat {spec.repeat}, the median: {result}{beside}"
