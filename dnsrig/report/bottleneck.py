"""Who was the bottleneck: the server, the generator, the wire, or nobody, with the CPU that was left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from dnsrig.report import names
from dnsrig.rundir import Finding
from dnsrig.runs import packets
from dnsrig.runs.cpu import busy_share
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.text import digits

OURS = ("generator-bottleneck", "queries-sent-late", "rate-not-sent")
"""Traps that show that the generator was the limit."""
BUSY_SHARE = 0.9
"""Share of its CPUs from which a server has no room left."""
LOST_SHARE = 1e-3
"""Share of the queries: with more losses, the place that lost most is the bottleneck."""


def sentence(run: Run, findings: Sequence[Finding]) -> str:
    """One line about all variants, in which variants with the same bottleneck are together; empty for a run without a
    load."""
    axes = names.varying_axes(run)
    labels: dict[str, list[str]] = {}
    for variant in run.manifest.variants:
        if text := _of(run, variant.id, findings):
            labels.setdefault(text, []).append(names.name(run, variant, axes))
    if not labels:
        return ""
    if len(labels) == 1 and len(run.manifest.variants) > 1:
        return f"Bottleneck of all: {next(iter(labels))}."
    parts = [f"{' and '.join(of)}: {text}" if any(of) else text for text, of in labels.items()]
    return f"Bottleneck: {'; '.join(parts)}."


def _of(run: Run, variant: str, findings: Sequence[Finding]) -> str:
    """The bottleneck of a variant in words; empty without a load."""
    trials = [trial for trial in run.of_variant(variant) if trial.load.ran]
    if not trials:
        return ""
    if any(f.verdict == "found" and f.trap in OURS and f.variant == variant for f in findings):
        return "the generator"
    if lost := _most_lost(trials):
        return lost
    if ramps := [trial.load for trial in trials if trial.load.model == "ramp"]:
        found = any(not load.held_all_rates for load in ramps)
        return "the server" if found else "not found: even the highest rate of the search held"
    server, generator = (_busy(trials, host) for host in (trials[0].subject, *trials[0].record.spec.generators[:1]))
    if server is None or generator is None:
        return "not known, without samples of the CPUs"
    if server >= BUSY_SHARE:
        return f"the server, busy for {server:.0%} of the time"
    return f"none (server {server:.0%} busy, generator {generator:.0%})"


def _most_lost(trials: Iterable[Trial]) -> str:
    """The place that lost most, if it lost much in the typical trial."""
    counted = [(counts.sent, counts.losses) for trial in trials if (counts := packets.counts(trial)) is not None]
    lost = {(loss.where, loss.why) for _, losses in counted for loss in losses}
    shares = {
        place: median(
            sum(loss.datagrams for loss in losses if (loss.where, loss.why) == place) / max(1, sent)
            for sent, losses in counted
        )
        for place in lost
    }
    worst = max(shares, key=lambda place: shares[place], default=None)
    if worst is None or shares[worst] < LOST_SHARE:
        return ""
    where, why = worst
    return f"the {where}: {digits(100 * shares[worst], 2)} % were lost {why}"


def _busy(trials: Iterable[Trial], host: str) -> float | None:
    """Median share of the CPUs of ``host`` that its programs used."""
    known = [share for trial in trials if (share := busy_share(trial, host)) is not None]
    return median(known) if known else None
