"""A server without a driver of its own: an experiment describes its command, its configuration and what it can do.

dnsrig knows no more of it than the description. It has no statistics, no settings that dnsrig knows by name, and no log
that is read for transfers.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, get_args

from dnsrig.rundir import ANSWERS, DescribedServer, Role
from dnsrig.servers import templates
from dnsrig.servers.driver import Driver, Feature, LogEvent, Support
from dnsrig.servers.placement import Placement, Preparation

CONFIG = "{config}"
"""Placeholder for the path of the configuration, in a word of the command."""
SEEN_FILES = "/mnt/files"
ROLES: dict[str, Role] = {
    "authoritative": "primary",
    "secondary": "secondary",
    "resolver": "resolver",
    "forwarder": "resolver",
}
UNVERSIONED = "unversioned"
EVERYWHERE = Support("0", "0", "0")
"""A feature that the description states: dnsrig does not know its versions."""
_CONFIG = re.compile(r"(?<!\{)\{config\}(?!\})")


class Described(Driver):
    """The driver of one description: `driver_of` gives it the name and the rest of the description."""

    described: ClassVar[DescribedServer]
    log_clock_resolution_ns = 1
    settings = ()

    def configure(self, placement: Placement) -> None:
        if self.described.template:
            name = config_name(self.kind, self.described)
            text = templates.rendered(self.described.template, name, self.known(placement))
            (placement.directory / name).write_text(text)

    def command(self, placement: Placement) -> list[str]:
        return self._words(self.described.description.command, placement)

    def load_changes(self, placement: Placement) -> list[Preparation]:
        words = self.described.description.reload
        return [] if is_signal(words) else [Preparation(self._words(words, placement))]

    def read_log(self, path: Path) -> Iterator[LogEvent]:
        return iter(())

    def read_work(self, path: Path, catalog: str) -> Iterator[LogEvent]:
        return iter(())

    def _words(self, words: list[str], placement: Placement) -> list[str]:
        path = f"{placement.seen_directory}/{config_name(self.kind, self.described)}"
        values = {**self.known(placement), "config": path}
        files = seen_files(self.described)
        own = words[0] == self.described.description.command[0]
        program = self.executable if own else Path(words[0]).name if words[0].startswith("./") else words[0]
        return [program, *(files.get(word) or _word(word, values) for word in words[1:])]


def _word(word: str, values: templates.Variables) -> str:
    text = templates.rendered(word, f"the word {word!r}", values) if is_template(word) else word
    return _CONFIG.sub(lambda _: str(values["config"]), text)


def is_template(text: str) -> bool:
    """Whether there is anything to render: rendering starts a process."""
    return any(mark in text for mark in ("{{", "{%", "{#"))


def config_name(kind: str, described: DescribedServer) -> str:
    """The name of the configuration in the server's folder: the name of the template without ``.j2``."""
    config = described.description.config
    return f"{kind}.conf" if "\n" in config or not config else Path(config).name.removesuffix(".j2")


def seen_files(described: DescribedServer) -> dict[str, str]:
    """Word of the command that names a file -> the path at which the server sees it."""
    return {word: f"{SEEN_FILES}/{number}/{Path(word).name}" for number, word in enumerate(described.files)}


def is_signal(words: list[str]) -> bool:
    return len(words) == 1 and words[0] in signal.Signals.__members__


def roles(described: DescribedServer) -> tuple[Role, ...]:
    return tuple(dict.fromkeys(ROLES[role] for role in described.description.roles))


def driver_of(kind: str, described: DescribedServer) -> Driver:
    """The driver of the server ``kind`` that an experiment describes."""
    said = described.description
    known = {name for name in get_args(Feature) if name in said.features}
    printed = said.version if isinstance(said.version, list) else []
    attributes = {
        "kind": kind,
        "title": kind,
        "described": described,
        "executable": Path(described.program or said.command[0]).name,
        "packages": tuple(said.packages),
        "roles": roles(described),
        "answers_zones": bool({"primary", "secondary"} & {*roles(described)}),
        "stop_signal": signal.Signals[said.stop],
        "reload_signal": signal.Signals[said.reload[0]] if is_signal(said.reload) else signal.SIGHUP,
        "ready_pattern": "" if said.ready == ANSWERS else said.ready,
        "features": dict.fromkeys(known, EVERYWHERE),
        "version_arguments": tuple(printed[1:]),
        "version_pattern": r"(\d+(?:\.\d+)+\S*)",
        "stated_version": None if printed else said.version or UNVERSIONED,
    }
    made = type("DescribedAs", (Described,), attributes)()
    assert isinstance(made, Driver)
    return made
