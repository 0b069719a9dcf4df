"""How a kind of server resolves, as its driver declares it: its levels of DNSSEC, and its words for the settings that
all resolvers have.

What a resolver resolves from is the hints and the trust anchor of a world: files of its own folder.
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
    "cache_hits": "of those, answered without asking anybody",
    "cache_misses": "of those, for which it asked",
    "upstream_queries": "queries that it sent",
    "upstream_timeouts": "of those, that had no answer in time",
    "validations": "checks by DNSSEC, in a unit of its own",
    "bogus": "of those, that failed",
}
Counters = dict[str, float]
MOST = 1e18
"""Of a counter; what is more, or infinite, is damage."""
MOST_BYTES = 4 << 20
ANSWER_LIMIT_S = 2.0
"""Of the whole answer: a server under load may take some time, and the next sample is soon."""


@dataclass(frozen=True)
class Channel:
    """Where it tells them: a Unix socket in its state folder, or a TCP port at its address."""

    request: bytes
    read: Callable[[bytes], Counters]
    socket: str = ""
    port: int = 0
    ends_request: bool = False
    """Whether it waits for the end of what it is sent."""

    def ask(self, connection: Connection) -> Counters:
        """By a connection that is open. Raises OSError."""
        connection.settimeout(ANSWER_LIMIT_S)
        connection.sendall(self.request)
        if self.ends_request:
            connection.shutdown(SHUT_WR)
        answer, deadline = bytearray(), time.monotonic() + ANSWER_LIMIT_S
        while len(answer) < MOST_BYTES and time.monotonic() < deadline and (more := connection.recv(1 << 16)):
            answer += more
        return self.read(bytes(answer))


def of_lines(answer: bytes, separator: str) -> Counters:
    """``name<separator>number`` a line; other lines are left out.

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
    """The number at ``path`` of what JSON said; 0 where there is none."""
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
    """What it says for each level and setting."""

    levels: Mapping[Level, str]
    """The levels that it has -> its words for them."""
    lacking_levels: Mapping[Level, str]
    """Those that it does not have -> why."""
    words: Mapping[str, str]
    """Name of a setting of `Resolving` -> its words for it, with what is different here."""
    fixed: Mapping[str, str]
    """Settings that cannot be set -> how it is instead; an experiment may not change them."""
    statistics: Channel


def check(where: str, title: str, able: AsResolver, asked: Resolving) -> None:
    """Refuse what a resolver cannot have, with the reason. ``where``: of which variant this is."""
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
    """Refuse to validate where nothing is signed."""
    if asked.level == "validating" and not signed:
        raise UsageError(
            f"{where}: the level validating needs a trust anchor, but zones of primaries have no trust anchor",
            hint="resolve from a world with a signed root, or choose another level",
        )


@dataclass(frozen=True)
class Anchor:
    """The key that a root zone is trusted by (RFC 4034)."""

    dnskey: str
    """Flags, protocol, algorithm, and the key without spaces."""
    ds: tuple[str, ...]
    """Key tag, algorithm, digest type and digest."""


def read_anchor(path: Path) -> Anchor | None:
    """Of a file with the root's DNSKEY and DS in zone format; None without a file. Raises UsageError on another one."""
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
