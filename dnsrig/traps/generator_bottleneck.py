"""The load generator, not the server, decided the result.

A generator that is short of time sends queries late and reads answers late, so it measures itself. The signs: its
busiest thread always had work, queries were sent late or not at all, or other programs used its CPU. If there are
several generators, one such generator is enough, and the finding names it, because it affects its share of the queries.

If the same run has an echo server, the trap also compares with it. A server cannot be faster than one that only
reflects queries. So a result near the echo server's shows the limit of the generator, or of the kernel's network stack.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from dnsrig.rundir import OBSERVER, Scalar, TrialSpec
from dnsrig.runs import lag
from dnsrig.runs.cpu import FOREIGN_SHARE, shares_of, steal_series
from dnsrig.runs.load_result import LoadResult, Try
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.servers import all_drivers
from dnsrig.traps import CLEAR, COMPARED, JUDGED, Conclusion, cannot_tell
from dnsrig.traps.cpu_contention import SHORTEST_S, STEAL_SHARE

ORDER = 40
GROUP = "the load generator"
OUTCOMES = JUDGED
TITLE = "the load generator was the bottleneck"
SOURCE = "S2: P. Spacek, in search of latency, test 1: the instrument against an echo server (2023)"
WEIGHT = "invalidates"
BUSY_SHARE = 0.95
"""Share of the time in which the busiest thread has work, above which a generator without a fixed rate is too busy."""
SENT_SHARE = 0.99
"""Least share of the rate of a ramp's step that must be sent; with less, the generator was the limit."""
NEAR_ECHO = 0.95
"""Share of the echo server's rate above which a server's rate is not distinguishable from it."""
MOST_NAMED = 3
"""Number of generators whose faults are described; the others are counted."""


def after(trial: Trial) -> Conclusion | None:
    load = trial.load
    if not load.ran:
        return None
    told, evidence = _of_ramp(load) if load.model == "ramp" else _of_load(load)
    slow = _of_each(trial)
    cpu, cpu_evidence = _of_cpus(trial)
    if slow or cpu:
        evidence["generators"] = ", ".join(dict.fromkeys([*slow, *cpu]))
    told = [*(_together(slow) or told), *_together(cpu)]
    evidence |= cpu_evidence
    if told:
        blamed = list(dict.fromkeys([*slow, *cpu])) or trial.record.spec.generators
        return Conclusion(
            "found",
            summary=f"The load generator was the bottleneck: {'; '.join(told)}.",
            evidence=evidence,
            series=tuple(series for host in blamed[:MOST_NAMED] for series in steal_series(trial, host)),
            metrics=(trial.record.spec.main_metric, "answered_qps", "send_lag_p99_us"),
            remedy=remedy(blamed[0]),
        )
    if not cpu_evidence and load.model in ("rate", "stream") and not load.lag_ns:
        return cannot_tell("The summary of the load has no send lag.")
    return CLEAR


def remedy(host: str) -> str:
    """``host``: the host of the generator."""
    return (
        f"Give the instrument more CPUs (`--set 'hosts.{host}.cpus=[...]'`), let more hosts send queries "
        "(`--set options.generators=...`), or lower the rate (`--set options.rate_qps=...`). `dnsrig run echo-baseline` "
        "shows the limit of the instrument on this machine."
    )


def _together(by_host: dict[str, list[str]]) -> list[str]:
    """Clauses of a sentence about the first hosts."""
    told = [clause for host in [*by_host][:MOST_NAMED] for clause in by_host[host]]
    return told + ([f"the same is true of {more} others"] if (more := len(by_host) - MOST_NAMED) > 0 else [])


def _of_each(trial: Trial) -> dict[str, list[str]]:
    """What is wrong with single generators, if there are several. Steps of a ramp are known only for all together."""
    if len(trial.loads) < 2 or trial.load.model == "ramp":
        return {}
    found = {host: _of_load(load)[0] for host, load in trial.loads.items() if load.ran}
    return {host: [f"on {host}, {clause}" for clause in told] for host, told in found.items() if told}


