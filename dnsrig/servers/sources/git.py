"""Any commit of a server's repository, built here (`dnsrig.servers.builds`): ``bind@git:v9.18.10``.

For a bisection, a history and others that work on versions:

``commit(server, ref)``               the full hash of a tag, branch or hash
``commits(server, first, last)``      the commits between two, each after its parents
``releases(server)``                  the tags of releases, by version
``expand(name)``                      ``bind@git:v9.18.0..v9.18.13 steps=5`` as single names, from the first on
``sources.install(name)``             one build, from the cache or made now: ``bind@git:HASH``. Raises `BuildFailed` of
                                      `dnsrig.servers.builds.errors` if the commit cannot be built: skip it. Other
                                      errors (disk full, killed, no such commit) are not the fault of the commit.
``sources.find(name)``                one build from the cache: None if it is not built yet
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dnsrig import paths
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.rundir import ServerSource
from dnsrig.servers import debian
from dnsrig.servers.builds import build, kept, reference, repository
from dnsrig.servers.builds.build import Plan
from dnsrig.servers.builds.recipe import Recipe, Tree, find_root, provide_root, root_packages
from dnsrig.servers.builds.reference import Reference
from dnsrig.servers.builds.repository import HASH, Commit, Repository
from dnsrig.servers.driver import Driver

HOW = "it is built from its repository, once; that takes minutes"


def takes(source: str) -> bool:
    return reference.takes(source)


def find(server: Driver, source: str) -> ServerSource | None:
    wanted, origin = _single(server, source), repository_of(server)
    if not origin.is_there or (found := origin.resolve(wanted.ref)) is None:
        return None
    return find_build(server, wanted, origin, found)


look = find


def install(server: Driver, source: str) -> ServerSource:
    wanted = _single(server, source)
    origin = _fetched(server, wanted.ref)
    return make_build(server, wanted, origin, _resolved(server, origin, wanted.ref))


def find_build(
    server: Driver, wanted: Reference, origin: Repository, commit: str, label: str = ""
) -> ServerSource | None:
    """The build of ``commit`` from the cache; None if it is not built. ``label``: see `Plan`."""
    recipe = _recipe(server)
    method = build.method(server, recipe, Tree(origin, commit))
    packages = root_packages(method, wanted.packages)
    if (root := find_root(server.kind, wanted.suite or method.suite, packages)) is None:
        return None
    return _kept(Plan(server, recipe, wanted, origin, commit, method, root, label).key, wanted)


def make_build(server: Driver, wanted: Reference, origin: Repository, commit: str, label: str = "") -> ServerSource:
    """The build of ``commit``, from the cache or made now."""
    recipe = _recipe(server)
    method = build.method(server, recipe, Tree(origin, commit))
    packages = root_packages(method, wanted.packages)
    root = provide_root(server.kind, wanted.suite or method.suite, packages)
    made = _kept(build.make(Plan(server, recipe, wanted, origin, commit, method, root, label)), wanted)
    assert made is not None
    return made


def installed(server: Driver) -> list[ServerSource]:
    if server.recipe is None:
        return []
    records = ((key, record) for key in kept.keys(server.kind) if (record := kept.read(key)) is not None)
    return [_found(key, record, record.source) for key, record in records]


def root(found: ServerSource) -> Path:
    record = _record(found)
    kept.use(found.key)
    return debian.folder(record.suite) / record.root


def shown(found: ServerSource) -> dict[str, Path]:
    return {build.SEEN: kept.folder() / found.key}


def program(found: ServerSource, name: str) -> str:
    built = kept.folder() / found.key
    path = build.program_in(built, name)
    return name if path is None else f"{build.SEEN}/{path.relative_to(built)}"


def repository_of(server: Driver) -> Repository:
    """The repository of a server, which may not be cloned yet. Raises UsageError if dnsrig cannot build the server."""
    return repository.of(server.kind, _recipe(server).repository)


def commit(server: Driver, ref: str) -> str:
    """The full hash of the commit ``ref``. Raises UsageError if there is no such commit."""
    return _resolved(server, _fetched(server, ref), ref)


def commits(server: Driver, first: str, last: str) -> list[Commit]:
    """The commits of ``last`` that are not in ``first``, each after its parents; the last one is ``last``."""
    ends = commit(server, first), commit(server, last)
    return repository_of(server).between(*ends)


def releases(server: Driver) -> list[str]:
    """The tags of releases that can be built, judged by their numbers, in the order of versions."""
    return _releases(server, _fetched(server))


def with_options(source: str, options: str, *, symbols: bool) -> str:
    wanted = reference.parse(f"{source} {options}")
    return replace(wanted, symbols=wanted.symbols or symbols).source


def is_range(source: str) -> bool:
    return reference.parse(source).is_range


def expand(server: Driver, source: str) -> list[str]:
    """The single sources of a range, from the first on; a list of ``source`` if it is not a range."""
    wanted, recipe = reference.parse(source), _recipe(server)
    if not wanted.is_range:
        return [source]
    for ref in (wanted.ref, wanted.last):
        commit(server, ref)
    return [wanted.at(ref).source for ref in reference.chosen(recipe, repository_of(server), wanted)]


def _recipe(server: Driver) -> Recipe:
    if server.recipe is None:
        raise UsageError(
            f"there is no recipe for building {server.title} from a repository",
            hint=f"use {server.kind}@forky, or {server.kind}@/path/to/your/build",
        )
    return server.recipe


def _single(server: Driver, source: str) -> Reference:
    wanted = reference.parse(source)
    if wanted.is_range:
        raise UsageError(
            f"{server.kind}@{source} is a range of builds, not one",
            hint=f'a range is for experiments: server = "{server.kind}@{source}"',
        )
    return wanted


def _fetched(server: Driver, ref: str = "") -> Repository:
    """The repository, cloned if it is missing, and fetched if ``ref`` may be new or have moved."""
    origin = repository_of(server)
    if not origin.is_there or (ref and not (origin.resolve(ref) and (HASH.fullmatch(ref) or ref in origin.tags()))):
        origin.fetch()
    return origin


def _resolved(server: Driver, origin: Repository, ref: str) -> str:
    if (found := origin.resolve(ref)) is None:
        raise UsageError(
            f"{origin.title} has no commit {ref!r} of {server.title}",
            hint=f"its releases have names like {_example(server, origin)}; --repository {server.kind}=FOLDER selects another repository",
        )
    return found


def _example(server: Driver, origin: Repository) -> str:
    return next(reversed(_releases(server, origin)), "v1.0")


def _releases(server: Driver, origin: Repository) -> list[str]:
    recipe = _recipe(server)
    found = {tag: version for tag in origin.tags() if (version := recipe.version_of_tag(tag)) is not None}
    return sorted(found, key=lambda tag: found[tag])


def _kept(key: str, wanted: Reference) -> ServerSource | None:
    record = kept.read(key)
    if record is None or not (debian.folder(record.suite) / record.root).is_dir():
        return None
    kept.use(key)
    return _found(key, record, wanted.source)


def _found(key: str, record: kept.BuildRecord, source: str) -> ServerSource:
    return ServerSource(
        kind=record.kind,
        source=source,
        version=record.version,
        key=key,
        packages=record.packages,
        fingerprint=record.fingerprint,
        commit=record.commit,
    )


def _record(found: ServerSource) -> kept.BuildRecord:
    if (record := kept.read(found.key)) is None:
        source = reference.parse(found.source).at(found.commit).source if takes(found.source) else found.source
        raise DnsrigError(
            f"the build of {found.name} is missing in {paths.cache()}",
            hint=f"build it again: dnsrig servers install '{found.kind}@{source}'",
        )
    return record
