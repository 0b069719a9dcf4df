"""A checkout of a server's repository with its uncommitted changes, as a commit that only the cache has.

git makes this commit with an index and objects of its own, so nothing is written to the user's checkout. Files that git
ignores are left out. The commit depends on the files alone: the same changes are the same commit.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dnsrig import cached, paths
from dnsrig.errors import UsageError
from dnsrig.servers.builds import repository
from dnsrig.servers.builds.repository import Repository

SHOWN_DIGITS = 12
_LIKE_GIT = ("info/exclude", "shallow")
"""Files of the user's repository that decide what is in a checkout and in its history."""


@dataclass(frozen=True)
class Taken:
    """The state of a checkout."""

    repository: Repository
    """A repository in the cache, with the objects of the user's."""
    commit: str
    head: str
    """The commit that is checked out. Without changes it is ``commit``."""
    changes: str
    """Hash of the changed files; empty without changes."""

    @property
    def label(self) -> str:
        """``HASH+changes.0a1b2c3d4e5f``, with the full hash of ``head``; empty without changes."""
        return f"{self.head}+changes.{self.changes}" if self.changes else ""


def is_checkout(place: Path) -> bool:
    return (place / ".git").exists()


def take(place: Path) -> Taken:
    """The files of the checkout at ``place`` as they are now. Raises UsageError if it has no commit."""
    origin = Repository(place)
    if (head := origin.resolve("HEAD")) is None:
        raise UsageError(f"{place} has no commit", hint="commit what is there: git add --all && git commit")
    key = hashlib.sha256(str(place).encode()).hexdigest()[:12]
    ours = paths.cache() / "repositories" / f"checkout-{key}.git"
    ours.parent.mkdir(parents=True, exist_ok=True)
    with cached.locked(ours.parent):
        _follow(origin, ours)
        index = ours / "index"
        for left in (index, ours / "index.lock"):  # of a git that was killed
            left.unlink(missing_ok=True)
        inside = {"GIT_DIR": str(ours), "GIT_WORK_TREE": str(place), "GIT_INDEX_FILE": str(index)}

        def ask(*words: str, more: Mapping[str, str] | None = None) -> str:
            return repository.git(*words, place=place, environment={**inside, **(more or {})}).strip()

        ask("read-tree", head)
        ask("add", "--all", "--", ".")
        tree = ask("write-tree")
        found = Repository(ours, name=str(place))
        if tree == found.tree(head):
            return Taken(found, head, head, "")
        when = f"@{found.commit(head).time_s} +0000"
        who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in _who(when).items()}
        commit = ask("commit-tree", tree, "-p", head, "-m", "Uncommitted changes", more=who)
    return Taken(found, commit, head, tree[:SHOWN_DIGITS])


def _who(when: str) -> dict[str, str]:
    return {"NAME": "dnsrig", "EMAIL": "dnsrig@localhost", "DATE": when}


def _follow(origin: Repository, ours: Path) -> None:
    """Make ``ours`` a repository that has the objects and the tags of ``origin``, and ignores the same files."""
    if not (ours / "HEAD").exists():
        shutil.rmtree(ours, ignore_errors=True)
        repository.git("init", "--quiet", "--bare", str(ours))
    (ours / "objects/info").mkdir(parents=True, exist_ok=True)
    (ours / "objects/info/alternates").write_text(f"{origin.path_of('objects')}\n")
    for name in _LIKE_GIT:
        theirs, copy = origin.path_of(name), ours / name
        copy.parent.mkdir(exist_ok=True)
        copy.unlink(missing_ok=True)
        if theirs.is_file() and not theirs.is_symlink():
            shutil.copyfile(theirs, copy)
    tags = repository.git("for-each-ref", "--format=%(objectname) %(refname)", "refs/tags", place=origin.place)
    (ours / "packed-refs").write_text(f"# pack-refs with: \n{tags}")