def _of_load(load: LoadResult) -> tuple[list[str], dict[str, Scalar | None]]:
    """What is wrong with a closed loop or a fixed rate, as clauses of a sentence, and the numbers."""
    lag_ns, sent_ns = (figures.get("p99") or 0 for figures in (load.lag_ns, load.sent_latency_ns))
    told, closed = [], load.model == "closed"
    if closed and load.busy_share >= BUSY_SHARE:
        told.append(f"its busiest thread had work for {load.busy_share:.0%} of the time")
    if not closed and (late := lag.why_not(load)):  # in a closed loop a query is due when an answer makes room for it
        told.append(late)
    if load.unsent:
        told.append(f"{load.unsent:,} of {load.due:,} queries were never sent")
    return told, {
        "busy_percent": round(100 * load.busy_share, 1),
        "send_lag_p99_us": round(lag_ns / 1e3, 1),
        "sent_p99_ms": round(sent_ns / 1e6, 4),
        "unsent": load.unsent,
        "threads": load.threads,
    }


def _of_ramp(load: LoadResult) -> tuple[list[str], dict[str, Scalar | None]]:
    """What is wrong with a ramp, and the numbers: it matters why the search could not go higher."""
    deciding = steps_that_decided(load.steps, load.capacity_qps)
    own = [step for step in deciding if _step_is_own_fault(step)]
    evidence: dict[str, Scalar | None] = {"capacity_qps": load.capacity_qps, "threads": load.threads}
    # One step at which it could not send ends the engine's search. For the others the majority counts, as there.
    if not any(step.instrument_failed for step in own) and 2 * len(own) <= len(deciding):
        return [], evidence
    worst = max(own, key=lambda step: (bool(step.instrument_failed), step.busy_share))
    evidence |= {
        "rate_qps": round(worst.rate_qps, 1),
        "sent_qps": round(worst.sent_qps, 1),
        "busy_percent": round(100 * worst.busy_share, 1),
        "send_lag_p99_us": round((worst.lag_p99_ns or 0) / 1e3, 1),
    }
    return [
        f"at {worst.rate_qps:,.0f} queries a second, where the ramp stopped, it sent {worst.sent_qps:,.0f}, its "
        f"busiest thread had work for {worst.busy_share:.0%} of the time and p99 of its send lag was "
        f"{(worst.lag_p99_ns or 0) / 1e3:,.0f} µs"
    ], evidence


def steps_that_decided(steps: Sequence[Try], capacity_qps: float | None) -> list[Try]:
    """The tries that failed at the lowest rate above the capacity: their failure decided the capacity."""
    failed = [step for step in steps if not step.holds and step.rate_qps > (capacity_qps or 0.0)]
    lowest_qps = min((step.rate_qps for step in failed), default=0.0)
    return [step for step in failed if step.rate_qps == lowest_qps]


def _step_is_own_fault(step: Try) -> bool:
    """Whether the generator failed at this step. Lag counts only as a share, because over TCP a server beyond its
    capacity may delay the generator."""
    return bool(
        step.instrument_failed
        or step.busy_share >= BUSY_SHARE
        or (step.sent_qps < SENT_SHARE * step.rate_qps and step.instrument_failed is None)
        or (step.lag_p99_ns or 0) > max(lag.NEVER_NS, lag.SHARE * (step.p99_ns or 0))
    )


