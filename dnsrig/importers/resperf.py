"""resperf (DNS-OARC): the file that ``-P`` writes.

Source: its ``src/resperf.c``. A line is a bin of half a second, and its time the bin's middle. All figures belong to
the bin in which a query was *sent*, its answer too. The last bin, which may be cut, is never written. Older versions
have fewer columns.
"""

from __future__ import annotations

from itertools import pairwise

from dnsrig import foreign
from dnsrig.importers import US, Asked, NotUnderstood, Result, Stretch, lines

FILES = "the file that `-P` writes (by default `resperf.gnuplot`)"
COLUMNS = ("time", "target_qps", "actual_qps", "responses_per_sec")
LEFT_OUT = ("failures_per_sec", "avg_latency", "connections", "conn_avg_latency")
DEFAULT_BIN_S = 0.5


def read(data: bytes, asked: Asked) -> Result:
    names: list[str] = []
    rows: list[dict[str, float]] = []
    unknown = NotUnderstood("column")
    for line in lines(data):
        if line.startswith("#"):
            names = line.lstrip("# ").split()
            unknown.fields(dict.fromkeys(names), (*COLUMNS, *LEFT_OUT))
        elif line.strip():
            rows.append(dict(zip(names, map(float, line.split()), strict=True)))
            if len(rows) > foreign.MOST_ROWS:
                raise foreign.Refused(f"it has more than {foreign.MOST_ROWS:,} rows")
    if not rows or not {*COLUMNS} <= rows[0].keys() or len({len(row) for row in rows}) > 1:
        raise ValueError(f"it has no columns {', '.join(COLUMNS)}: is it the file that `-P` names?")
    width_s = next((later["time"] - first["time"] for first, later in pairwise(rows)), DEFAULT_BIN_S)
    if width_s <= 0:
        raise ValueError("its times do not rise")
    stretches = [_stretch(row, width_s) for row in rows]
    return Result(
        version="",
        basis="sending",
        model="ramp",
        resolution_ns=US,
        duration_s=width_s * len(rows),
        sent=sum(stretch.sent for stretch in stretches),
        answered=sum(stretch.answered for stretch in stretches),
        timeouts=sum(stretch.timeouts for stretch in stretches),
        capacity_qps=max(row["responses_per_sec"] for row in rows),
        stretches=stretches,
        missing=[
            "There is no distribution of latency, only the mean of each bin.",
            "The last bin of sending is not in the file, nor are its queries in these counts.",
            "Its capacity is the largest rate of answers in a single bin, without repeats and without a limit on latency.",
            *unknown.sentences,
        ],
    )


def _stretch(row: dict[str, float], width_s: float) -> Stretch:
    sent, answered = round(row["actual_qps"] * width_s), round(row["responses_per_sec"] * width_s)
    if min(sent, answered) < 0:
        raise ValueError("a rate is below zero")
    return Stretch(row["time"] - width_s / 2, width_s, sent, answered, timeouts=max(0, sent - answered))
