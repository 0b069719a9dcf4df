"""The whole server stood still: for a while no client got an answer.

Percentiles do not distinguish this from single slow queries, and counts for each second hide a stall of 300 ms. So the
trap examines the times of the answers. A stall lasts at least 50 ms and 20 times the mean distance between two answers,
and over connections also twice as long as a quick answer. At least ten queries were sent in its first half, and the
probability that one such time occurs by chance, with the trial's share of slow queries, is at most 0.001.

The finding contains the number and length of the stalls; whether the server was ready to run and had no CPU, so that
the machine is the cause; how much CPU the server's host used meanwhile, and whether it waited for I/O or for a CPU;
which events began just before stalls more often than by chance (from the server's log: an
update from the catalog, a transfer of the catalog, a reload; from dnsrig: a change, a transfer by the instrument); and,
if stacks were sampled (`profile = true`), which functions ran more during stalls than otherwise.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from dnsrig.rundir import Scalar
from dnsrig.runs import during
from dnsrig.runs.profile import Difference, differences
from dnsrig.runs.stalls import Preceding, Stalls, preceding, stacks_of, stalls_of
from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell, of_servers

ORDER = 44
GROUP = "stalls and warm-up"
OUTCOMES = JUDGED
TITLE = "the whole server stood still"
SOURCE = "S2: P. Spacek, in search of latency, test 3: BIND 9.18.10 while its catalog changes, fixed by 9.18.13 (2023)"
WEIGHT = "explains"
MOSTLY = 50.0
"""Percentage of the time above which this was the server's only activity."""
SAMPLES_OF_WATCH = 2
"""Least total length of the stalls, in intervals of `watch`, for which its counters are split."""
FEWEST_STACKS = 20
REPEAT = "Repeat the trial when no other program uses the CPUs of the server (`dnsrig check` lists such programs)."
LONG_SHARE = 0.1
"""Share of the longest stall above which a stall is long, too."""
FUNCTIONS = 3
"""Number of functions that are named."""


def after(trial: Trial) -> Conclusion | None:
    if not trial.load.has_latencies:
        return None
    if trial.load.model == "closed":
        return cannot_tell("In a closed loop no queries are sent while the server does not answer: set a rate.")
    found = stalls_of(trial)
    if found is None:
        return cannot_tell("There is no answers.arrow (a run of an earlier version), or it is empty.")
    return _found(trial, found) if found.found else CLEAR


def _found(trial: Trial, found: Stalls) -> Conclusion:
    spent, before, ran = spent_percent(trial, found), what_preceded(trial, found), what_ran(trial, found)
    without_cpu = during.without_cpu_percent(trial, trial.subject, found.stretches, (found.start_ns, found.end_ns))
    by_machine = without_cpu is not None and without_cpu >= MOSTLY
    did = _lacked_in_words(trial, without_cpu or 0.0, found) if by_machine else _spent_in_words(trial, spent)
    durations = [stall.duration_ns / 1e6 for stall in found.found]
    asked = sum(stall.asked for stall in found.found)
    summary = f"{_times(durations)} no client got an answer: {found.share:.1%} of the time. {asked:,} queries were sent meanwhile. "
    return Conclusion(
        "found",
        summary=summary + " ".join(filter(None, (did, _before_in_words(before), _ran_in_words(ran)))),
        evidence={
            "stalls": len(found.found),
            "longest_ms": round(max(durations), 1),
            "median_ms": round(statistics.median(durations), 1),
            "stalled_percent": round(100 * found.share, 2),
            "asked_meanwhile": asked,
            "shortest_told_ms": round(found.threshold_ns / 1e6, 1),
            "p_by_chance": float(f"{found.chance:.1g}"),
            "without_cpu_percent": None if without_cpu is None else round(without_cpu, 1),
            **spent,
            **_before_as_evidence(before),
            **_ran_as_evidence(ran),
        },
        series=(f"{trial.subject}/cgroup/cpu_usage_us", f"{trial.subject}/psi/io_some_us"),
        metrics=(trial.record.spec.main_metric, "p99_ms", "p99_9_ms", "max_ms", "unanswered_share_percent"),
        remedy=REPEAT if by_machine else _remedy(trial, ran),
    )


def _times(durations: list[float]) -> str:
    if len(durations) == 1:
        return f"Once, for {durations[0]:,.0f} ms,"
    least, most = (f"{limit:,.0f}" for limit in (min(durations), max(durations)))
    return f"{len(durations)} times, for {most if least == most else f'{least} to {most}'} ms,"


# What its host did


def spent_percent(trial: Trial, found: Stalls) -> dict[str, Scalar | None]:
    """CPU time of the server's host in percent of a core, and the share of the time in which it waited; None if not
    known."""
    counters = {
        "cpu": ("cgroup", "cpu_usage_us"),
        "cpu_of_kernel": ("cgroup", "cpu_system_us"),
        "io_wait": ("psi", "io_some_us"),
        "cpu_wait": ("psi", "cpu_some_us"),
    }
    finest_ns = during.finest_ns(trial, (trial.subject, *counters["cpu"]))
    if finest_ns is None or found.total_ns < SAMPLES_OF_WATCH * finest_ns:
        return {}
    spent: dict[str, Scalar | None] = {}
    for name, counter in counters.items():
        for when, stretches in (("", found.stretches), ("_otherwise", found.others)):
            grown = during.growth_in(trial, (trial.subject, *counter), stretches)
            time_us = sum(end - start for start, end in stretches) / 1e3
            spent[f"{name}{when}_percent"] = None if grown is None or not time_us else round(100 * grown / time_us, 1)
    return spent


