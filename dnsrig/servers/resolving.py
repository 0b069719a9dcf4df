"""How a kind of server resolves, as its driver declares it: its levels of DNSSEC, and its words for the settings that
all resolvers have.

What a resolver resolves from is the hints and the trust anchor of a world: files of its own folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dnsrig.errors import UsageError
from dnsrig.rundir import Level, Resolving
from dnsrig.servers.counters import Channel

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
