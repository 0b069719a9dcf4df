"""The answer of a run in sentences: how each variant compares with its baseline, by how much and how surely.

A server is ``1.6 × faster`` or ``1.6 × slower`` than another; other ratios are a part or a multiple (``0.61 of``,
``1.6 ×``). If no difference is visible, the sentence states how large
a difference would have been seen.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import median

from dnsrig.comparison.summary import VariantRow, comparisons_planned, main_metric, variant_table
from dnsrig.metrics import Metric
from dnsrig.report import figures, names, wording
from dnsrig.report.charts import _split
from dnsrig.runs.run import Run
from dnsrig.stats import significance
from dnsrig.stats.samples import Samples
from dnsrig.stats.statistics import Comparison

MOST = 4
"""Sentences on the first screen; the table below has every comparison."""
WORTH_NAMING_PERCENT = 900
"""If repeats vary so much that only a larger difference is certain to be seen, its size helps nobody."""
PRESENT = {"time": "needs", "higher": "reaches", "else": "has", "is": "is"}
PAST = {"time": "needed", "higher": "reached", "else": "had", "is": "was"}
"""Verbs of what holds beyond this run, and verbs of what was only seen in it."""
BOUNDS = {"": "", "≥": "at least ", "≤": "at most "}


@dataclass(frozen=True)
class Verdict:
    """One sentence; ``size`` is the part that is printed bold."""

    lead: str
    size: str = ""
    rest: str = ""
    figures: str = ""
    """What was measured on both sides."""
    subject: str = ""
    effect: float = -1.0
    """The logarithm of the ratio, without its sign; less than zero if there is no ratio."""

    def __str__(self) -> str:
        return f"{self.lead}{self.size}{self.rest}"


@dataclass(frozen=True)
class Verdicts:
    """What the first screen says, and how many comparisons it leaves to the table."""

    note: str
    """A sentence that holds for all of them, or nothing."""
    shown: list[Verdict]
    more: int


def verdicts(run: Run, most: int = MOST, invalidated: Collection[str | None] = ()) -> Verdicts:
    """The sentences of ``run`` under its main metric: at most ``most``, with each variant's largest difference first
    chosen, in the order of the matrix.

    If a finding has ``invalidated`` a variant (None: all of them), its sentence says what was measured, and claims
    nothing.
    """
    rows = variant_table(run, main_metric(run))
    compared = [row for row in rows if row.against is not None]
    if not compared:
        return _without_baseline(run, rows, most)
    by_variant = {row.variant.id: row for row in rows}
    note = _note(run, compared, by_variant)
    told = []
    for row in compared:
        assert row.against is not None
        doubted = bool({None, row.variant.id, row.against.id}.intersection(invalidated))
        told.append(_verdict(run, row, by_variant[row.against.id], noted=bool(note), doubted=doubted))
    chosen = _chosen(told, most)
    return Verdicts(note, [told[index] for index in chosen], len(told) - len(chosen))


def _chosen(told: Sequence[Verdict], most: int) -> list[int]:
    """The indexes of at most ``most`` of ``told``: the largest difference of each subject, then the second largest."""
    seen, ranked = Counter[str](), []
    for index in sorted(range(len(told)), key=lambda index: -told[index].effect):
        ranked.append((seen[told[index].subject], -told[index].effect, index))
        seen[told[index].subject] += 1
    return sorted(index for *_, index in sorted(ranked)[:most])


def _note(run: Run, compared: Sequence[VariantRow], by_variant: dict[str, VariantRow]) -> str:
    """Why no difference at all can be seen, and what would help; empty if one can."""
    counts = [(len(row.samples), len(by_variant[row.against.id].samples)) for row in compared if row.against]
    if any(_can_tell(run, *both) for both in counts):
        return ""
    ours, theirs = max(counts, key=lambda both: (min(both), max(both)))
    if not min(ours, theirs):
        return ""
    planned = comparisons_planned(run.manifest.variants, run.manifest.baseline)
    needed = significance.repeats_needed(planned, machines=_machines(run))
    return (
        f"With {figures.count(min(ours, theirs), 'repeat')} and {figures.count(planned, 'comparison')} chance can "
        f"explain any difference, however large: {needed} repeats are needed. The medians:"
    )


def _can_tell(run: Run, ours: int, theirs: int) -> bool:
    planned = comparisons_planned(run.manifest.variants, run.manifest.baseline)
    return significance.can_tell(ours, theirs, planned, machines=_machines(run))


def _machines(run: Run) -> int:
    return max(1, len(run.manifest.machines))


@dataclass(frozen=True)
class _Words:
    """The parts of a sentence about two variants."""

    context: str
    """``100 zones: ``, or nothing."""
    ours: str
    """``Knot DNS``, ``BIND 9 while the catalog changes``, ``carrier replica``."""
    theirs: str
    """``BIND 9``, ``at rest``, ``axfr``."""
    of: str
    """What a ratio is a part of: ``BIND 9's time``, ``its time at rest``."""
    has_server: bool
    """Whether ours is a server, which is faster or slower."""


