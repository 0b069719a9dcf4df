"""Lines of servers' logs: events, and their times in UTC."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True)
class LogEvent:
    """A line of a server's log with a meaning."""

    realtime_ns: int | None
    kind: str
    """``zone-done``, or the kind of a failure."""
    zone: str
    line: str


def utc_ns(line: str, pattern: re.Pattern[str], date_format: str, *, year: int | None = None) -> int | None:
    """Realtime ns of the timestamp that ``pattern`` finds in ``line`` (group ``time``; optional ``ms``).

    ``year`` is for logs without years.
    """
    match = pattern.search(line)
    if match is None:
        return None
    groups = match.groupdict()
    text, layout = groups["time"], date_format
    if year is not None:
        text, layout = f"{year} {text}", f"%Y {layout}"
    try:
        when = datetime.strptime(text, layout).replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(when.timestamp()) * 1_000_000_000 + int(groups.get("ms") or 0) * 1_000_000


def utc_ns_without_year(line: str, pattern: re.Pattern[str], date_format: str, *, near: datetime) -> int | None:
    """Like `utc_ns`, for a log without years: the year is the one in which the time is nearest to ``near``."""
    years = (near.year - 1, near.year, near.year + 1)
    times = [ns for year in years if (ns := utc_ns(line, pattern, date_format, year=year)) is not None]
    return min(times, key=lambda ns: abs(ns - int(near.timestamp()) * 1_000_000_000), default=None)
