"""Latencies as `dnsrig-engine load` counted them: distributions, for each interval and for the whole.

latency.hlog is an HdrHistogram interval log (version 2): a line an interval and tag,
``Tag=due,START,LENGTH,MAX,PAYLOAD``, times in seconds, payload compressed. The tags are

- ``due``: from the moment at which a query was due to its answer. This is the latency that a client sees;
- ``sent``: its twin from the moment at which it was sent;
- ``lower``: what the server would have taken at least, had the instrument been in time: from sent, less what its own
  catch-up bursts queued among themselves. The truth lies between ``lower`` and ``due``, at each percentile
  (docs/explanation/latency.md); older logs do not have it;
- ``sent-lower``: the least that ``sent`` can have been, of another tool that counts in wide buckets;
- ``lag``: from due to sent, so that due = sent + lag;
- ``handshake``: from the start of a connection to its being ready, TLS included; for all transports but UDP.

A query without an answer counts in ``sent`` as the client's timeout, in ``due`` as that and its lag, and in ``lower``
as the timeout, too, unless it was part of such a burst.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from pathlib import Path

from hdrh.histogram import HdrHistogram

from dnsrig import foreign
from dnsrig.errors import DnsrigError
from dnsrig.rundir import FileRecord
from dnsrig.runs import rows

DIGITS = 3
"""Significant decimal digits of every recorded value."""

_EXACT_BITS = 11
"""Bits of the largest value that is kept exactly: 2 * 10**DIGITS, rounded up to a power of two."""


@dataclass(frozen=True)
class Histogram:
    """How often each latency occurred, values in ns, three significant digits."""

    values_ns: list[int]
    """Ascending; each the highest of those that are counted as one."""
    counts: list[int]
    """The count of each value, above zero."""

    @classmethod
    def of(cls, counted: dict[int, int]) -> Histogram:
        """From value in ns -> count."""
        present = sorted(value for value, count in counted.items() if count)
        return cls(present, [counted[value] for value in present])

    def __add__(self, other: Histogram) -> Histogram:
        return merge((self, other))

    @cached_property
    def total(self) -> int:
        """The sum of all counts: queries, not distinct values."""
        return sum(self.counts)

    @property
    def min_ns(self) -> int | None:
        """The lowest value that the first one may represent."""
        return self.values_ns[0] - _width(self.values_ns[0]) + 1 if self.values_ns else None

    @property
    def max_ns(self) -> int | None:
        return self.values_ns[-1] if self.values_ns else None

    @property
    def mean_ns(self) -> float | None:
        """The mean, with each value counted as the middle of its range; None without values."""
        if not self.values_ns:
            return None
        middles = (value - _width(value) + 1 + _width(value) // 2 for value in self.values_ns)
        return sum(middle * count for middle, count in zip(middles, self.counts)) / self.total

    def buckets(self) -> Iterator[tuple[int, int, int]]:
        """Lowest and highest value in ns of those that are counted as one, and how many there were."""
        for value, count in zip(self.values_ns, self.counts):
            yield value - _width(value) + 1, value, count

    def percentile(self, percent: float) -> int | None:
        """The smallest value in ns that at least ``percent`` of all do not exceed: an exact rank, nothing interpolated.

        The smallest of all for zero; None of an empty histogram.
        """
        found = self.percentiles((percent,))
        return found[0] if found else None

    def percentiles(self, percents: Iterable[float]) -> list[int]:
        """`percentile` of several, in one pass over those that ascend; empty of an empty histogram."""
        if not self.values_ns:
            return []
        found, index, reached = [], 0, self._reached
        for percent in percents:
            # As written, not as stored: the float 99.9 lies above 99.9, and would ask for a rank more.
            rank = max(1, math.ceil(Fraction(repr(float(percent))) / 100 * self.total))
            if index and reached[index - 1] >= rank:
                index = 0
            while index < len(reached) - 1 and reached[index] < rank:
                index += 1
            found.append(self.values_ns[index])
        return found

    @cached_property
    def _reached(self) -> list[int]:
        """How many lie at or below each value."""
        return list(accumulate(self.counts))


@dataclass(frozen=True)
class Interval:
    """What was due in one stretch of time."""

    offset_s: float
    """Time from the start of the first interval to the start of this one."""
    duration_s: float
    histogram: Histogram


class Latency:
    """latency.hlog of one trial; a tag is decoded when it is first asked for."""

    def __init__(
        self, path: Path, timeout_ns: int | None, recorded: FileRecord | None = None, inside: Path | None = None
    ) -> None:
        """``recorded``: the file as it was when the trial ended; ``inside``: as in `dnsrig.files`."""
        self.timeout_ns = timeout_ns
        """After which the client gave up; None where the summary does not say."""
        found = rows.content(path, recorded, inside)
        self._lines, wrong = _by_tag(found.data)
        self.damage = found.damage or (f"{path.name} is damaged at line {wrong}" if wrong else "")
        """What is wrong with the file; intervals are those before it."""
        self._intervals: dict[str, list[Interval]] = {}
        self._totals: dict[str, Histogram] = {}

    @property
    def tags(self) -> list[str]:
        return list(self._lines)

    @property
    def result(self) -> str:
        """The tag that is the result: ``due``, or ``sent`` of a tool that counts from there."""
        return "sent" if "due" not in self.tags and "sent" in self.tags else "due"

    @property
    def lower(self) -> str:
        """The tag of the lower ends of `result`, or itself where nothing is known of them."""
        lower = {"due": "lower", "sent": "sent-lower"}[self.result]
        return lower if lower in self.tags else self.result

    def intervals(self, tag: str) -> list[Interval]:
        """In the order in which they were written, up to the first that is damaged; none of a tag that is not there."""
        if tag not in self._intervals:
            first_s = min((lines[0].start_s for lines in self._lines.values()), default=0.0)
            self._intervals[tag] = list(_decoded(self._lines.get(tag, []), first_s))
        return self._intervals[tag]

    def total(self, tag: str) -> Histogram:
        """All intervals of ``tag`` as one."""
        if tag not in self._totals:
            self._totals[tag] = merge(interval.histogram for interval in self.intervals(tag))
        return self._totals[tag]


@dataclass(frozen=True)
class _Line:
    start_s: float
    duration_s: float
    payload: str


def merge(histograms: Iterable[Histogram]) -> Histogram:
    """All of ``histograms`` as one."""
    counted: dict[int, int] = {}
    for histogram in histograms:
        for value, count in zip(histogram.values_ns, histogram.counts):
            counted[value] = counted.get(value, 0) + count
    return Histogram.of(counted)


def _width(value: int) -> int:
    """How many values are counted as the one that ``value`` belongs to."""
    return 1 << max(0, value.bit_length() - _EXACT_BITS)


def _by_tag(data: bytes) -> tuple[dict[str, list[_Line]], int]:
    """The lines of each tag, up to the first line that is not a record; and the number of the first line that is cut or
    damaged, 0 if all are whole."""
    found: dict[str, list[_Line]] = {}
    damaged = 0
    for number, line in enumerate(
        data.decode(errors="replace").removesuffix("\n").split("\n") if data else (), start=1
    ):
        if line.startswith(("#", '"')):  # comments, and the legend that some writers put first
            continue
        tag, _, rest = line.partition(",")
        fields = rest.split(",")
        try:
            start_s, duration_s = float(fields[0]), float(fields[1])
            payload = fields[3]
        except (ValueError, IndexError):
            return found, damaged or number
        if not tag.startswith("Tag="):
            return found, damaged or number
        damaged = damaged or (0 if _is_whole(payload) else number)
        found.setdefault(tag.removeprefix("Tag="), []).append(_Line(start_s, duration_s, payload))
    return found, damaged


def _is_whole(payload: str) -> bool:
    """Whether the checksum in a compressed histogram holds."""
    try:
        _inflated(payload)
    except ValueError:
        return False
    return True


def _inflated(payload: str) -> bytes:
    """What zlib compressed, after eight bytes of the format's own. Raises ValueError."""
    return foreign.inflated(base64.b64decode(payload, validate=True)[8:])