def _lacked_in_words(trial: Trial, percent: float, found: Stalls) -> str:
    finest_ns = during.finest_ns(trial, (trial.subject, "psi", "cpu_full_us"))
    is_sure = finest_ns is not None and found.total_ns >= SAMPLES_OF_WATCH * finest_ns
    return (
        f"The machine {'was' if is_sure else 'may be'} the cause, not the server: for {percent:.0f} % of this time the "
        f"{trial.subject} was ready to run and had no CPU, because other programs or the hypervisor used it."
    )


def _spent_in_words(trial: Trial, spent: Mapping[str, Scalar | None]) -> str:
    cpu, io_wait, cpu_wait = (spent.get(f"{name}_percent") for name in ("cpu", "io_wait", "cpu_wait"))
    if not isinstance(cpu, int | float):
        return "Its CPU use meanwhile is not known: there are no samples, or too few."
    waited = [(io_wait, "I/O"), (cpu_wait, "a CPU")]
    told = [
        f"waited for {what} {share:.0f} % of the time"
        for share, what in waited
        if isinstance(share, int | float) and share >= 1
    ]
    otherwise = spent.get("cpu_otherwise_percent")
    beside = f" (otherwise {otherwise:.0f} %)" if isinstance(otherwise, int | float) else ""
    sentence = f"The {trial.subject} used {cpu:.0f} % of a core meanwhile{beside}"
    sentence += f" and {' and '.join(told)}" if told else ""
    if cpu >= MOSTLY:
        return f"{sentence}: it was computing."
    if any(isinstance(share, int | float) and share >= MOSTLY for share, _ in waited):
        return f"{sentence}."
    return f"{sentence}: it waited for something else, such as a lock, a timer or another host."


# What came before


def what_preceded(trial: Trial, found: Stalls) -> Preceding | None:
    """Events just before long stalls; short ones may have another cause."""
    long = [stall.start_ns for stall in found.found if stall.duration_ns >= LONG_SHARE * found.longest_ns]
    return preceding(long, events_of(trial), found.others)


def events_of(trial: Trial) -> dict[str, list[int]]:
    """Start times of events that may delay a server, by kind; monotonic ns."""
    rows = {
        "change accepted by the primary": trial.changes["accepted_ns"],
        "transfer requested by the instrument": trial.transfers["asked_ns"],
    }
    events = {kind: column.drop_nulls().to_list() for kind, column in rows.items()}
    if trial.anchors:
        for kind, realtime_ns in trial.log_events.drop_nulls().iter_rows():
            events.setdefault(f"{kind}, in the server's log", []).append(trial.monotonic_ns(realtime_ns))
    return events


def _before_in_words(before: Preceding | None) -> str:
    if before is None:
        return "No recorded event comes just before them more often than by chance."
    each = f"{before.before} of {before.moments} long ones" if before.moments > 1 else "The longest"
    when = f"{before.delay_ns / 1e6:,.0f} ms after" if before.delay_ns > 0 else "with"
    chance = "p < 0.0001" if before.p < 0.0001 else f"p = {before.p:.4f}"
    return f"{each} began {when} {_article(before.kind)} ({chance} that this is chance)."


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def _before_as_evidence(before: Preceding | None) -> dict[str, Scalar | None]:
    if before is None:
        return {}
    return {
        "before": before.kind,
        "long_stalls": before.moments,
        "long_stalls_after_it": before.before,
        "events_of_it": before.events,
        "after_it_ms": round(before.delay_ns / 1e6, 1),
        "p_after_it": float(f"{before.p:.1g}"),
    }


# What ran


def what_ran(trial: Trial, found: Stalls) -> list[Difference]:
    """The functions that ran more during the stalls, by their own share; empty without enough samples inside and
    outside."""
    inside, rest = stacks_of(trial, found)
    if min(inside.total(), rest.total()) < FEWEST_STACKS:
        return []
    return [each for each in differences(inside, rest) if each.share > each.other_share]


def _ran_in_words(ran: list[Difference]) -> str:
    if not ran:
        return ""
    first = ran[0]
    named = ", ".join(f"{each.name} in {each.share:.0%} (otherwise {each.other_share:.0%})" for each in ran[:FUNCTIONS])
    return f"Among {first.samples:,} CPU samples meanwhile (otherwise {first.other_samples:,}) it ran {named}."


def _ran_as_evidence(ran: list[Difference]) -> dict[str, Scalar | None]:
    if not ran:
        return {}
    evidence: dict[str, Scalar | None] = {"samples": ran[0].samples, "samples_otherwise": ran[0].other_samples}
    for number, each in enumerate(ran[:FUNCTIONS], 1):
        evidence[f"function_{number}"] = each.name
        evidence[f"function_{number}_percent"] = round(100 * each.share, 1)
        evidence[f"function_{number}_otherwise_percent"] = round(100 * each.other_share, 1)
    return evidence


def _remedy(trial: Trial, ran: list[Difference]) -> str:
    version = of_servers(trial, "stalled-server", [trial.subject])
    compare = f"compare with another version{version}, or make the events before them rarer"
    if ran:
        return f"See the flame graph of the stalls: the functions above the coloured frames delayed the answers. Then {compare}."
    return f"Sample the stacks (`--set hosts.{trial.subject}.profile=true`): the report then has a flame graph. Or {compare}."
