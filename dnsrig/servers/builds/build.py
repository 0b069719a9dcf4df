"""Makes a build: runs the script of a recipe on the files of a commit in a root file system, and keeps what it
installed.

The key of a build is the hash of everything that it depends on: the files of the commit, the recipe's script, the root
file system with its compiler, the options. If a build with this key exists, nothing is made. A build appears complete
or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from dnsrig import cached, checksums, confinement
from dnsrig.confinement import BindMount, Confinement
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.servers.builds import kept, repository
from dnsrig.servers.builds.errors import BuildFailed, explain
from dnsrig.servers.builds.kept import BuildRecord
from dnsrig.servers.builds.recipe import Method, Recipe, Tree, lay_out_tools
from dnsrig.servers.builds.reference import Reference
from dnsrig.servers.builds.repository import Repository
from dnsrig.servers.debian import Root
from dnsrig.servers.driver import Driver
from dnsrig.servers.formats import numbers

LAYOUT_VERSION = 1
"""Increased when this file makes builds differently, so that old ones are not used."""
SEEN = "/mnt/installed"
"""Path of the installed files, for the build and for the server."""
WORK_SEEN = "/mnt/build"
CCACHE_SEEN = "/mnt/ccache"
FOLDERS = ("sbin", "bin", "libexec")
"""Folders with programs, below `SEEN`."""
BUILD_LIMIT_S = 7200
VERSION_LIMIT_S = 20
SAID_CHARACTERS = 200
SHOWN_DIGITS = 12
LEAST_FREE_BYTES = 2_000_000_000
"""Least free disk before a build: C++ with symbols takes as much."""
CCACHE_SIZE = "5G"
PLAIN_FLAGS = "-O2"
SYMBOLS_FLAGS = "-O2 -g -fno-omit-frame-pointer"


@dataclass(frozen=True)
class Plan:
    """Everything that a build depends on, whether it exists or not."""

    server: Driver
    recipe: Recipe
    reference: Reference
    repository: Repository
    commit: str
    method: Method
    root: Root
    label: str = ""
    """What ``commit`` is called, if it has uncommitted changes: ``HASH+changes.HASH``."""

    @property
    def name(self) -> str:
        return f"{self.server.kind}@{self.reference.source}"

    @property
    def flags(self) -> str:
        return SYMBOLS_FLAGS if self.reference.symbols else PLAIN_FLAGS

    @property
    def key(self) -> str:
        """Name of its folder among all builds."""
        tree = self.repository.tree(self.commit)
        depends = [LAYOUT_VERSION, self.server.kind, tree, self.method.script, self.root.suite, self.root.path.name]
        text = json.dumps([*depends, self.reference.options, self.flags])
        return f"{self.server.kind}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def method(server: Driver, recipe: Recipe, tree: Tree) -> Method:
    """How a commit is built. Raises UsageError if it is not a commit of that server."""
    if not recipe.is_its(tree):
        raise UsageError(
            f"{tree.repository.title}: commit {tree.commit[:12]} is not {server.title}, or too old to be built: it has no "
            f"{' and no '.join(recipe.markers)}",
            hint=f"--repository {server.kind}=FOLDER names the server's own repository",
        )
    return recipe.method(tree)


def make(plan: Plan) -> str:
    """Make the build, and return its key. Raises `BuildFailed` if the commit or the options are the cause of a
    failure."""
    kept.folder().mkdir(parents=True, exist_ok=True)
    kept.limit_bytes()  # an invalid limit is reported before minutes of building
    key = plan.key
    with cached.locked(kept.folder()):
        if kept.read(key) is None:
            _check_disk()
            with cached.making(kept.folder() / key) as made:
                _make(plan, made, kept.failed_log(key))
            kept.make_room(key)
    return key


def _check_disk() -> None:
    free_bytes = shutil.disk_usage(kept.folder()).free
    if free_bytes < LEAST_FREE_BYTES:
        raise DnsrigError(
            f"a build needs {LEAST_FREE_BYTES / 1e9:g} GB of disk, and {kept.folder()} has {free_bytes / 1e9:.1f}",
            hint="free some space, or keep fewer builds: DNSRIG_BUILDS_GB",
        )


def _make(plan: Plan, made: Path, failed: Path) -> None:
    began_s = time.monotonic()
    work = made.with_name("work")
    for folder in (made, work / "tmp"):
        folder.mkdir(parents=True)
    log = work / kept.LOG
    try:
        _lay_out(plan, work)
        status = _run_script(plan, made, work, log)
    except subprocess.TimeoutExpired:
        raise BuildFailed(
            f"{plan.name} cannot be built: it took longer than {BUILD_LIMIT_S / 3600:g} h", log=_keep(log, failed)
        ) from None
    if status != 0:
        raise explain(plan.name, status, _keep(log, failed))
    _take_over(made)
    if (program := program_in(made, plan.server.executable)) is None:
        raise BuildFailed(f"{plan.name} was built, but has no {plan.server.executable}", log=_keep(log, failed))
    said = _said(plan, f"{SEEN}/{program.relative_to(made)}", made)
    if (match := re.search(plan.server.version_pattern, said)) is None:
        what = f"does not tell its version: {said.strip()[:SAID_CHARACTERS]!r}"
        raise BuildFailed(f"{plan.name} was built, but {what}", log=_keep(log, failed))
    shutil.move(log, made / kept.LOG)
    record = BuildRecord(
        kind=plan.server.kind,
        source=plan.reference.source,
        commit=plan.label or plan.commit,
        version=version_of(plan, match[1]),
        fingerprint=checksums.sha256(program)[:16],
        suite=plan.root.suite,
        root=plan.root.path.name,
        packages=plan.root.packages,
        repository=plan.repository.title,
        took_s=round(time.monotonic() - began_s, 1),
        size_bytes=kept.size_bytes(made),
    )
    (made / kept.RECORD).write_text(record.model_dump_json(indent=1))


def _lay_out(plan: Plan, work: Path) -> None:
    """Write the sources with their submodules, tools and the script, owned by the user who builds."""
    source = work / "source"
    plan.repository.check_out(plan.commit, source, plan.recipe.left_out)
    for path in plan.recipe.submodules:
        if (found := plan.repository.submodule(plan.commit, path)) is not None:
            _submodule(*found, source / path)
    lay_out_tools(plan.root.path, work)
    (work / "script").write_text(plan.method.script)
    kept.ccache().mkdir(parents=True, exist_ok=True)
    confinement.own(work, confinement.USER)
    os.chown(kept.ccache(), confinement.USER, confinement.USER)


def _submodule(url: str, commit: str, folder: Path) -> None:
    origin = repository.of_url(url)
    if not origin.is_there or origin.resolve(commit) is None:
        origin.fetch()
    if origin.resolve(commit) is None:
        raise DnsrigError(
            f"{origin.title} has no commit {commit[:12]}, which the server needs at {folder.name}",
            hint=f"bring that mirror up to date, or name another folder of mirrors with {repository.FOLDER_VARIABLE}",
        )
    origin.check_out(commit, folder)


def _run_script(plan: Plan, made: Path, work: Path, log: Path) -> int:
    confinement.own(made, confinement.USER)
    environment = {
        "PATH": f"{WORK_SEEN}/ccache:{WORK_SEEN}/alternatives:/usr/sbin:/usr/bin",
        "HOME": f"{WORK_SEEN}/tmp",
        "TMPDIR": f"{WORK_SEEN}/tmp",
        "LC_ALL": "C",
        "PYTHONUTF8": "1",
        "TZ": "UTC",
        "PREFIX": SEEN,
        "JOBS": str(len(os.sched_getaffinity(0))),
        "CFLAGS": plan.flags,
        "CXXFLAGS": plan.flags,
        "SOURCE_DATE_EPOCH": str(plan.repository.commit(plan.commit).time_s),
        "CCACHE_DIR": CCACHE_SEEN,
        "CCACHE_MAXSIZE": CCACHE_SIZE,
        # The root identifies the compiler; files of a fresh check-out always have new times.
        "CCACHE_COMPILERCHECK": f"string:{plan.root.path.name}",
        "CCACHE_SLOPPINESS": "include_file_ctime,include_file_mtime",
    }
    binds = [BindMount(work, WORK_SEEN), BindMount(made, SEEN), BindMount(kept.ccache(), CCACHE_SEEN)]
    with log.open("wb") as output:
        return confinement.run(
            ["sh", "-eu", f"{WORK_SEEN}/script", *plan.reference.options],
            confinement=Confinement(plan.root.path, binds),
            workdir=f"{WORK_SEEN}/source",
            environment=environment,
            output=output,
            limit_s=BUILD_LIMIT_S,
        )


def _said(plan: Plan, program: str, made: Path) -> str:
    """Output of the program when it is asked for its version, in the root in which it will run."""
    _, text = confinement.run_and_read(
        [program, *plan.server.version_arguments],
        confinement=Confinement(plan.root.path, [BindMount(made, SEEN, read_only=True)]),
        environment={"PATH": "/usr/sbin:/usr/bin", "LC_ALL": "C"},
        limit_s=VERSION_LIMIT_S,
    )
    return text


def version_of(plan: Plan, said: str) -> str:
    """The shown version: ``1.26.0`` for that release, ``1.26.0 at 7fb79b067f00`` for any other commit with this number.

    A commit after a release has the number of that release or of the next, and a release candidate the number of the
    release.
    """
    released = {plan.recipe.version_of_tag(tag) for tag in plan.repository.tags_at(plan.commit)}
    if numbers(said) in released and not plan.label:
        return said
    head, plus, changes = (plan.label or plan.commit).partition("+")
    return f"{said} at {head[:SHOWN_DIGITS]}{plus}{changes}"


def program_in(built: Path, name: str) -> Path | None:
    """Path of the program ``name`` in a build; None if the build lacks it."""
    inside = built.resolve()
    places = (built / folder / name for folder in FOLDERS)
    return next((place for place in places if place.is_file() and place.resolve().is_relative_to(inside)), None)


def _take_over(folder: Path) -> None:
    """Make us the owner of everything below, after every process of the script has ended. Another owner could still
    write to files."""
    confinement.own(folder, os.geteuid())


def _keep(log: Path, kept_at: Path) -> Path:
    kept_at.parent.mkdir(parents=True, exist_ok=True)
    if log.exists():
        shutil.move(log, kept_at)
    return kept_at
