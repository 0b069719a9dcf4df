"""What `dnsrig watch-branch` keeps between two nights: which changes it has told."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pydantic import Field

from dnsrig.comparison.history import Key
from dnsrig.errors import UsageError
from dnsrig.rundir import SCHEMA_VERSION, Record, read_json, write_json

FILE = "watched.json"
MOST_TOLD = 10_000
"""Of the changes that are remembered, the newest."""


class Watched(Record):
    """watched.json in the folder of a watched branch."""

    schema_version: int = SCHEMA_VERSION
    branch: str
    """As given: another one has a folder of its own."""
    told: list[Key] = Field(default_factory=list)

    @classmethod
    def read(cls, folder: Path, branch: str) -> Watched:
        """That of ``folder``; a new one where there is none. Raises UsageError where it is of another branch."""
        if not (folder / FILE).exists():
            return cls(branch=branch)
        found = read_json(folder / FILE, cls)
        if found.branch != branch:
            raise UsageError(f"{folder} watches {found.branch}, not {branch}", hint="name another folder with --out")
        return found

    def tell(self, keys: Iterable[Key]) -> Watched:
        return self.model_copy(update={"told": [*self.told, *keys][-MOST_TOLD:]})

    def write(self, folder: Path) -> None:
        """Whole or not at all."""
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / FILE, self)
