"""What a server needs to be built: its repository, the toolchain that fits a commit, and a script.

A recipe looks at the files of a commit and chooses a `Method`: an old commit gets the compiler and the libraries of an
old Debian suite. The script is run by ``sh -eu`` in the folder of the sources, with the build options as its arguments,
and with

``PREFIX``              folder in which to install everything
``JOBS``                number of processes that may compile at once
``CFLAGS CXXFLAGS``     options of the compiler
``SOURCE_DATE_EPOCH``   time of the commit, in seconds since 1970
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dnsrig.servers import debian
from dnsrig.servers.builds.repository import Repository
from dnsrig.servers.debian import Root

TOOLS = (
    *("build-essential", "ccache", "pkg-config", "perl", "python3-minimal", "util-linux"),
    *(
        "bash",
        "bzip2",
        "coreutils",
        "dash",
        "debianutils",
        "diffutils",
        "file",
        "findutils",
        "grep",
        "gzip",
        "hostname",
    ),
    *("mawk", "sed", "tar", "xz-utils"),
)
"""Debian packages of every build."""
AUTOTOOLS = ("autoconf", "automake", "libtool")
MESON = ("meson", "ninja-build", "python3")


@dataclass(frozen=True)
class Method:
    """How one commit is built."""

    suite: str
    packages: tuple[str, ...]
    """Debian packages in addition to `TOOLS`."""
    script: str


@dataclass(frozen=True)
class Tree:
    """The files of a commit, for a recipe to look at."""

    repository: Repository
    commit: str

    def has(self, path: str) -> bool:
        return self.repository.has(self.commit, path)

    def release(self, pattern: str) -> str:
        """The nearest tag at or before the commit that matches the glob ``pattern``; empty without such a tag."""
        return self.repository.describe(self.commit, pattern)


@dataclass(frozen=True)
class Recipe:
    """How one kind of server is built, for any commit."""

    repository: str
    """URL of the public repository."""
    markers: tuple[str, ...]
    """Files of which every commit that can be built has at least one, and no other server has any."""
    release: str
    """Pattern of the whole tag of a release; group ``version`` has its numbers."""
    method: Callable[[Tree], Method]
    submodules: tuple[str, ...] = ()
    """Paths of submodules that the build needs, if a commit has them."""
    left_out: tuple[str, ...] = ()
    """Large folders that no build needs, such as tests."""

    def is_its(self, tree: Tree) -> bool:
        return any(tree.has(path) for path in self.markers)

    def version_of_tag(self, tag: str) -> tuple[int, ...] | None:
        """The numbers in the tag of a release; None for any other tag."""
        match = re.fullmatch(self.release, tag)
        return tuple(map(int, re.findall(r"\d+", match["version"]))) if match else None


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
"""Names that scripts of packages would have made (update-alternatives(1)) -> patterns of the programs."""


def find_root(kind: str, suite: str, packages: tuple[str, ...]) -> Root | None:
    """The newest existing root file system with exactly these packages."""
    return next(iter(reversed(debian.roots(suite, _name(kind, packages)))), None)


def provide_root(kind: str, suite: str, packages: tuple[str, ...]) -> Root:
    """The root file system of `find_root`, built from the machine's Debian mirror if it is missing."""
    return find_root(kind, suite, packages) or debian.build(suite, _name(kind, packages), packages)


def root_packages(method: Method, more: tuple[str, ...]) -> tuple[str, ...]:
    """The packages of a build by ``method`` whose options request ``more``."""
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
    """Name of the roots with exactly these packages: with more packages, a build would find optional libraries."""
    return f"build-{kind}-{hashlib.sha256(' '.join(packages).encode()).hexdigest()[:8]}"
