"""Times from two machines are shown together, and the difference between their clocks is large or not known well
enough.

A latency is measured with one clock, so it does not have this error. But charts show samples of a host on another
machine beside latencies, and the time of a transfer begins when a server there starts. dnsrig converts these times to
this machine's clock by exchanging messages with that machine, so they are only as accurate as these exchanges. The
error is too large above a hundredth of the time between two samples, or above a millisecond at the start of a server.

Logs use the wall clock of their machine, and TSIG signatures the wall clock of the signer. If wall clocks differ by
more than a second, lines of two logs appear in the wrong order. If they differ by more than the fudge, transfers are
refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from dnsrig.rundir import ClockRecord
from dnsrig.runs.during import finest_ns
from dnsrig.runs.trial import Trial
from dnsrig.text import digits
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 80
GROUP = "the machine and its clocks"
OUTCOMES = JUDGED
TITLE = "the clocks of machines differ, or by an unknown amount"
SOURCE = "RFC 5905, section 8: an offset is known to half of the round trip; RFC 8945, section 10: a fudge of 300 s"
ALLOWED_NS = 1_000_000
"""At the start of a server: `probe` asks a thousand times a second by default."""
SHARE_OF_INTERVAL = 0.01
"""Share of the time between two samples: a shift that no chart shows."""
WALL_ALLOWED_NS = 1_000_000_000
"""The resolution of the coarsest log."""
FUDGE_NS = 300_000_000_000
"""The RFC's recommendation, and the default of servers."""


def after(trial: Trial) -> Conclusion | None:
    record = trial.record
    if not record.spec.machines:
        return None
    found = {name: seen.clock for name, seen in record.machines.items() if seen.clock is not None}
    unknown = [name for name in record.spec.machines if name not in found]
    blurred = {name: figures for name, clock in found.items() if (figures := [*_blurred(trial, name, clock)])}
    walls = {name: clock for name, clock in found.items() if _apart_ns(clock) > WALL_ALLOWED_NS}
    told = [
        f"the clock of {name} is known to ± {digits(found[name].error_ns / 1e6)} ms, an error that {', '.join(figures)} have"
        for name, figures in blurred.items()
    ]
    told += [_wall_in_words(trial, name, clock) for name, clock in walls.items()]
    if not told and unknown:
        return cannot_tell(f"The clock of {', '.join(unknown)} is unknown: it was not compared with this machine's.")
    if not told:
        return CLEAR
    return Conclusion(
        "found",
        summary=_sentence(told),
        evidence={
            "machines": ", ".join(dict.fromkeys([*blurred, *walls])),
            "error_ms": round(max(clock.error_ns for clock in found.values()) / 1e6, 3),
            "wall_clock_apart_s": round(max(abs(clock.realtime_offset_ns) for clock in found.values()) / 1e9, 3),
            "not_compared": ", ".join(unknown),
        },
        metrics=_concerned(trial, [*blurred]),
        remedy=" ".join(_remedies(blurred=[*blurred], walls=[*walls])),
    )


def _sentence(clauses: list[str]) -> str:
    text = "; ".join(clauses)
    return f"{text[0].upper()}{text[1:]}."


def _blurred(trial: Trial, machine: str, clock: ClockRecord) -> Iterator[str]:
    """Results in which the error is larger than allowed."""
    for name, host in trial.record.spec.hosts.items():
        if host.machine != machine:
            continue
        interval_ns = finest_ns(trial, (name, "cgroup", "cpu_usage_us"))
        if interval_ns is not None and clock.error_ns > SHARE_OF_INTERVAL * interval_ns:
            yield f"the resources of {name} beside latencies"
        if host.under_test and clock.error_ns > ALLOWED_NS:
            yield f"the start of {name} and all times that begin with it"


def _apart_ns(clock: ClockRecord) -> int:
    """Least difference between the wall clocks."""
    return abs(clock.realtime_offset_ns) - clock.realtime_error_ns


def _wall_in_words(trial: Trial, machine: str, clock: ClockRecord) -> str:
    which = "ahead of" if clock.realtime_offset_ns > 0 else "behind"
    tsig = ""
    if trial.record.spec.transfer.tsig:
        exceeds = "exceeds" if _apart_ns(clock) > FUDGE_NS else "uses up a part of"
        tsig = f", and this {exceeds} the 300 s that TSIG allows"
    return (
        f"the wall clock of {machine} is {digits(abs(clock.realtime_offset_ns) / 1e9, 4)} s {which} this machine's: do not order lines "
        f"of logs there and here by their times{tsig}"
    )


def _concerned(trial: Trial, machines: list[str]) -> tuple[str, ...]:
    """The main metric, if its time begins with the start of a server on one of these machines."""
    spec = trial.record.spec
    begins_there = spec.subject in spec.hosts and spec.hosts[spec.subject].machine in machines
    return (spec.main_metric,) if begins_there and trial.started_in_measure else ()


def _remedies(*, blurred: list[str], walls: list[str]) -> Iterator[str]:
    if blurred:
        yield (
            "Measure longer, so that clocks are compared more often. During these comparisons nothing else should use the network "
            f"between this machine and {', '.join(blurred)}, or the CPUs of the observer."
        )
    if walls:
        yield (
            f"Let chrony synchronise the wall clocks of {', '.join(walls)} and of this machine with the same source (`chronyc "
            "tracking` shows the offset)."
        )
