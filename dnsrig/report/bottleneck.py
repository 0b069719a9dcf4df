"""Who was the bottleneck: the server, the generator, the wire, or nobody, with the CPU that was left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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
MOST_NAMED = 3
"""More variants with the same bottleneck are not named, so that the line stays short."""


@dataclass(frozen=True)
class Bottleneck:
    """The bottleneck of one variant."""

    words: str
    """In place of ``{server}`` and ``{generator}`` come the shares of their CPUs that were busy."""
    busy: Mapping[str, float] = field(default_factory=dict)


def sentence(run: Run, findings: Sequence[Finding]) -> str:
    """One line about all variants, in which variants with the same bottleneck are together; empty for a run without a
    load."""
    axes = names.varying_axes(run)
    found: dict[str, list[tuple[str, Bottleneck]]] = {}
    for variant in run.manifest.variants:
        if one := _of(run, variant.id, findings):
            found.setdefault(one.words, []).append((names.name(run, variant, axes), one))
    if not found:
        return ""
    texts = [(_named([label for label, _ in of]), _words([one for _, one in of])) for of in found.values()]
    if len(texts) == 1 and len(run.manifest.variants) > 1:
        return f"Bottleneck of all: {texts[0][1]}."
    return f"Bottleneck: {'; '.join(f'{labels}: {words}' if labels else words for labels, words in texts)}."


def _named(labels: Sequence[str]) -> str:
    """The variants by their names, or only their number if there are many; empty for the only variant of a run."""
    return " and ".join(label for label in labels if label) if len(labels) <= MOST_NAMED else f"{len(labels)} variants"


def _words(alike: Sequence[Bottleneck]) -> str:
    """The bottleneck of variants that have the same one, with the lowest and the highest share of each CPU."""
    shares = {}
    for host in alike[0].busy:
        low, high = (f"{100 * limit(one.busy[host] for one in alike):.0f}" for limit in (min, max))
        shares[host] = f"{low}%" if low == high else f"{low} to {high}%"
    return alike[0].words.format(**shares)


def _of(run: Run, variant: str, findings: Sequence[Finding]) -> Bottleneck | None:
    """The bottleneck of a variant; None without a load."""
    trials = [trial for trial in run.of_variant(variant) if trial.load.ran]
    if not trials:
        return None
    if any(f.verdict == "found" and f.trap in OURS and f.variant == variant for f in findings):
        return Bottleneck("the generator")
    if lost := _most_lost(trials):
        return Bottleneck(lost)
    if ramps := [trial.load for trial in trials if trial.load.model == "ramp"]:
        found = any(not load.held_all_rates for load in ramps)
        return Bottleneck("the server" if found else "not found: even the highest rate of the search held")
    server, generator = (_busy(trials, host) for host in (trials[0].subject, *trials[0].record.spec.generators[:1]))
    if server is None or generator is None:
        return Bottleneck("not known, without samples of the CPUs")
    if server >= BUSY_SHARE:
        return Bottleneck("the server, busy for {server} of the time", {"server": server})
    return Bottleneck("none (server {server} busy, generator {generator})", {"server": server, "generator": generator})


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
