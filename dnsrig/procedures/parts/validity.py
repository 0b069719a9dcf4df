"""Validity of a trial: the one place that decides whether a result belongs to the server, or to the instruments and
links around it.

At a fixed rate, a generator keeps up if it sends every query that is due, early enough for the latency to be the
server's. In a closed loop nothing is due: there, a generator that never waits did not keep up. In a ramp, the engine
itself reports which steps it could not send. The manipulation checks of a trial are in `dnsrig.checks`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dnsrig.lab.links import selftest
from dnsrig.lab.links.expectation import TAIL_SLACK_MS
from dnsrig.procedures import Result
from dnsrig.rundir import PathSpec, TrialRecord
from dnsrig.runs import lag
from dnsrig.runs.load_result import LoadResult
from dnsrig.text import digits

BUSY_SHARE_MAX = 0.98
WRONG_SHARE_MAX = 0.001
"""Largest share of answers that may belong to earlier queries: it hardly moves any percentile up to the 99th."""
BUSY_FROM_S = 0.2
"""Shortest transfer that shows how busy its instrument was: starting is a part of a shorter one."""
MISSED_TICKS_ALLOWED = 0.1
"""Share of its ticks that `watch` may miss before the trial counts as badly observed."""
LATE_MS_MAX = TAIL_SLACK_MS
"""Lateness of the slow end of a link that its self-test allows, too. On 2 CPUs the worst of 101 trials under the
running kernel had 3.2 ms."""
LATE_SHARE_MAX = 0.1
"""Lateness of a link as a share of its delay. No sender takes such a packet for lost: its time-out is the round trip
and at least 200 ms more (TCP_RTO_MIN of Linux), which is longer for all delays below 2 s."""
LINK_DROPS_SHARE_MAX = 0.1
"""Packets that a link dropped at its ends, as a share of the packets that it was asked to lose: throughput falls with
the square root of the loss (M. Mathis et al., The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm,
1997), so by 5 %. A path without loss may drop nothing at its ends; in 155 trials on 2 CPUs none did."""


def of_links(tests: list[dict[str, Any]]) -> Result | None:
    """`invalid` if a link is not as asked, by its self-test: such a trial does not begin."""
    wrong = [(test, what) for test in tests for what in test.get("wrong", [])]
    if not wrong:
        return None
    test, what = wrong[0]
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    return Result("invalid", f"the link {test['from']} - {test['to']} is not as asked: {what}{more}")


def judged(record: TrialRecord) -> TrialRecord:
    """``record``, with the outcome `invalid` if the instruments or the links were not as they must be."""
    if all(test["works"] for test in record.link_tests) and (why := _why_invalid(record)):
        record.outcome, record.reason = "invalid", why
    return record


def _why_invalid(record: TrialRecord) -> str:
    if not all(record.link_summary(link) for link in record.spec.links if link.emulated):
        return "an emulated link ended before the trial did"
    if record.outcome in ("done", "timeout") and (why := next(_late_links(record), "")):
        return why
    watch = record.instruments.get("watch", {})
    listed = watch.get("sockets") or {}
    if dropped := watch.get("rows_dropped", 0) + listed.get("rows_dropped", 0):
        return f"watch dropped {dropped:,} samples"
    missed = watch.get("missed_ticks", 0)
    ticks = watch.get("samples", 0) + missed
    if record.outcome == "done" and missed > MISSED_TICKS_ALLOWED * ticks:
        return f"watch missed {missed} of {ticks} ticks: the instruments' CPU was overloaded"
    return ""


def _late_links(record: TrialRecord) -> Iterator[str]:
    """A sentence for each direction of an emulated link that did not do its work."""
    for link in filter(lambda link: link.emulated, record.spec.links):
        summary = record.link_summary(link)
        if summary.get("rows_dropped"):
            yield f"{link.name}: {summary['rows_dropped']:,} rows of the link's account were dropped"
        for name, path in (("forward", link.forward), ("reverse", link.reverse)):
            if why := why_link_did_not(summary.get(name, {}), path or PathSpec(), tick_s=selftest.tick_s()):
                yield f"{link.name}, {name}: {why}"


def why_not(load: LoadResult) -> str:
    """Why the generator of a load did not keep up, in a sentence with the numbers; empty if it did."""
    if load.wrong_matches_max > WRONG_SHARE_MAX * load.answered:
        return (
            f"up to {load.wrong_matches_max:,} of {load.answered:,} answers may belong to earlier queries with the same"
            " message id: more clients have more ids"
        )
    if load.intervals_lost:
        return f"the instrument lost {load.intervals_lost:,} intervals of what it saw"
    if load.model == "ramp":
        return _ramp(load)
    if load.model == "closed":
        return "" if load.busy_share < BUSY_SHARE_MAX else _busy(load.busy_share)
    return _rate(load)


def why_transfer_did_not(summary: Mapping[str, Any]) -> str:
    """Why the instrument `transfer` did not keep up, from its ``summary``; empty if it did.

    It is never idle if it is the bottleneck.
    """
    if summary["rows_lost"]:
        return f"the instrument lost {summary['rows_lost']:,} rows of what it saw"
    if summary["elapsed_ns"] / 1e9 < BUSY_FROM_S or summary["busy_share"] < BUSY_SHARE_MAX:
        return ""
    return _busy(summary["busy_share"])


def why_link_did_not(summary: Mapping[str, Any], path: PathSpec, *, tick_s: float = 0.0) -> str:
    """Why one direction of an emulated link did not do its work; empty if it did, and for netem, which reports nothing.

    ``summary``: the report of `link` about that direction; ``tick_s``: resolution of the kernel's timers, below which
    no program wakes in time.
    """
    late = summary.get("late_ns")
    if late is None:
        return ""
    late_ms, allowed_ms = late["p99"] / 1e6, max(LATE_MS_MAX, LATE_SHARE_MAX * path.delay_ms) + 1e3 * tick_s
    if late_ms > allowed_ms:
        return (
            f"the link was late: 1 % of its packets arrived {digits(late_ms)} ms after they were due or later,"
            f" where {digits(allowed_ms)} ms are allowed"
        )
    dropped = (summary.get("missed") or 0) + summary["refused"]
    if dropped > LINK_DROPS_SHARE_MAX * summary["lost"]:
        return (
            f"the link was too slow: {dropped:,} packets beside the {summary['packets']:,} that it carried were dropped at"
            f" its ends, and {summary['lost']:,} as asked for"
        )
    return ""


def _rate(load: LoadResult) -> str:
    if load.unsent:
        why = ", as no message id was free: more clients have more ids" if load.waited_for_id else ""
        return f"the instrument never sent {load.unsent:,} of {load.due:,} queries that were due{why}"
    return f"the instrument was late: {late}" if (late := lag.why_not(load)) else ""


def _busy(share: float) -> str:
    return (
        f"the instrument was the bottleneck: its busiest thread had work {share:.0%} of the time"
        f" (less than {BUSY_SHARE_MAX:.0%} is wanted)"
    )


def _ramp(load: LoadResult) -> str:
    if not load.capacity_is_lower_bound or load.capacity_qps is None or load.held_all_rates:
        return ""
    return (
        f"the instrument was the bottleneck: the server held {load.capacity_qps:,.0f} QPS, and the instrument could"
        " not find out whether it holds more"
    )
