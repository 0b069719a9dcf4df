"""flamethrower 0.12 (DNS-OARC): the file that ``-o`` writes.

Source: its ``flame/metrics.cpp``, `flush_to_disk`: a header, then a line a period and generator, and totals. A file is
appended to, and its run id is the address of an object, so it is not unique: what counts is what follows the last
header. Its clock starts when a query is handed to the socket (``flame/trafgen.cpp``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from dnsrig import foreign
from dnsrig.importers import MS, Asked, NotUnderstood, Result, S, Stretch, lines, number, of_all
from dnsrig.runs.load_result import Figures

FILES = "the file that `-o` writes"
HEADER = ("version", "cmdline", "start_timestamp", "run_id")
COUNTS = ("s_count", "r_count", "timeouts", "bad_count", "net_errors", "tcp_connections")
LATENCIES = ("response_avg_ms", "response_min_ms", "response_max_ms")
PERIOD = (
    *("period_number", "run_id", "runtime_s", "trafgen_id", "in_flight", "pkt_size_avg", "responses"),
    *(f"period_{name}" for name in (*COUNTS, *LATENCIES)),
)
TOTAL = (
    *("period_number", "run_id", "runtime_s", "total_responses", "total_qps_r_avg", "total_qps_s_avg"),
    *(f"{of}_{name}" for of in ("total", "period") for name in (*COUNTS, *LATENCIES, "pkt_size_avg", "in_flight")),
)
DEFAULT_TIMEOUT_S = 3


def read(data: bytes, asked: Asked) -> Result:
    header, *rest = _last_run(foreign.json_value(line) for line in lines(data) if line.strip())
    totals = [event for event in rest if "total_s_count" in event]
    if not totals:
        raise ValueError("there are no totals at its end: was flamethrower interrupted?")
    total, command = totals[-1], str(header["cmdline"])
    rate, timeout = (re.search(rf" -{name} ?(\d+)", command) for name in "Qt")
    answered, sent = number(total["total_r_count"]), number(total["total_s_count"])
    lost = max(0, sent - answered)
    timeout_ns = int(timeout[1]) * S if timeout else asked.timeout_ns or DEFAULT_TIMEOUT_S * S
    return Result(
        version=str(header["version"]),
        basis="sending",
        command=command,
        model="rate" if rate else "closed",
        asked_qps=float(rate[1]) if rate else None,
        resolution_ns=1,
        started_ns=_started(str(header.get("start_timestamp", ""))),
        duration_s=float(total["runtime_s"]),
        sent=sent,
        answered=answered,
        timeouts=lost,
        rcodes={str(name): number(count) for name, count in total.get("total_responses", {}).items()},
        timeout_ns=timeout_ns,
        told=of_all(_told(total), answered, lost, timeout_ns),
        stretches=_periods(event for event in rest if "period_s_count" in event),
        missing=[
            "There is no distribution of latency: only mean, least and largest.",
            "Its mean is one of the means of its generators and periods, however many queries each had.",
            "A query that had to wait to be sent is not counted as late.",
            *_not_understood(header, rest),
        ],
    )


def _last_run(events: Iterator[Any]) -> list[Any]:
    """What follows the last header, which is the first of them."""
    found: list[Any] = []
    for event in events:
        if "cmdline" in event:
            found = [event]
        elif found:
            found.append(event)
        if len(found) > foreign.MOST_ROWS:
            raise foreign.Refused(f"it has more than {foreign.MOST_ROWS:,} periods")
    if not found:
        raise ValueError("it has no header with a `cmdline`")
    return found


def _not_understood(header: Any, rest: Iterable[Any]) -> list[str]:
    unknown = NotUnderstood("field")
    unknown.fields(header, HEADER)
    for event in rest:
        unknown.fields(event, TOTAL if "total_s_count" in event else PERIOD)
    return unknown.sentences


def _told(total: Any) -> Figures:
    names = {"mean": "total_response_avg_ms", "min": "total_response_min_ms", "max": "total_response_max_ms"}
    # Its mean is null from the first period on in which nothing was answered.
    return {name: float(total[key]) * MS for name, key in names.items() if total[key] is not None}


def _periods(events: Iterable[Any]) -> list[Stretch]:
    """A period of all generators together, from the end of the one before it to its own."""
    counts: dict[int, Counter[str]] = {}
    ends_s: dict[int, float] = {}
    for event in events:
        period = number(event["period_number"])
        names = ("period_s_count", "period_r_count", "period_timeouts")
        counts.setdefault(period, Counter()).update({name: number(event[name]) for name in names})
        ends_s[period] = max(ends_s.get(period, 0.0), float(event["runtime_s"]))
    found, begun_s = [], 0.0
    for period in sorted(counts):
        sent, answered, timeouts = (counts[period][f"period_{name}"] for name in ("s_count", "r_count", "timeouts"))
        found.append(Stretch(begun_s, max(0.0, ends_s[period] - begun_s), sent, answered, timeouts))
        begun_s = max(begun_s, ends_s[period])
    return found


def _started(text: str) -> int:
    try:
        return round(datetime.fromisoformat(text).timestamp()) * 1_000_000_000
    except ValueError:
        return 0
