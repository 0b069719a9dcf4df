"""Versions of a server: what tells two of them apart, how they are called, and which comes first."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dnsrig.errors import UsageError
from dnsrig.rundir import ServerSource

SHORT = 10
"""Digits of a commit that are shown; more are needed in a repository of some millions of objects."""
BEFORE_RELEASE = re.compile(r"[-.~_]?(dev|alpha|beta|pre|rc)(?![a-z])")


@dataclass(frozen=True)
class Version:
    """A version of a server that was measured: two names of one build are one version."""

    server: ServerSource
    """The server of the first trial with this version."""

    @property
    def id(self) -> tuple[str, ...]:
        """What was made in the cache has a key; of another the program's fingerprint counts, and pins its version."""
        server = self.server
        return (server.kind, server.key) if server.key else (server.name, server.fingerprint or server.version)

    @property
    def commit(self) -> str:
        """The full hash of the commit that it was built from; empty where it was not built from a repository."""
        return self.server.commit


def of(server: ServerSource) -> Version:
    return Version(server.model_copy(update={"packages": {}}))


def labels(versions: Sequence[Version]) -> list[str]:
    """What each is called: its number; where several have the same, with its source, its commit or its key."""
    told: Sequence[Callable[[Version], str]] = (
        lambda v: v.server.version,
        lambda v: f"{v.server.version} ({v.commit[:SHORT] or v.server.source})",
        lambda v: f"{v.server.version} ({v.server.source}, {v.server.key or v.server.fingerprint})",
    )
    counts = [Counter(map(tell, versions)) for tell in told]
    return [
        next((text for tell, count in zip(told, counts, strict=True) if count[text := tell(v)] == 1), told[-1](v))
        for v in versions
    ]


def number_key(version: str) -> list[tuple[Any, ...]]:
    """For sorting version numbers as Debian does (Policy Manual, 5.6.12); 9.18.0rc1 comes before 9.18.0.

    Parts without digits and numbers by turns. Of two parts without digits the one with `~` comes first, then that which
    ends, then letters, then all else.
    """
    marked = BEFORE_RELEASE.sub(r"~\1", version.lower())
    parts = re.findall(r"(\D*)(\d*)", marked)[:-1]
    return [((*map(_place, text), (0, "")), int(digits or 0)) for text, digits in [*parts, ("", "")]]


def by_number(versions: Iterable[Version]) -> list[Version]:
    """Sorted by version number. Raises UsageError where two have the same: it does not say which comes first."""
    found = sorted(versions, key=lambda version: number_key(version.server.version))
    for one, other in itertools.pairwise(found):
        if number_key(one.server.version) == number_key(other.server.version):
            both = " and ".join(f"{v.server.name} ({v.commit[:SHORT] or v.server.key or '?'})" for v in (one, other))
            raise UsageError(
                f"{both} call themselves {one.server.version}, so their numbers do not say which comes first",
                hint="give them as commits of one repository, or their order with --order given",
            )
    return found


def by_commit(versions: Iterable[Version], places: Mapping[str, int]) -> list[Version]:
    """Sorted by ``places`` of their commits. Raises UsageError of a version that was not built from the repository."""
    for version in (found := list(versions)):
        if version.commit not in places:
            raise UsageError(
                f"{version.server.label} was not built from the repository, so its commits do not say where it belongs",
                hint="give the order with --order number or --order given",
            )
    return sorted(found, key=lambda version: places[version.commit])


def _place(letter: str) -> tuple[int, str]:
    """`~`, the end of the part, letters, all else."""
    return (-1 if letter == "~" else 1 if letter.isalpha() else 2, letter)
