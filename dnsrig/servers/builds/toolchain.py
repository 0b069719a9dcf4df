"""The root file systems that builds are made and run in: a compiler and libraries of a Debian suite."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from dnsrig.servers import debian
from dnsrig.servers.builds.recipe import TOOLS, Method
from dnsrig.servers.debian import Root

COMPILERS = ("cc", "gcc", "c++", "g++")
_ALTERNATIVES: Mapping[str, tuple[str, ...]] = {
    "aclocal": ("aclocal-1.*",),
    "automake": ("automake-1.*",),
    "awk": ("mawk",),
    "c++": ("g++",),
    "cc": ("gcc",),
    "c99": ("c99-gcc",),
    "which": ("which.debianutils",),
    "yacc": ("bison.yacc",),
}
"""Names that scripts of packages would have made (update-alternatives(1)) -> what they stand for."""


def find(kind: str, suite: str, packages: tuple[str, ...]) -> Root | None:
    """The newest one that is there with exactly these packages."""
    return next(iter(reversed(debian.roots(suite, _name(kind, packages)))), None)


def provide(kind: str, suite: str, packages: tuple[str, ...]) -> Root:
    """That, fetched from the machine's Debian mirror where it is not there."""
    return find(kind, suite, packages) or debian.build(suite, _name(kind, packages), packages)


def wanted(method: Method, more: tuple[str, ...]) -> tuple[str, ...]:
    """The packages of a build by ``method`` whose options ask for ``more``."""
    return tuple(sorted({*TOOLS, *method.packages, *more}))


def lay_out_tools(root: Path, folder: Path) -> None:
    """Make ``folder/ccache`` and ``folder/alternatives``, for the search path of a build in ``root``."""
    for name in ("ccache", "alternatives"):
        (folder / name).mkdir(parents=True)
    for name in COMPILERS:
        (folder / "ccache" / name).symlink_to("/usr/bin/ccache")
    programs = root / "usr/bin"
    for name, patterns in _ALTERNATIVES.items():
        found = [path.name for pattern in patterns for path in sorted(programs.glob(pattern))]
        if found and not (programs / name).exists():
            (folder / "alternatives" / name).symlink_to(f"/usr/bin/{found[-1]}")


def _name(kind: str, packages: tuple[str, ...]) -> str:
    """Of the roots with these packages: one with more would let a build find what it was not meant to."""
    return f"build-{kind}-{hashlib.sha256(' '.join(packages).encode()).hexdigest()[:8]}"
