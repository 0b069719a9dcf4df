"""S5: DNSSEC validation, performance killer? (P. Špaček, ISC, article, 2022).

It measured a telco's clients against the live Internet, and does not state how much of what they asked was signed. So a
difference here is compared by its direction only, which is the same, or another, where the interval of the differences,
repeat by repeat, excludes zero; else it is undecided.

Its second case, 135,000 queries a second, is a resolver with much to do. `dnssec-heavy` takes half of what each
level holds, so the levels have rates of their own: what grows with the rate is compared at 1,000 queries a second, as
if it were in proportion. Memory, which is not, is not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median

import polars as pl

from dnsrig.comparison.published import Figure, Measured, holds, same_size
from dnsrig.rundir import TrialSpec, Variant
from dnsrig.runs import minutes
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.stats import statistics
from dnsrig.text import digits

EXPERIMENT, AT_9K = "dnssec-validation", "9 kQPS"
HEAVY, AT_135K = "dnssec-heavy", "135 kQPS"
OFF, ON = "do-unvalidated", "validating"
"""BIND asks with DO also where it does not validate, and so it did there."""
QPS = 9_000
PER_QPS = 1_000
WITHIN_NS = 1_000_000
ELSEWHERE = "A population of clients and a simulated Internet here; a capture and the Internet in the source."
DIFFERENCES = {
    "cpu_increase": "last_minute_cpu_percent",
    "timewait_increase": "last_minute_time_wait",
    "tcp_inuse_increase": "last_minute_tcp_sockets",
    "udp_inuse_increase": "last_minute_udp_sockets",
    "packet_increase": "last_minute_packets_per_s",
}
"""The source's name of what validation adds -> the metric."""


@holds("cpu_increase", EXPERIMENT, AT_9K)
@holds("timewait_increase", EXPERIMENT, AT_9K)
@holds("tcp_inuse_increase", EXPERIMENT, AT_9K)
@holds("udp_inuse_increase", EXPERIMENT, AT_9K)
@holds("packet_increase", EXPERIMENT, AT_9K)
def _added(run: Run, figure: Figure) -> Iterator[Measured]:
    name = DIFFERENCES[figure.metric]
    yield from _increase(run, figure, lambda trial: trial.value(name), lambda on, off: on - off)


@holds("cpu_increase", EXPERIMENT, AT_135K, run_of=HEAVY)
@holds("timewait_increase", EXPERIMENT, AT_135K, run_of=HEAVY)
@holds("tcp_inuse_increase", EXPERIMENT, AT_135K, run_of=HEAVY)
@holds("packet_increase", EXPERIMENT, AT_135K, run_of=HEAVY)
def _added_at_half(run: Run, figure: Figure) -> Iterator[Measured]:
    """Each at the same rate."""
    name = DIFFERENCES[figure.metric]
    yield from _increase(run, figure, lambda trial: _scaled(trial, name), lambda on, off: on - off)


def _scaled(trial: Trial, name: str) -> float | None:
    """What the metric would be at ``PER_QPS`` queries a second, were it in proportion."""
    value, qps = trial.value(name), trial.value("answered_qps")
    return None if value is None or not qps else value * PER_QPS / qps


@holds("latency_increase", EXPERIMENT, AT_135K, run_of=HEAVY)
def _slower(run: Run, figure: Figure) -> Iterator[Measured]:
    yield from _increase(run, figure, lambda trial: trial.value("last_minute_p99_ms"), lambda on, off: on - off)


@holds("unanswered_first_minute", EXPERIMENT, AT_135K, run_of=HEAVY)
def _unanswered(run: Run, figure: Figure) -> Iterator[Measured]:
    yield from _figures(run, figure, _unanswered_percent)


@holds("memory_increase", EXPERIMENT, AT_9K)
def _memory(run: Run, figure: Figure) -> Iterator[Measured]:
    yield from _increase(
        run, figure, lambda trial: trial.value("last_minute_memory_bytes") or None, lambda on, off: 100 * (on / off - 1)
    )


@holds("answered_within_1ms", EXPERIMENT, AT_9K)
def _fast(run: Run, figure: Figure) -> Iterator[Measured]:
    yield from _figures(run, figure, _within)


@holds("cache_hits_first_minute", EXPERIMENT, "any")
def _hits(run: Run, figure: Figure) -> Iterator[Measured]:
    yield from _figures(run, figure, lambda trial: trial.value("first_minute_hits_percent"))


