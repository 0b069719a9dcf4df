"""Events, rows and histograms as lines, after the map of renames, without what the clock decides."""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars

RENAMES = {
    "octets": "bytes",
    "endless": "limit-exceeded",
    "there": "forward",
    "back": "reverse",
}
"""Old name → new name: of columns, keys, events and words in columns; whole, or a part between underscores, hyphens,
blanks."""

MEASURED = re.compile(
    r"""(?x)
    .*_(ns|ms)(_max|_min)? | elapsed_s  # moments and durations; what is counted by them is compared
    | cpu_.* | busy_share      # the cost of the instrument itself
    | .*_(qps|per_s)           # rates: a count by a duration
    | queue_.* | rows          # what waits at a moment, and how many intervals have a row
    | rtt_us | rttvar_us | cwnd | unread_(octets|bytes) | delivery_rate_.*  # TCP_INFO: what the kernel saw at a moment
    """
)
"""Columns and keys whose values are not compared, only that they are there; and `ASKED` ones are compared after all."""
ASKED = {"timeout_ns", "asked_qps", "duration_s", "changes_per_s"}
"""Settings, which merely look like something measured."""

BY_THE_CLOCK = {"progress", "anchor"}
"""Events that come as often as time allows, if at all: only what keys they have is compared."""
IF_ANY = ", if any"

PORT = re.compile(r"(?<=:)(3276[89]|327[7-9]\d|32[89]\d\d|3[3-9]\d{3}|[45]\d{4}|6[0-5]\d{3})$")
TIME = re.compile(r"\d+\.\d+ ms")
COMPRESSED, LAYOUT = struct.Struct(">II"), struct.Struct(">IIIIQQd")


def renamed(name: str) -> str:
    if name in RENAMES:
        return RENAMES[name]
    return "".join(RENAMES.get(part, part) for part in re.split("([_ -])", name))


def events(output: str, values: bool = True) -> dict[str, list[str]]:
    """Of what a program printed, JSON lines: the events, and of those that time decides the keys, by their names."""
    found: dict[str, list[str]] = {"events": []}
    for line in output.splitlines():
        event = json.loads(line)
        name = renamed(event["event"])
        if values and name not in BY_THE_CLOCK:
            found["events"].append(json.dumps(_plain(event), sort_keys=True))
        else:
            found[f"{name} keys{IF_ANY if name in BY_THE_CLOCK else ''}"] = [json.dumps(_keys(event), sort_keys=True)]
    return found


def _keys(value: Any) -> Any:
    if isinstance(value, dict):
        # How many threads or codes there are may be up to the clock.
        return {renamed(key): _keys(inner) for key, inner in value.items() if key.islower()}
    return ""


def rows(
    file: Path, in_order: bool = True, first: int | None = None, without: str | None = None, values: bool = True
) -> list[str]:
    """Of an Arrow file: a line for the schema, one a row. `without` a column; `values`: else the schema alone."""
    table = polars.read_ipc_stream(file)
    found = [json.dumps([[renamed(name), str(kind)] for name, kind in table.schema.items()])]
    if values:
        table = table.head(first or table.height).select(polars.exclude(without or []))
        lines = [json.dumps(list(_plain(row).values())) for row in table.iter_rows(named=True)]
        found += lines if in_order else sorted(lines)
    return found


def document(file: Path) -> list[str]:
    """Of a JSON object: a line for each key, and for each entry of a list in it."""
    found = []
    for key, value in _plain(json.loads(file.read_text())).items():
        found += [
            f"{key}: {json.dumps(entry, sort_keys=True)}" for entry in (value if isinstance(value, list) else [value])
        ]
    return found


def histograms(file: Path) -> list[str]:
    """Of an HdrHistogram interval log: how many values there are under each tag."""
    totals: dict[str, int] = {}
    for line in file.read_text().splitlines():
        if line.startswith("Tag="):
            tag, *_, packed = line.split(",")
            totals[tag] = totals.get(tag, 0) + _total(base64.b64decode(packed))
    return [f"{tag}: {total}" for tag, total in sorted(totals.items())]


def _total(packed: bytes) -> int:
    """Of a histogram in encoding V2: counts are ZigZag LEB128, negative ones are runs of zeros."""
    content = zlib.decompress(packed[COMPRESSED.size :])
    total = value = shift = 0
    # The ninth byte of a long number has eight bits, but no count here is so large.
    for byte in content[LAYOUT.size :]:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            total += value >> 1 if value & 1 == 0 else 0
            value = shift = 0
    return total


def _plain(value: Any, name: str = "") -> Any:
    if MEASURED.fullmatch(name) and name not in ASKED and value is not None:
        return "measured"
    if isinstance(value, dict):
        return {renamed(key): _plain(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, str):
        return TIME.sub("* ms", PORT.sub("*", renamed(value)))
    return value


def difference(before: Iterable[str], after: Iterable[str], shown: int = 160) -> str | None:
    """The first line in which two differ, cut to where."""
    ours, theirs = list(before), list(after)
    for number, (one, other) in enumerate(zip(ours, theirs, strict=False), start=1):
        if one != other:
            at = next((at for at, pair in enumerate(zip(one, other)) if pair[0] != pair[1]), min(len(one), len(other)))
            start = max(at - shown // 2, 0)
            return f"line {number}, character {at}:\n  before: {one[start : start + shown]}\n  after:  {other[start : start + shown]}"
    if len(ours) != len(theirs):
        longer, whose = (ours, "before") if len(ours) > len(theirs) else (theirs, "after")
        return f"{len(ours)} lines before, {len(theirs)} after; only {whose}: {longer[min(len(ours), len(theirs))][:shown]}"
    return None