def _words(run: Run, row: VariantRow, baseline: VariantRow) -> _Words:
    axes = names.varying_axes(run)
    own = [axis for axis in axes if row.variant.parameters.get(axis) != baseline.variant.parameters.get(axis)]
    servers = [axis for axis in axes if axis not in own and names.is_servers(run, axis)][:1]
    compares_servers = all(names.is_servers(run, axis) for axis in own)
    others = [axis for axis in axes if axis not in own and (compares_servers or axis not in servers)]
    context, noun = _context(names.name(run, row.variant, others, short=True)), _noun(row.metric)
    ours, theirs = names.name(run, row.variant, own), names.name(run, baseline.variant, own, short=True)
    if compares_servers:
        return _Words(context, ours, theirs, f"{theirs}'s {noun}", True)
    if servers:
        our, other = (names.circumstances(run, each.variant, own) for each in (row, baseline))
        return _Words(context, f"{names.name(run, row.variant, servers)} {our}", other, f"its {noun} {other}", True)
    return _Words(context, ours, theirs, f"the {noun} of {theirs}", False)


def _context(name: str) -> str:
    return f"{name}: " if name else ""


def _noun(metric: Metric) -> str:
    """``time``; ``p99 latency`` of a metric titled ``latency, p99``."""
    if metric.unit == "s":
        return "time"
    what, _, which = metric.title.partition(", ")
    return f"{which} {what}" if which and " " not in which else metric.title


def _verdict(run: Run, row: VariantRow, baseline: VariantRow, *, noted: bool, doubted: bool) -> Verdict:
    """``noted``: whether a note above all sentences says that no difference can be seen; ``doubted``: whether a finding
    invalidates one of the figures."""
    words, found = _words(run, row, baseline), row.comparison
    shown = f"{_median(row)} against {_median(baseline)}"
    doubt = ", but a finding invalidates this" if doubted else ""
    if row.bound is not None:
        return _bounded(row, baseline, words, shown, doubt)
    if found is None or found.percent is None or found.percent <= 0:
        return Verdict(
            f"{words.context}{words.ours}: ",
            "not compared",
            f" with {words.theirs.removeprefix('with ')}{_why(row, baseline, words)}",
        )
    can_tell = _can_tell(run, len(row.samples), len(baseline.samples))
    if not wording.is_told(run, row):
        error = figures.figure(wording.instrument_error(run, row), row.metric.unit)
        lead = f"{words.context}{words.ours} and {words.theirs}: no difference above the instrument's error of {error}"
        return Verdict(lead, "", _reach(row, baseline) if can_tell else "", shown, words.ours)
    if found.change == "undecided" and can_tell:
        return _undecided(run, row, baseline, words, shown, doubt)
    if found.change != "undecided":
        return _decided(row, words, shown, PAST if doubt else PRESENT, doubt + _means(found))
    few = "" if noted else "; chance can explain it with so few repeats"
    return _decided(row, words, shown, PAST, few + _means(found))