def _of_cpus(trial: Trial) -> tuple[dict[str, list[str]], dict[str, Scalar | None]]:
    """CPU time that others took on each generator's CPUs, and the largest shares. There are no numbers without samples,
    or if `measure` was too short for ticks."""
    known, told = [], {}
    for host in trial.record.spec.generators:
        shares = shares_of(trial, host) if host in trial.record.spec.hosts else None
        if shares is None or shares[0] < SHORTEST_S:
            continue
        _, steal, foreign = shares
        known.append((steal, foreign))
        if clauses := _of_cpu(trial, host, steal, foreign):
            told[host] = clauses
    if not known:
        return told, {}
    steal, foreign = (max(shares) for shares in zip(*known))
    return told, {"steal_percent": round(100 * steal, 2), "foreign_percent": round(100 * foreign, 2)}


def _of_cpu(trial: Trial, host: str, steal: float, foreign: float) -> list[str]:
    loads, machine = trial.loads, trial.record.spec.hosts[host].machine
    whose = f"the CPUs of {host}{f' on {machine}' if machine else ''}" if len(loads) > 1 or machine else "its CPUs"
    told = []
    if steal > STEAL_SHARE:
        told.append(f"the hypervisor took {steal:.1%} of the time of {whose}")
    # A generator with real-time priority does not wait for other programs.
    if foreign > FOREIGN_SHARE and not loads[host].real_time:
        told.append(f"other programs took {foreign:.1%} of the time of {whose}")
    return told


def across(run: Run) -> Iterator[tuple[str, Conclusion]]:
    """Compare each server with the echo server of an otherwise identical variant, if a trial looked for the highest
    rate."""
    answered = {variant.id: _highest_qps(run, variant.id) for variant in run.manifest.variants}
    specs = run.manifest.specs
    echoes = {_rest(specs[name]): name for name, qps in answered.items() if qps and _is_echo(specs[name])}
    for name, qps in answered.items():
        echo = echoes.get(_rest(specs[name]))
        floor_qps = answered.get(echo) if echo else None
        if qps and floor_qps and _faults_of_reflector(specs[name]) is None:
            yield name, beside_echo(qps, floor_qps, specs[name].main_metric, specs[name].generators[0])


def beside_echo(qps: float, echo_qps: float, metric: str, host: str = OBSERVER) -> Conclusion:
    """``qps``: the server's rate; ``echo_qps``: the echo server's rate, with the same instrument on ``host``."""
    if qps < NEAR_ECHO * echo_qps:
        return CLEAR
    return Conclusion(
        "found",
        summary=f"It answered {qps:,.0f} queries a second, {qps / echo_qps:.0%} of the echo server's {echo_qps:,.0f}: not the "
        "server was the limit, but the generator or the kernel's network stack.",
        evidence={
            "answered_qps": round(qps, 1),
            "echo_answered_qps": round(echo_qps, 1),
            "of_echo_percent": round(100 * qps / echo_qps, 1),
        },
        metrics=(metric, "answered_qps", "capacity_qps"),
        remedy=f"Treat the figure as a lower limit. {remedy(host)}",
    )


def _highest_qps(run: Run, variant: str) -> float | None:
    """Median over the repeats of the rate of answers when the generator sent as much as it could."""
    found = [trial.load.highest_qps for trial in run.of_variant(variant) if trial.record.outcome in COMPARED]
    known = [qps for qps in found if qps]
    return statistics.median(known) if known else None


def _rest(spec: TrialSpec) -> tuple[tuple[str, Scalar], ...]:
    """The point of the matrix without the server under test."""
    server = spec.server
    return tuple(pair for pair in spec.variant.parameters.items() if server is None or pair[1] != server.name)


def _faults_of_reflector(spec: TrialSpec) -> frozenset[str] | None:
    """Settings by which the server under test misbehaves, if it only reflects queries; otherwise None."""
    driver = all_drivers().get(spec.server.kind) if spec.server else None
    return driver.fault_settings if driver and driver.reflects else None


def _is_echo(spec: TrialSpec) -> bool:
    """Whether the server only reflects, without a configured fault."""
    faults, settings = _faults_of_reflector(spec), spec.hosts[spec.subject].settings
    return faults is not None and not any(settings.get(fault) for fault in faults)
