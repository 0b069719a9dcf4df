"""dnspyre 3.12: the file that ``--csv`` writes, or what ``--json`` prints.

Source: its ``pkg/reporter``. The CSV has the buckets of an HDR histogram, in ns, empty ones as well; the JSON has whole
milliseconds. The clock starts when a query is handed to the library that connects and sends.
"""

from __future__ import annotations

import json
from typing import Any

from dnsrig.importers import MS, Asked, Bucket, Result, Stretch, ends, lines, number

FILES = "the file that `--csv` writes, or what `--json` prints"
HEADING = "From (ns), To (ns), Count"


def read(data: bytes, asked: Asked) -> Result:
    return _json(json.loads(data)) if data.lstrip().startswith(b"{") else _csv(data)


def _csv(data: bytes) -> Result:
    heading, *rows = lines(data)
    if heading.strip() != HEADING:
        raise ValueError(f"its first line is not {HEADING!r}")
    entries = [[number(cell) for cell in row.split(",")] for row in rows if row.strip()]
    if any(len(entry) != 3 for entry in entries):
        raise ValueError("a line has not three numbers")
    buckets = [Bucket(*entry) for entry in entries if entry[2]]
    answered = sum(bucket.queries for bucket in buckets)
    missing = [
        "How many queries were sent, how long it took and what was not answered: `--json` says it, in whole milliseconds.",
    ]
    return Result(
        version="",
        basis="sending",
        model="closed",
        duration_s=0.0,
        resolution_ns=1,
        answered=answered,
        stretches=[Stretch(0.0, 0.0, answered=answered, tags=ends("sending", buckets))],
        missing=missing,
    )


def _json(told: Any) -> Result:
    sent = number(told["totalRequests"])
    errors, duration_s = number(told.get("totalIOErrors", 0)), float(told["benchmarkDurationSeconds"])
    buckets = [
        Bucket(number(each["latencyMs"]) * MS, (number(each["latencyMs"]) + 1) * MS - 1, number(each["count"]))
        for each in told.get("latencyDistribution") or []
    ]
    return Result(
        version="",
        basis="sending",
        model="closed",
        duration_s=duration_s,
        resolution_ns=MS,
        sent=sent,
        answered=sent - errors,
        timeouts=errors,
        rcodes={str(name): number(count) for name, count in (told.get("responseRcodes") or {}).items()},
        stretches=[Stretch(0.0, duration_s, sent, sent - errors, errors, tags=ends("sending", buckets))],
        missing=[*([f"{errors:,} queries without an answer are not among its latencies."] if errors else [])],
    )