def _decided(row: VariantRow, words: _Words, shown: str, verbs: dict[str, str], tail: str) -> Verdict:
    comparison = row.comparison
    assert comparison is not None and comparison.percent is not None
    ratio, interval = comparison.percent / 100, comparison.interval
    ends = (interval.low / 100, interval.high / 100) if interval else None
    return _sized(row.metric, words, verbs, (comparison.bound, ratio, ends), tail, shown)


def _sized(
    metric: Metric,
    words: _Words,
    verbs: dict[str, str],
    size: tuple[str, float, tuple[float, float] | None],
    tail: str,
    shown: str,
) -> Verdict:
    """``Knot DNS is 1.6 [1.5..1.7] × faster than BIND 9``, ``carrier replica needs 0.61 [0.58..0.66] of the time of
    axfr``.

    ``size``: what the ratio is a bound of (``≥``, ``≤`` or nothing), the ratio, and the ends of its interval.
    """
    sign, ratio, ends = size
    told = (shown, words.ours, abs(math.log(ratio)) if ratio > 0 else -1.0)
    if words.has_server and metric.unit == "s" and ratio > 0 and ratio != 1:
        factor, inverse = (ratio, ends) if ratio > 1 else (1 / ratio, _inverse(ends))
        sign = sign if ratio > 1 else {"≤": "≥", "≥": "≤"}.get(sign, "")
        way = "slower" if ratio > 1 else "faster"
        lead = f"{words.context}{words.ours} {verbs['is']} "
        return Verdict(lead, f"{BOUNDS[sign]}{_ratio(factor, inverse)} × {way}", f" than {words.theirs}{tail}", *told)
    part, of = _part(ratio, ends)
    return Verdict(_lead(metric, words, verbs), f"{BOUNDS[sign]}{part}", f"{of} {words.of}{tail}", *told)


def _lead(metric: Metric, words: _Words, verbs: dict[str, str]) -> str:
    """``Knot DNS needs ``, ``one-large-zone: carrier replica needs ``."""
    verb = verbs["time" if metric.unit == "s" else "higher" if metric.better == "higher" else "else"]
    lead = f"{words.ours} {verb} "
    return words.context + lead if words.context else figures.capital(lead)


def _part(ratio: float, ends: tuple[float, float] | None = None) -> tuple[str, str]:
    """``0.61 [0.58..0.66]`` and `` of``, or ``1.6 ×`` and nothing."""
    return (f"{_ratio(ratio, ends)} ×", "") if ratio > 1 else (_ratio(ratio, ends), " of")


def _means(comparison: Comparison) -> str:
    return f"; {said}" if (said := wording.disagreement(comparison)) else ""


def _undecided(run: Run, row: VariantRow, baseline: VariantRow, words: _Words, shown: str, doubt: str) -> Verdict:
    """``doubt``: what takes the place of the difference that would have been seen."""
    comparison = row.comparison
    assert comparison is not None and comparison.percent is not None
    interval = comparison.interval
    ends = (interval.low / 100, interval.high / 100) if interval else None
    ratio = comparison.percent / 100
    size, of = _part(ratio, ends)
    wide = "" if row.samples.is_exact and baseline.samples.is_exact else f"; {wording.why_wide(run)}"
    rest = f"{of} {words.of}{wide}{doubt or _reach(row, baseline)}"
    lead = f"{words.context}{words.ours} and {words.theirs} cannot be told apart: "
    return Verdict(lead, size, rest, shown, words.ours)


def _reach(row: VariantRow, baseline: VariantRow) -> str:
    seen = visible_difference(row.samples, baseline.samples)
    if seen is None or seen > WORTH_NAMING_PERCENT:
        return ""
    return f"; a difference of {_difference(seen)} or more would have been seen"


def _difference(percent: float) -> str:
    """``23 %``; ``2.0 ×`` where it is more than 100 %."""
    return f"{_ratio(1 + percent / 100)} ×" if percent > 100 else figures.slower(percent)


def visible_difference(ours: Samples, theirs: Samples) -> float | None:
    """The difference, in percent, that would certainly have been seen: repeats that vary as these do would no longer
    overlap, at the least favourable of their ends. None if it is not known how much they vary."""
    factors = []
    for slower, faster in ((ours, theirs), (theirs, ours)):
        if min(slower.low) <= 0 or math.isinf(max(*slower.high, *faster.high)):
            return None
        factors.append(median(slower.high) / min(slower.low) * max(faster.high) / median(faster.high))
    return 100 * (max(factors) - 1)


