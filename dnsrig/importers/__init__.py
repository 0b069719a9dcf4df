"""What other tools measured, read from their own files. One tool a file.

An importer is a module of this folder, or of another package (`dnsrig.discovery`), with

- ``FILES``: what files it reads, in a few words,
- ``read(data: bytes, asked: Asked) -> Result``: one file is one repeat. It raises ``ValueError`` with a sentence where
  ``data`` is not what the tool writes.

Importers read text and touch no file; `dnsrig.importers._run` makes a run directory of results. A tool says what it
measured in its own way: nothing is made up for what it leaves out, and ``Result.missing`` names that.

A query without an answer is a latency of at least the tool's timeout (`unanswered`), whatever the tool makes of it: if
it were left out, a server would become faster by not answering. A line or a field that an importer does not know is
reported (`NotUnderstood`), because a distribution may be in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Any, Literal, NamedTuple

from dnsrig import discovery, foreign
from dnsrig.errors import UsageError
from dnsrig.rundir import ClockBasis, Scalar
from dnsrig.runs.load_result import Figures

S, MS, US = 1_000_000_000, 1_000_000, 1_000
"""In ns."""
LONGEST_NS = 3_600 * S
"""A latency above is no latency, but a damaged file."""
MOST_BUCKETS = 2_000_000
"""Buckets with different bounds, in one stretch of time."""
MOST_BUCKETS_OF_ALL = 8_000_000
"""Buckets of all stretches together; each takes some 100 bytes of memory."""
MOST_QUOTED, LONGEST_QUOTED = 3, 60
"""Lines or fields that are quoted of those that are not understood, and their characters."""
TAGS: dict[ClockBasis, tuple[str, str]] = {"due": ("due", "lower"), "sending": ("sent", "sent-lower")}
"""Where the upper and the lower ends of latencies lie in latency.hlog."""
Counted = dict[int, int]
"""Value in ns -> how many."""
lines, number, seconds = foreign.lines, foreign.count, foreign.nanoseconds
"""Readers of a text, of a count, and of a time in seconds, which becomes ns: within the limits of all foreign files."""


class Bucket(NamedTuple):
    """So many latencies that lie between two ends, both in ns and both possible."""

    low_ns: int
    high_ns: int
    queries: int


@dataclass(frozen=True)
class Asked:
    """What the user knows of files that do not state it themselves."""

    basis: ClockBasis | None = None
    unit_ns: int = 1
    """Unit of values in a file that does not name one."""
    timeout_ns: int | None = None
    """Time after which the tool gave a query up."""


@dataclass(frozen=True)
class Stretch:
    """What became of the queries of one stretch of time."""

    start_s: float
    duration_s: float
    sent: int = 0
    answered: int = 0
    timeouts: int = 0
    tags: Mapping[str, Counted] = field(default_factory=dict)
    """Latencies by the tag of latency.hlog."""


@dataclass(frozen=True)
class Result:
    """What one file of a tool says."""

    version: str
    basis: ClockBasis
    duration_s: float
    model: Literal["rate", "closed", "ramp", "stream"] = "rate"
    command: str = ""
    resolution_ns: int | None = None
    """Resolution of a single latency; None if the tool does not state it."""
    started_ns: int = 0
    """By the wall clock; 0: not told."""
    sent: int = 0
    answered: int = 0
    timeouts: int = 0
    rcodes: Mapping[str, int] = field(default_factory=dict)
    asked_qps: float | None = None
    capacity_qps: float | None = None
    """Result of a ramp."""
    timeout_ns: int | None = None
    tool: str = ""
    """Name of the program that wrote the file, if the file contains it; empty: the importer has the tool's name."""
    told: Figures = field(default_factory=dict)
    """Figures that the tool printed for all latencies, beside a distribution or without one: ``mean``, ``min``,
    ``max``."""
    figures: Mapping[str, Figures] = field(default_factory=dict)
    """Series of a summary -> its figures, if the tool has figures and no distribution."""
    axes: Mapping[str, Scalar] = field(default_factory=dict)
    """Values of axes that the file contains: the rate and the transport that the tool was asked for."""
    stretches: Sequence[Stretch] = ()
    """In their order. Where only the whole is known, one."""
    missing: Sequence[str] = ()
    """What the file does not tell, a sentence each."""


@dataclass
class NotUnderstood:
    """Lines or fields that an importer does not know: how many, and the first of them."""

    what: str
    """``line`` or ``field``."""
    total: int = 0
    first: dict[str, None] = field(default_factory=dict)

    def add(self, text: str) -> None:
        self.total += 1
        if len(self.first) < MOST_QUOTED:
            self.first.setdefault(text[:LONGEST_QUOTED])

    def fields(self, told: Mapping[str, Any], known: Collection[str], where: str = "") -> None:
        """Add the names in ``told`` that are not ``known``, each with the path ``where`` before it."""
        for name in told:
            if name not in known:
                self.add(f"{where}{name}")

    @property
    def sentences(self) -> list[str]:
        """One; none if everything was understood."""
        if not self.total:
            return []
        what = f"1 {self.what} is" if self.total == 1 else f"{self.total:,} {self.what}s are"
        return [f"{what} not understood and left out: {', '.join(map(repr, self.first))}."]


@cache
def importers() -> dict[str, ModuleType]:
    """By the name of the tool."""
    return discovery.plugins(__name__, discovery.having("FILES", "read"))


def importer(tool: str) -> ModuleType:
    found = importers().get(tool)
    if found is None:
        raise UsageError(f"there is no importer for {tool!r}", hint=f"choose one of {', '.join(importers())}")
    return found


def ends(basis: ClockBasis, buckets: Iterable[Bucket]) -> dict[str, Counted]:
    """``buckets`` by tag: their upper ends, and their lower ends where any is wider than nothing."""
    upper, lower = Counter[int](), Counter[int]()
    for bucket in buckets:
        if not 0 <= bucket.low_ns <= bucket.high_ns <= LONGEST_NS or bucket.queries < 0:
            raise ValueError(f"no bucket of latencies: {bucket.low_ns} to {bucket.high_ns} ns, {bucket.queries} times")
        if bucket.queries:
            upper[bucket.high_ns] += bucket.queries
            lower[bucket.low_ns] += bucket.queries
            if max(len(upper), len(lower)) > MOST_BUCKETS:
                raise foreign.Refused(f"it has more than {MOST_BUCKETS:,} different latencies")
    tags = TAGS[basis]
    return {tags[0]: dict(upper)} | ({tags[1]: dict(lower)} if lower != upper else {}) if upper else {}


def unanswered(queries: int, timeout_ns: int | None) -> list[Bucket]:
    """Queries without an answer, as latencies: at the time after which the tool gave them up."""
    if queries and timeout_ns is None:
        raise ValueError(
            f"{queries:,} queries had no answer, and the file does not contain the tool's timeout: add --timeout, e.g. --timeout 5s"
        )
    return [Bucket(timeout_ns, timeout_ns, queries)] if queries and timeout_ns is not None else []


def of_all(told: Figures, answered: int, lost: int, timeout_ns: int | None) -> Figures:
    """Mean, least and largest of all queries. ``told``: the same figures of the answered queries."""
    if not answered or not lost:
        return told if answered else {}
    found: Figures = {"min": told.get("min")}
    if timeout_ns is not None and (mean := told.get("mean")) is not None:
        found["mean"] = (mean * answered + timeout_ns * lost) / (answered + lost)
    if timeout_ns is not None and "max" in told:
        found["max"] = float(timeout_ns)
    return found