def decode(payload: str) -> HdrHistogram:
    """The histogram in a line of a log. Raises ValueError."""
    _inflated(payload)  # the library inflates without a limit
    try:
        return HdrHistogram.decode(payload)
    except Exception as error:  # the library lets through whatever base64, zlib, struct and its own checks raise
        raise ValueError("it is no histogram") from error


def _decoded(lines: Iterable[_Line], first_s: float) -> Iterator[Interval]:
    known: dict[int, int] = {}
    for line in lines:
        try:
            histogram = decode(line.payload)
        except ValueError:
            return
        if (histogram.significant_figures, histogram.lowest_trackable_value) != (DIGITS, 1):
            raise DnsrigError(
                f"a latency log with {histogram.significant_figures} digits, where {DIGITS} are expected",
                hint="was it written by another program?",
            )
        yield Interval(line.start_s - first_s, line.duration_s, _counted(histogram, known))


def _counted(histogram: HdrHistogram, known: dict[int, int]) -> Histogram:
    """Its values and counts; ``known``, index -> value, saves working each out again for every interval."""
    present = counts(histogram)
    for index in present:
        if index not in known:
            known[index] = histogram.get_highest_equivalent_value(histogram.get_value_from_index(index))
    return Histogram([known[index] for index in present], list(present.values()))


def counts(histogram: HdrHistogram) -> dict[int, int]:
    """Index of a count in ``histogram`` -> the count, where it is above zero."""
    found = memoryview(histogram.encoder.get_counts()).cast("B").cast("q").tolist()
    return {index: count for index, count in enumerate(found) if count > 0}
