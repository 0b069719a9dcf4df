"""What differs between the configurations of servers, where one is the user's own."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from dnsrig.comparison.run_differences import Pair
from dnsrig.rundir import HostSpec, Manifest, Variant
from dnsrig.servers import all_drivers

LINES_MAX = 60
CHARACTERS_MAX = 200
"""Limits for a difference that is shown, and for each of its lines."""
OURS = "dnsrig's own"


@dataclass(frozen=True)
class ConfigurationDifference:
    """A unified diff of the files of one host, as templates."""

    host: str
    base: Variant
    new: Variant
    lines: list[str]

    @property
    def title(self) -> str:
        return f"configuration of {self.host}: {self.new.label} against {self.base.label}"


def differing(base: Manifest, new: Manifest, pairs: Iterable[Pair]) -> list[ConfigurationDifference]:
    """The differences of each of ``pairs``; one that several pairs have is listed once."""
    found: dict[tuple[str, ...], ConfigurationDifference] = {}
    for pair in pairs:
        ours, theirs = base.specs[pair.base.id].hosts, new.specs[pair.new.id].hosts
        for name in (name for name in ours if name in theirs):
            for before, after in zip(_files(ours[name]), _files(theirs[name]), strict=True):
                if lines := _diff(before, after):
                    found.setdefault((name, *lines), ConfigurationDifference(name, pair.base, pair.new, lines))
    return list(found.values())


def within(manifest: Manifest) -> list[ConfigurationDifference]:
    """The differences of the variants of one run from its first variant, or from the one that the baseline names."""
    variants = manifest.variants
    base = next((v for v in variants if manifest.baseline.items() <= v.parameters.items()), variants[0])
    return differing(manifest, manifest, [Pair(base, other) for other in variants if other.id != base.id])


def _files(host: HostSpec) -> list[tuple[str, str]]:
    """Name and text of the configuration and of the snippet. Without a file of the user, both are empty if the text is
    not known."""
    server = all_drivers().get(host.server.kind) if host.server else None
    own = server.template(host.role) if server and host.role and host.role in server.templates else ""
    config = (host.config.name, host.config.text) if host.config else (OURS, own)
    return [config, (host.include.name, host.include.text) if host.include else ("no snippet", "")]


def _diff(before: tuple[str, str], after: tuple[str, str]) -> list[str]:
    """The lines of a diff; none if neither file is the user's."""
    if before == after or {before[0], after[0]} <= {OURS, "no snippet"}:
        return []
    made = difflib.unified_diff(before[1].splitlines(), after[1].splitlines(), before[0], after[0], n=1, lineterm="")
    lines = [line[:CHARACTERS_MAX] for line in made]
    more = len(lines) - LINES_MAX
    return [*lines[:LINES_MAX], *([f"… {more:,} more lines"] if more > 0 else [])]
