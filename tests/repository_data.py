"""A repository of a small server for tests, and a driver that builds it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from dnsrig.servers.builds.recipe import Method, Recipe, Tree
from dnsrig.servers.driver import Driver
from dnsrig.servers.placement import Placement

SUITE = "bookworm"
SCRIPT = """\
test "${1-}" != --with-geography || { echo 'configure: error: libgeography was not found' >&2; exit 1; }
sed "s/@OPTIONS@/$*/" tiny.c.in > tiny.c
cc $CFLAGS -o tiny tiny.c
mkdir -p "$PREFIX/sbin"
cp tiny "$PREFIX/sbin/tiny"
"""
PROGRAM = """\
#include <stdio.h>
int main(void) { puts("tiny VERSION with @OPTIONS@"); return 0; }
"""
WHEN = "2022-12-12T12:00:00Z"


class Tiny(Driver):
    """A server that says its version, and nothing else."""

    kind = "tiny"
    title = "Tiny"
    executable = "tiny"
    packages = ()
    version_arguments = ("-v",)
    version_pattern = r"tiny (\S+)"
    settings = ()
    log_clock_resolution_ns = 1
    recipe = Recipe(
        repository="https://tiny.example/tiny.git",
        markers=("tiny.c.in",),
        release=r"v(?P<version>\d+\.\d+\.\d+)",
        method=lambda tree: Method(SUITE, (), SCRIPT),
        submodules=("library",),
        left_out=("tests",),
    )

    def configure(self, placement: Placement) -> None: ...

    def command(self, placement: Placement) -> list[str]:
        return [self.executable]

    def log_time_ns(self, line: str) -> int | None:
        return None


def git(folder: Path, *words: str, when: str = WHEN) -> str:
    who = ("-c", "user.name=Tests", "-c", "user.email=tests@example", "-c", "protocol.file.allow=always")
    environment = {**os.environ, "GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when, "GIT_CONFIG_GLOBAL": os.devnull}
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def commit(folder: Path, files: Mapping[str, str], *, tag: str = "", message: str = "Change") -> str:
    """Write ``files`` into the repository, which is made if it is not there; the hash of their commit."""
    if not (folder / ".git").exists():
        folder.mkdir(parents=True, exist_ok=True)
        git(folder, "init", "--quiet", "--initial-branch=main")
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", f"--message={message}")
    if tag:
        git(folder, "tag", tag)
    return git(folder, "rev-parse", "HEAD")


def tiny(version: str) -> dict[str, str]:
    """The files of Tiny at ``version``."""
    return {"tiny.c.in": PROGRAM.replace("VERSION", version), "tests/large": "not looked at"}


def releases(folder: Path, *versions: str) -> list[str]:
    """A commit and a tag for each of ``versions``, and a commit between two; the hashes of the releases."""
    found = []
    for number, version in enumerate(versions):
        if number:
            commit(folder, {"notes": version}, message=f"Towards {version}")
        found.append(commit(folder, tiny(version), tag=f"v{version}", message=f"Release {version}"))
    return found


def tree(folder: Path, ref: str = "HEAD") -> Tree:
    from dnsrig.servers.builds.repository import Repository

    return Tree(Repository(folder), git(folder, "rev-parse", ref))
