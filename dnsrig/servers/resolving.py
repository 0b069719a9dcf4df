"""How a kind of server resolves, as its driver declares it: its levels of DNSSEC, its names of the settings that all
resolvers have, and its counters.

A resolver starts from the hints and the trust anchor of a world, which are files in its folder. No function fails on
what a server wrote: counters that it does not understand are left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from socket import SHUT_WR
from socket import socket as Connection

from dnsrig.errors import UsageError
from dnsrig.rundir import Level, Resolving

NAMES: Mapping[str, str] = {
    "client_queries": "queries of clients",
    "cache_hits": "queries of clients that it answered from its cache",
    "cache_misses": "queries of clients for which it sent queries",
    "upstream_queries": "queries that it sent",
    "upstream_timeouts": "queries that it sent and that had no answer in time",
    "validations": "checks by DNSSEC, in a unit of its own",
    "bogus": "checks by DNSSEC that failed",
}
Counters = dict[str, float]
MOST = 1e18
"""Largest value of a counter; a larger or infinite value is damage."""
MOST_BYTES = 4 << 20
ANSWER_LIMIT_S = 2.0
"""Time limit for the whole answer: a server under load may take some time, and the next sample is soon."""


@dataclass(frozen=True)
class Channel:
    """Where a resolver reports its counters: a Unix socket in its state folder, or a TCP port at its address."""

    request: bytes
    read: Callable[[bytes], Counters]
    socket: str = ""
    port: int = 0
    ends_request: bool = False
    """Whether it answers only after the end of the request."""

    def ask(self, connection: Connection) -> Counters:
        """Request the counters over an open connection. Raises OSError."""
        connection.settimeout(ANSWER_LIMIT_S)
        connection.sendall(self.request)
        if self.ends_request:
            connection.shutdown(SHUT_WR)
        answer, deadline = bytearray(), time.monotonic() + ANSWER_LIMIT_S
        while len(answer) < MOST_BYTES and time.monotonic() < deadline and (more := connection.recv(1 << 16)):
            answer += more
        return self.read(bytes(answer))


def of_lines(answer: bytes, separator: str) -> Counters:
    """Counters from lines ``name<separator>number``; other lines are left out.

    >>> of_lines(b"total.num.queries=5\\nversion=x\\n", "=")
    {'total.num.queries': 5.0}
    """
    found: Counters = {}
    for line in answer.decode(errors="replace").splitlines():
        name, _, text = line.partition(separator)
        if (number := _number(text)) is not None:
            found[name] = number
    return found


def nested(value: object, *path: str) -> float:
    """The number at ``path`` of a JSON value; 0 without a number there."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return float(value) if isinstance(value, int | float) and abs(value) < MOST else 0.0


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < MOST else None  # NaN is not less


HINTS_FILE, ANCHOR_FILE = "root.hints", "root.anchor"


@dataclass(frozen=True)
class AsResolver:
    """The server's configuration for each level and setting, for readers."""

    levels: Mapping[Level, str]
    """Each level that it has -> its configuration."""
    lacking_levels: Mapping[Level, str]
    """Each level that it lacks -> the reason."""
    words: Mapping[str, str]
    """Name of a setting of `Resolving` -> its own setting, and any difference in meaning."""
    fixed: Mapping[str, str]
    """Settings that it cannot change -> its behaviour instead; an experiment may not set them."""
    statistics: Channel


def check(where: str, title: str, able: AsResolver, asked: Resolving) -> None:
    """Refuse settings that a resolver cannot have, with the reason. ``where``: the variant."""
    if asked.level not in able.levels:
        raise UsageError(
            f"{where}: {title} has no level {asked.level}: {able.lacking_levels[asked.level]}",
            hint=f"it has {', '.join(able.levels)}; leave the variant out with --set or `exclude`",
        )
    for name, why in able.fixed.items():
        default = Resolving.model_fields[name].default
        if getattr(asked, name) != default:
            raise UsageError(
                f"{where}: {title} has no {name} = {getattr(asked, name)}: {why}",
                hint=f"leave it at {default}, or choose another resolver",
            )


def check_anchor(where: str, asked: Resolving, *, signed: bool) -> None:
    """Refuse to validate if nothing is signed."""
    if asked.level == "validating" and not signed:
        raise UsageError(
            f"{where}: the level validating needs a trust anchor, but zones of primaries have no trust anchor",
            hint="resolve from a world with a signed root, or choose another level",
        )


@dataclass(frozen=True)
class Anchor:
    """The trusted key of a root zone (RFC 4034)."""

    dnskey: str
    """Flags, protocol, algorithm, and the key without spaces."""
    ds: tuple[str, ...]
    """Key tag, algorithm, digest type and digest."""


def read_anchor(path: Path) -> Anchor | None:
    """The trust anchor in a file with the root's DNSKEY and DS in zone format; None without a file. Raises UsageError
    if the file contains something else."""
    if not path.exists():
        return None
    found: dict[str, list[str]] = {"DNSKEY": [], "DS": []}
    for line in path.read_text(errors="replace").splitlines():
        words = line.partition(";")[0].split()
        kind = next((word for word in words if word in found), None)
        if kind is not None and words[0] == ".":
            numbers, data = words[words.index(kind) + 1 :][:3], words[words.index(kind) + 4 :]
            found[kind].append(" ".join([*numbers, "".join(data)]))
    if len(found["DNSKEY"]) != 1 or not found["DS"]:
        raise UsageError(
            f"{path} is not a trust anchor", hint="write one DNSKEY of the root and its DS, each on one line"
        )
    return Anchor(found["DNSKEY"][0], tuple(found["DS"]))
