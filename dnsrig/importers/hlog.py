"""An HdrHistogram interval log (``.hlog``), as many programs write it, `dnsrig load` among them.

Source: `HistogramLogReader.java` of HdrHistogram: comments ``#[StartTime: s …]`` and ``#[BaseTime: s …]``, a legend in
quotes, then ``[Tag=t,]start,length,max,payload``, times in seconds. Neither the unit of values nor when the clock
started is in it. The tags that `dnsrig load` writes say it (`dnsrig.runs.latency`); of other logs the user must.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from hdrh.histogram import HdrHistogram

from dnsrig import foreign
from dnsrig.importers import (
    LONGEST_NS,
    LONGEST_QUOTED,
    MOST_BUCKETS_OF_ALL,
    MOST_QUOTED,
    Asked,
    Bucket,
    Counted,
    NotUnderstood,
    Result,
    S,
    Stretch,
    ends,
    lines,
    seconds,
)
from dnsrig.rundir import DNSRIG_LOAD
from dnsrig.runs import latency

FILES = "an HdrHistogram interval log; of another program than dnsrig with `--counted-from` and `--unit`"
OURS = ("due", "sent", "lower", "sent-lower", "lag", "handshake")
"""Tags (`dnsrig.runs.latency`)."""
_TIME = re.compile(r"#\[(StartTime|BaseTime): ([\d.]+)")
Line = tuple[int, str, float, float, str]
"""Number, tag, start and length in seconds, payload."""


def read(data: bytes, asked: Asked) -> Result:
    found = list(_lines(data))
    if not found:
        raise ValueError("it has no line of an interval log")
    tags = {tag for _, tag, *_ in found}
    ours = "due" in tags
    if not ours and asked.basis is None:
        raise ValueError("when its clock started is not in it: say it with --counted-from")
    basis = "due" if ours else asked.basis or "sending"
    begun_s = min(start_s for _, _, start_s, _, _ in found)
    stretches: dict[tuple[float, float], dict[str, Counted]] = {}
    total = 0
    for number, tag, start_s, length_s, payload in found:
        part = stretches.setdefault((start_s - begun_s, length_s), {})
        buckets = list(_buckets(_histogram(number, payload), asked.unit_ns))
        total += len(buckets)
        if total > MOST_BUCKETS_OF_ALL:
            raise foreign.Refused(f"it has more than {MOST_BUCKETS_OF_ALL:,} buckets of latencies")
        for name, counted in ({tag: _upper(buckets)} if ours else ends(basis, buckets)).items():
            known = part.setdefault(name, {})
            for value, count in counted.items():
                known[value] = known.get(value, 0) + count
    parts = [
        Stretch(start_s, length_s, tags=tags)
        for (start_s, length_s), tags in sorted(stretches.items(), key=lambda item: item[0])
    ]
    return Result(
        version="",
        tool=DNSRIG_LOAD if ours else "",
        basis=basis,
        duration_s=max(part.start_s + part.duration_s for part in parts),
        resolution_ns=asked.unit_ns,
        started_ns=_started(data),
        stretches=parts,
        missing=[
            "It does not tell how many queries were sent, and which of them had no answer.",
            *([] if ours or len(tags) == 1 else [f"{len(tags)} tags are counted together: {_quoted(tags)}."]),
            *_not_understood(tags if ours else ()),
        ],
    )


def _quoted(tags: Iterable[str]) -> str:
    first = [repr(tag[:LONGEST_QUOTED]) for tag in sorted(tags)[:MOST_QUOTED]]
    return ", ".join(first)


def _not_understood(tags: Iterable[str]) -> list[str]:
    unknown = NotUnderstood("tag")
    unknown.fields(dict.fromkeys(sorted(tags)), OURS)
    return unknown.sentences


def _lines(data: bytes) -> Iterator[Line]:
    for number, line in enumerate(lines(data), 1):
        if number > foreign.MOST_ROWS:
            raise foreign.Refused(f"it has more than {foreign.MOST_ROWS:,} lines")
        if not line or line.startswith(("#", '"')):
            continue
        first, _, rest = line.partition(",")
        tag = first.removeprefix("Tag=") if first.startswith("Tag=") else ""
        fields = (rest if tag else line).split(",")
        if len(fields) != 4:
            raise ValueError(f"line {number} is not of an interval log")
        start_s, length_s = (seconds(time) / S for time in fields[:2])
        yield number, tag, start_s, length_s, fields[3]


def _histogram(line: int, payload: str) -> HdrHistogram:
    try:
        return latency.decode(payload)
    except ValueError as error:
        raise ValueError(f"line {line} is damaged: {error}") from error


def _buckets(histogram: HdrHistogram, unit_ns: int) -> Iterator[Bucket]:
    """Buckets of a histogram: a value counts for all from its lowest to its highest equivalent; the last is whole."""
    for index, count in latency.counts(histogram).items():
        low = histogram.get_value_from_index(index)
        high = histogram.get_highest_equivalent_value(low)
        low_ns, high_ns = (min(end, LONGEST_NS) for end in (low * unit_ns, (high + 1) * unit_ns - 1))
        yield Bucket(low_ns, high_ns, count)


def _upper(buckets: list[Bucket]) -> Counted:
    return {bucket.high_ns: bucket.queries for bucket in buckets}


def _started(data: bytes) -> int:
    times = dict(_TIME.findall(data[:4096].decode(errors="replace")))
    return seconds(times.get("StartTime") or times.get("BaseTime") or 0)
