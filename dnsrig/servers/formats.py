"""Formats that several servers share: templates and values of configurations, versions, times in logs, printed
defaults."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import jinja2

from dnsrig import sandbox
from dnsrig.rundir import Scalar

SECTION = re.compile(r"([\w-]+):$")
"""A line that begins a section."""
LINE = re.compile(r"[ \t]*#?[ \t]*(?P<name>\w[\w.-]*)[ \t]*[=:][ \t]*(?P<value>.*)")
ITEM = re.compile(r"[ \t]*#?[ \t]*- (?P<value>.*)")
"""A line with one more value of the setting before it."""


def template(text: str) -> jinja2.Template:
    """A configuration template; an undefined name is an error, never an empty string."""
    return sandbox.environment().from_string(text)


def yes_no(value: Scalar) -> str:
    """A setting's value as most servers write it."""
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version, for comparisons: ``9.20.30-1~bpo`` -> (9, 20, 30)."""
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, match[0].split("."))) if match else ()


def utc_ns(line: str, pattern: re.Pattern[str], date_format: str, *, year: int | None = None) -> int | None:
    """Realtime ns of the timestamp that ``pattern`` finds in ``line`` (group ``time``; optional ``ms``).

    ``year`` is for logs that leave it out.
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
    """Realtime ns as by `utc_ns`, for a log without years: of the year in which the time is nearest to ``near``."""
    years = (near.year - 1, near.year, near.year + 1)
    times = [ns for year in years if (ns := utc_ns(line, pattern, date_format, year=year)) is not None]
    return min(times, key=lambda ns: abs(ns - int(near.timestamp()) * 1_000_000_000), default=None)


def printed_defaults(text: str) -> dict[str, str]:
    """Settings from lines with ``name=value`` or ``name: value``, which may be commented out. Below a line ``section:``
    the name begins with the section.

    >>> printed_defaults("# cache-ttl=20\\n")
    {'cache-ttl': '20'}
    >>> printed_defaults("server:\\n\\tport: 53\\nincoming:\\n#   allow_from:\\n#   - ::1/128\\n#   - 10.0.0.0/8\\n")
    {'server.port': '53', 'incoming.allow_from': '::1/128 10.0.0.0/8'}
    """
    found: dict[str, str] = {}
    section = last = ""
    for line in text.splitlines():
        if head := SECTION.match(line):
            section = f"{head[1]}."
        elif match := LINE.fullmatch(line):
            last = section + match["name"]
            found[last] = match["value"].strip()
        elif last and (item := ITEM.fullmatch(line)):
            found[last] = f"{found[last]} {item['value'].strip()}".strip()
    return found
