"""The repository with a server's commits: a clone of the public repository in the cache, or another that the user
names.

A folder of the user is read as it is. A URL is cloned once, without asking for passwords, and fetched again if a commit
is requested that the clone lacks. This uses the git of the machine.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from dnsrig import cached, paths
from dnsrig.errors import DnsrigError, UsageError

FOLDER_VARIABLE = "DNSRIG_REPOSITORIES"
"""Names a folder with mirrors: the mirror of ``https://…/bind9.git`` is ``bind9`` or ``bind9.git`` there."""
GIT_LIMIT_S = 300
FETCH_LIMIT_S = 3600
MOST_COMMITS = 100_000
"""Largest number of commits of a range."""
HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_URL = re.compile(r"[a-z][a-z0-9+.-]*://\S+|[\w.-]+@[\w.-]+:\S+")

_chosen: dict[str, str] = {}
"""Kind of server -> repository from the command line."""


@dataclass(frozen=True)
class Commit:
    """A commit; ``time_s`` is the time of the commit in seconds since 1970."""

    hash: str
    parents: tuple[str, ...]
    time_s: int
    subject: str


@dataclass(frozen=True)
class Repository:
    """A repository at ``place``; ``url`` is empty if that is a folder of the user."""

    place: Path
    url: str = ""
    name: str = ""
    """What users call it, if neither its place nor its URL says so."""

    @property
    def title(self) -> str:
        return self.name or self.url or str(self.place)

    @property
    def is_there(self) -> bool:
        return self.place.is_dir()

    def fetch(self) -> None:
        """Clone it, or update the clone. A folder of the user stays as it is."""
        if not self.url:
            return
        with cached.locked(self.place.parent):
            if self.is_there:
                self._ask("fetch", "--quiet", "--prune", "--tags", limit_s=FETCH_LIMIT_S)
                return
            with cached.making(self.place) as made:
                git("clone", "--quiet", "--mirror", self.url, str(made), limit_s=FETCH_LIMIT_S)

    def resolve(self, ref: str) -> str | None:
        """The full hash of the commit that ``ref`` names; None if there is no such commit."""
        result = _run(self.place, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        self._check_access(result)
        found = result.stdout.strip()
        return found if result.returncode == 0 and HASH.fullmatch(found) else None

    def path_of(self, name: str) -> Path:
        """The path of a file or folder of the repository itself, such as ``objects``."""
        return (self.place / self._ask("rev-parse", "--git-path", name).strip()).resolve()

    def tree(self, commit: str) -> str:
        """The hash of all files of ``commit``."""
        return self._ask("rev-parse", "--verify", f"{commit}^{{tree}}").strip()

    def commit(self, commit: str) -> Commit:
        return self._commits("--max-count=1", commit)[0]

    def between(self, first: str, last: str, *, first_parent: bool = False) -> list[Commit]:
        """The commits of ``last`` that are not in ``first``, each after its parents; so ``last`` comes last.

        ``first_parent``: from a merge, follow only the branch that it was made on.
        """
        words = ["--topo-order", "--reverse", *(["--first-parent"] if first_parent else [])]
        return self._commits(*words, f"--max-count={MOST_COMMITS}", last, f"^{first}")

    def places(self, commits: Sequence[str]) -> dict[str, int]:
        """The position of each of ``commits`` among all, in an order in which parents come first."""
        if not commits:
            return {}
        ordered = self._ask("rev-list", "--topo-order", "--reverse", *commits, "--").split()
        wanted = set(commits)
        return {commit: place for place, commit in enumerate(ordered) if commit in wanted}

    def is_ancestor(self, first: str, last: str) -> bool:
        result = _run(self.place, "merge-base", "--is-ancestor", first, last)
        if result.returncode not in (0, 1):
            raise DnsrigError(f"{self.title}: {_last_line(result.stderr)}")
        return result.returncode == 0

    def tags(self) -> list[str]:
        return self._ask("tag", "--list").split()

    def tags_at(self, commit: str) -> list[str]:
        return self._ask("tag", "--points-at", commit).split()

    def describe(self, commit: str, pattern: str) -> str:
        """The nearest tag that matches ``pattern`` (a glob) at or before ``commit``; empty without such a tag."""
        result = _run(self.place, "describe", "--tags", "--abbrev=0", f"--match={pattern}", commit)
        return result.stdout.strip() if result.returncode == 0 else ""

    def has(self, commit: str, path: str) -> bool:
        return _run(self.place, "cat-file", "-e", f"{commit}:{path}").returncode == 0

    def submodule(self, commit: str, path: str) -> tuple[str, str] | None:
        """URL and commit of the submodule at ``path``; None without a submodule."""
        entry = self._ask("ls-tree", commit, "--", path).split()
        if len(entry) < 3 or entry[1] != "commit":
            return None
        names = self._ask("config", "--blob", f"{commit}:.gitmodules", "--get-regexp", r"^submodule\..*\.path$")
        for line in names.splitlines():
            name, _, value = line.partition(" ")
            if value == path:
                key = f"{name.removesuffix('.path')}.url"
                return self._ask("config", "--blob", f"{commit}:.gitmodules", key).strip(), entry[2]
        return None

    def check_out(self, commit: str, folder: Path, left_out: Sequence[str] = ()) -> None:
        """Write all files of ``commit`` into the empty ``folder``, except files below the paths ``left_out``."""
        index = folder.with_name(f"{folder.name}.index")
        folder.mkdir(parents=True, exist_ok=True)
        own = {"GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(folder)}
        directory = self._ask("rev-parse", "--absolute-git-dir").strip()
        try:
            steps = [["read-tree", commit]]
            steps += [["rm", "-r", "--cached", "--quiet", "--ignore-unmatch", "--", *left_out]] if left_out else []
            for words in (*steps, ["checkout-index", "--all", "--force"]):
                git(*words, environment={**own, "GIT_DIR": directory}, place=folder)
        finally:
            index.unlink(missing_ok=True)

    def _commits(self, *words: str) -> list[Commit]:
        lines = self._ask("log", "--format=%H%x00%P%x00%ct%x00%s", *words, "--").splitlines()
        parts = (line.split("\0", 3) for line in lines)
        return [Commit(name, tuple(parents.split()), int(when), subject) for name, parents, when, subject in parts]

    def _ask(self, *words: str, limit_s: float = GIT_LIMIT_S) -> str:
        return git(*words, place=self.place, limit_s=limit_s)

    def _check_access(self, result: subprocess.CompletedProcess[str]) -> None:
        if "dubious ownership" in result.stderr:
            raise DnsrigError(
                f"git does not trust {self.place}: it belongs to another user",
                hint=f"git config --global --add safe.directory {self.place}",
            )
        if "not a git repository" in result.stderr:
            raise UsageError(f"{self.place} is not a git repository", hint="name a clone of the server's repository")


def choose(kind: str, repository: str) -> None:
    """Take the commits of ``kind`` from ``repository``, a folder or a URL, in this process."""
    _chosen[kind] = repository


def of(kind: str, url: str) -> Repository:
    """The repository of ``kind``, whose public repository is at ``url``."""
    return _at(_chosen[kind]) if kind in _chosen else of_url(url)


def of_url(url: str) -> Repository:
    """The mirror of ``url`` in the folder of mirrors, or its clone in the cache, which may not exist yet."""
    name = url.rstrip("/").rpartition("/")[2].removesuffix(".git")
    if folder := os.environ.get(FOLDER_VARIABLE):
        for mirror in (Path(folder, name), Path(folder, f"{name}.git")):
            if mirror.is_dir():
                return Repository(mirror)
    key = hashlib.sha256(url.encode()).hexdigest()[:12]
    return Repository(paths.cache() / "repositories" / f"{re.sub(r'[^a-z0-9]+', '-', name)}-{key}.git", url)


def _at(text: str) -> Repository:
    if _URL.fullmatch(text):
        return of_url(text)
    if not (folder := Path(text).expanduser()).is_dir():
        raise UsageError(f"there is no repository {text}", hint="give the folder of a clone, or a URL")
    return Repository(folder.resolve())


def git(
    *words: str,
    place: Path | None = None,
    limit_s: float = GIT_LIMIT_S,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The output of git. Raises DnsrigError with its last line if it fails."""
    result = _run(place, *words, limit_s=limit_s, environment=environment)
    if result.returncode == 0:
        return result.stdout
    said = _last_line(result.stderr)
    if "No space left" in result.stderr:
        raise DnsrigError(f"the disk is full: {said}", hint="free some space and try again")
    fetching = {"clone", "fetch"} & set(words[:1])
    raise DnsrigError(
        f"git {words[0]}: {said}",
        hint=f"without network, name a local mirror: --repository KIND=FOLDER, or {FOLDER_VARIABLE}"
        if fetching
        else "",
    )


def _run(
    place: Path | None,
    *words: str,
    limit_s: float = GIT_LIMIT_S,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.CompletedProcess[str]:
    if shutil.which("git") is None:
        raise DnsrigError("git is not installed", hint="apt-get install git (or your distribution's package)")
    own = {"LC_ALL": "C.UTF-8", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", **environment}
    inherited = {name: value for name, value in os.environ.items() if name not in _OF_ANOTHER}
    try:
        return subprocess.run(
            ["git", *(["-C", str(place)] if place else []), *words],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit_s,
            stdin=subprocess.DEVNULL,
            env={**inherited, **own},
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise DnsrigError(f"git {words[0]} took longer than {limit_s:g} s") from error


_OF_ANOTHER = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE"}
"""Variables that would lead git to the repository in which we were started, for example by a hook."""


def _last_line(text: str) -> str:
    lines: Iterable[str] = (line.strip() for line in reversed(text.splitlines()))
    return next((line.removeprefix("fatal: ") for line in lines if line), "it failed")