def _bounded(row: VariantRow, baseline: VariantRow, words: _Words, shown: str, doubt: str) -> Verdict:
    """A side did not finish, so that at most a bound is known."""
    assert row.bound is not None
    sign, percent = row.bound
    size = (sign, percent / 100, None)
    return _sized(
        row.metric, words, PRESENT if sign and not doubt else PAST, size, _why(row, baseline, words) + doubt, shown
    )


def _why(row: VariantRow, baseline: VariantRow, words: _Words) -> str:
    """Which side has repeats that are not done."""
    sides = ((words.ours, row), (words.theirs, baseline))
    odd = [f"{side}: {wording.outcomes(each.outcomes)}" for side, each in sides if set(each.outcomes) - {"done"}]
    return f" ({'; '.join(odd)})" if odd else ""


def _median(row: VariantRow) -> str:
    return wording.median_and_range(row.samples, row.metric.unit)[0]


def _inverse(ends: tuple[float, float] | None) -> tuple[float, float] | None:
    if ends is None:
        return None
    low, high = ends
    return (0.0 if math.isinf(high) else 1 / high, math.inf if low <= 0 else 1 / low)


def _ratio(ratio: float, ends: tuple[float, float] | None = None) -> str:
    """``0.61 [0.58..0.66]``: with as many digits as tell it from one, and its ends from each other.

    >>> _ratio(0.614, (0.577, 0.662)), _ratio(1.04, (1.02, 1.06)), _ratio(48.7)
    ('0.61 [0.58..0.66]', '1.04 [1.02..1.06]', '49')
    """
    known = [ratio, *(end for end in ends or () if math.isfinite(end))]
    apart = [*(abs(each - 1) for each in known), max(known) - min(known)]
    least = min((each for each in apart if each > 0), default=1.0)
    usual = 2 if ratio < 1 else 1 if ratio < 10 else 0
    decimals = min(4, max(usual, math.ceil(-math.log10(min(1.0, least) * (1 + 1e-9)))))
    shown = [f"{each:,.{decimals}f}" if math.isfinite(each) else "∞" for each in (ratio, *(ends or ()))]
    return f"{shown[0]} [{shown[1]}..{shown[2]}]" if ends else shown[0]


def _without_baseline(run: Run, rows: Sequence[VariantRow], most: int) -> Verdicts:
    """Nothing is compared: a sentence for each context, with the medians of its variants; servers best first."""
    axis = _split.colour_axis(run) or next(iter(names.varying_axes(run)), None)
    others = [other for other in names.varying_axes(run) if other != axis]
    measured = [row for row in rows if row.samples.spread is not None]
    if not measured:
        return Verdicts("", [], 0)
    if axis is None:
        return Verdicts(
            "", [Verdict(f"{figures.capital(_noun(measured[0].metric))}: ", wording.measured(measured[0]))], 0
        )
    ranked = _best_first(measured) if names.is_servers(run, axis) else measured
    by_context: dict[str, list[str]] = {names.name(run, row.variant, others): [] for row in measured}
    for row in ranked:
        said = f"{names.name(run, row.variant, [axis])} {wording.measured(row)}"
        by_context[names.name(run, row.variant, others)].append(said)
    ordered = ranked is not measured
    told = [
        Verdict(_context(context), said[0] if ordered else "", ", ".join(["", *said[1:]] if ordered else said))
        for context, said in by_context.items()
    ]
    order = ", best first" if ordered else ""
    note = f"{figures.capital(measured[0].metric.title)}, median [least..most]{order}; there is no baseline."
    return Verdicts(note, told[-most:], max(0, len(told) - most))


def _best_first(rows: Sequence[VariantRow]) -> list[VariantRow]:
    if rows[0].metric.better == "neither":
        return list(rows)
    sign = 1 if rows[0].metric.better == "lower" else -1
    return sorted(rows, key=lambda row: sign * (row.samples.spread.median if row.samples.spread else 0.0))
