"""A checkout of a server's repository, built here with its uncommitted changes: ``bind@/path/to/checkout``.

A folder with ``.git`` is a checkout, unless it has a folder ``sbin``: then a server is installed in it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dnsrig.rundir import ServerSource
from dnsrig.servers.builds import checkout, reference
from dnsrig.servers.builds.reference import Reference
from dnsrig.servers.driver import Driver
from dnsrig.servers.sources import git

HOW = "it is built from your checkout, once for each state of its files; that takes minutes"

root, shown, program = git.root, git.shown, git.program


def takes(source: str) -> bool:
    if not source.removeprefix("'").startswith(("/", ".", "~")):
        return False
    place = Path(_read(source).place)
    return checkout.is_checkout(place) and not (place / "sbin").is_dir()


def find(server: Driver, source: str) -> ServerSource | None:
    wanted, taken = _read(source), _taken(source)
    return git.find_build(server, wanted, taken.repository, taken.commit, taken.label)


look = find


def install(server: Driver, source: str) -> ServerSource:
    wanted, taken = _read(source), _taken(source)
    return git.make_build(server, wanted, taken.repository, taken.commit, taken.label)


def installed(server: Driver) -> list[ServerSource]:
    """None: `git.installed` lists all builds."""
    return []


def with_options(source: str, options: str, *, symbols: bool) -> str:
    wanted = reference.with_words(_read(source), options)
    return replace(wanted, symbols=wanted.symbols or symbols).source


def _taken(source: str) -> checkout.Taken:
    return checkout.take(Path(_read(source).place))


def _read(source: str) -> Reference:
    """The path and the words of ``/path/to/checkout --with-x``. A path of a folder may have spaces."""
    path, words = source, ""
    if not Path(source).expanduser().is_dir() and " " in source:
        path, words = reference.first_word(source)
    return reference.with_words(Reference("HEAD", place=str(Path(path).expanduser().resolve())), words)