def _increase(
    run: Run,
    figure: Figure,
    value: Callable[[Trial], float | None],
    increase: Callable[[float, float], float],
) -> Iterator[Measured]:
    """What validation adds, of each pair of variants that differ in the level alone."""
    for on in run.manifest.variants:
        off = _without(run, on)
        if off is None:
            continue
        ours, theirs = (_by_repeat(run, variant, value) for variant in (on, off))
        values = [increase(ours[repeat], theirs[repeat]) for repeat in sorted(ours.keys() & theirs.keys())]
        if (spread := statistics.spread(values)) is not None:
            said = [direction(values, figure.value or 0.0), *_differs(run.manifest.specs[on.id])]
            yield Measured(figure, _label(on), spread, comparable=False, differs=said)


def direction(values: list[float], published: float) -> str:
    """
    >>> direction([1.0, 2.0, 1.5, 1.2, 1.1], 2.0)
    'The direction is the same: 1..2, without zero.'
    >>> direction([1.0, 2.0, -1.5, 1.2, 1.1], 2.0)
    'Undecided: -1.5..2 has zero in it.'
    """
    found = statistics.bootstrap_interval(values)
    if found is None:
        return f"Undecided: {statistics.FEWEST_REPEATS} repeats are needed."
    told = f"{digits(found.low)}..{digits(found.high)}"
    if found.low <= 0 <= found.high:
        return f"Undecided: {told} has zero in it."
    if not published:
        return f"The source saw no difference: {told}, without zero."
    same = median(values) * published > 0
    return f"The direction is {'the same' if same else 'another'}: {told}, without zero."


def _figures(run: Run, figure: Figure, value: Callable[[Trial], float | None]) -> Iterator[Measured]:
    """The figures of each variant at either of the source's levels."""
    for variant in run.manifest.variants:
        spec = run.manifest.specs[variant.id]
        spread = statistics.spread([*_by_repeat(run, variant, value).values()])
        if variant.parameters.get("level") in (OFF, ON) and spread is not None:
            yield Measured(figure, variant.label, spread, comparable=_same_rate(spec), differs=_differs(spec))


def _within(trial: Trial) -> float | None:
    """The share of the queries of the first minute that were answered within a millisecond, in percent."""
    found = minutes.latencies(trial, "first")
    if found is None:
        return None
    fast = sum(count for value, count in zip(found.values_ns, found.counts) if value <= WITHIN_NS)
    return 100 * fast / found.total


def _unanswered_percent(trial: Trial) -> float | None:
    """Share of the queries due in the first minute that had no answer within the time-out."""
    found, rows = minutes.stretch(trial, "first"), trial.load_intervals
    if found is None:
        return None
    first = rows.filter((pl.col("start_ns") >= found[0]) & (pl.col("start_ns") < found[1]))
    due = int(first["due"].sum())
    return 100 * int((first["timeouts"] + first["lost"]).sum()) / due if due else None


def _without(run: Run, on: Variant) -> Variant | None:
    """The variant with the same parameters that does not validate."""
    if on.parameters.get("level") != ON:
        return None
    wanted = {**on.parameters, "level": OFF}
    return next((variant for variant in run.manifest.variants if variant.parameters == wanted), None)


def _by_repeat(run: Run, variant: Variant, value: Callable[[Trial], float | None]) -> dict[int, float]:
    done = run.done(variant.id)
    return {trial.record.spec.repeat: found for trial in done if (found := value(trial)) is not None}


def _label(on: Variant) -> str:
    rest = [f"{name} {value}" for name, value in on.parameters.items() if name != "level"]
    return ", ".join([f"{ON} less {OFF}", *rest])


def _same_rate(spec: TrialSpec) -> bool:
    return spec.stream is not None and spec.experiment != HEAVY and same_size(_qps(spec), QPS)


def _qps(spec: TrialSpec) -> float:
    return float(spec.stream.parameters.get("qps", 0.0)) if spec.stream is not None else 0.0


def _differs(spec: TrialSpec) -> list[str]:
    rate = [] if _same_rate(spec) else [f"{_qps(spec):,.0f} queries a second here, {QPS:,} in the source."]
    if spec.experiment == HEAVY:
        rate = [f"At half of what each level holds here, what grows with the rate for {PER_QPS:,} queries a second."]
    server = spec.server
    kind = [] if server is not None and server.kind == "bind" else ["BIND in the source."]
    return [ELSEWHERE, *rate, *kind]
