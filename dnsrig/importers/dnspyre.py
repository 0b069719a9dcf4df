"""dnspyre 3.12: the file that ``--csv`` writes, or what ``--json`` prints.

Source: its ``pkg/reporter``. The CSV has the buckets of an HDR histogram, in ns, empty ones as well. The JSON has the
middle of each bucket, rounded (``durationutils.go``) and cut to whole milliseconds; how wide the buckets are it does
not say, and they are taken as of ``--precision 1``, the default, whose buckets are the widest. The clock starts when a
query is handed to the library that connects and sends. An answer with a wrong id has no latency, as one that never
came.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dnsrig import foreign
from dnsrig.importers import (
    LONGEST_QUOTED,
    MS,
    TAGS,
    US,
    Asked,
    Bucket,
    NotUnderstood,
    Result,
    Stretch,
    ends,
    lines,
    number,
    unanswered,
)

FILES = "the file that `--csv` writes, or what `--json` prints"
FIELDS = (
    *("totalRequests", "totalSuccessResponses", "totalNegativeResponses", "totalErrorResponses", "totalIOErrors"),
    *("totalIDmismatch", "totalTruncatedResponses", "responseRcodes", "questionTypes", "queriesPerSecond"),
    *("benchmarkDurationSeconds", "latencyStats", "latencyDistribution", "totalDNSSECSecuredDomains"),
    *("dohHTTPResponseStatusCodes", "extendedDNSErrors"),
)
HALF_ROUNDED = ((60_000, 5_000 * MS), (1_000, 5 * MS), (0, 5 * US))
"""From so many milliseconds on: half of what it rounds to, in ns."""
WIDEST = 32
"""Parts of its middle that a bucket of one significant digit has on either side: it has 16 to 31 steps of its width."""
HEADING = "From (ns), To (ns), Count"


def read(data: bytes, asked: Asked) -> Result:
    return _json(foreign.json_value(data), asked.timeout_ns) if data.lstrip().startswith(b"{") else _csv(data)


def _csv(data: bytes) -> Result:
    rows = lines(data)
    if next(rows, "").strip() != HEADING:
        raise ValueError(f"its first line is not {HEADING!r}")
    tags = ends("sending", _buckets(rows))
    answered = sum(tags.get(TAGS["sending"][0], {}).values())
    missing = [
        "How many queries were sent, how long it took and what was not answered: `--json` says it, in whole milliseconds.",
        "Queries without an answer are not among its latencies, and their number is not in the file.",
    ]
    return Result(
        version="",
        basis="sending",
        model="closed",
        duration_s=0.0,
        resolution_ns=1,
        answered=answered,
        stretches=[Stretch(0.0, 0.0, answered=answered, tags=tags)],
        missing=missing,
    )


def _buckets(rows: Iterator[str]) -> Iterator[Bucket]:
    for row in rows:
        cells = row.split(",")
        if len(cells) == 3:
            yield Bucket(*map(number, cells))
        elif row.strip():
            raise ValueError(f"{row[:LONGEST_QUOTED]!r} is not three numbers")


def _json(told: Any, timeout_ns: int | None) -> Result:
    sent = number(told["totalRequests"])
    lost = number(told.get("totalIOErrors", 0)) + number(told.get("totalIDmismatch", 0))
    duration_s = float(told["benchmarkDurationSeconds"])
    buckets = [
        _around(number(each["latencyMs"]), number(each["count"])) for each in told.get("latencyDistribution") or []
    ]
    if buckets or not sent - lost:
        buckets += unanswered(lost, timeout_ns)
    return Result(
        version="",
        basis="sending",
        model="closed",
        duration_s=duration_s,
        resolution_ns=MS,
        sent=sent,
        answered=max(0, sent - lost),
        timeouts=lost,
        rcodes={str(name): number(count) for name, count in (told.get("responseRcodes") or {}).items()},
        timeout_ns=timeout_ns,
        stretches=[Stretch(0.0, duration_s, sent, max(0, sent - lost), lost, tags=ends("sending", buckets))],
        missing=_not_understood(told),
    )


def _around(middle_ms: int, queries: int) -> Bucket:
    """The bucket whose middle is printed as ``middle_ms``."""
    rounded = next(half_ns for least_ms, half_ns in HALF_ROUNDED if middle_ms >= least_ms)
    low, high = middle_ms * MS - rounded, (middle_ms + 1) * MS + rounded
    return Bucket(max(0, low - low // WIDEST), high + high // WIDEST, queries)


def _not_understood(told: Any) -> list[str]:
    unknown = NotUnderstood("field")
    unknown.fields(told, FIELDS)
    return unknown.sentences
