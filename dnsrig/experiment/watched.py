"""The memory of `dnsrig watch-branch` between two nights: the changes that it has reported."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pydantic import Field

from dnsrig.analysis.regressions import Key
from dnsrig.errors import UsageError
from dnsrig.rundir import SCHEMA_VERSION, Record, read_json, write_json

FILE = "watched.json"
MOST_TOLD = 10_000
"""Number of the newest changes that are remembered."""


class Watched(Record):
    """watched.json in the folder of a watched branch."""

    schema_version: int = SCHEMA_VERSION
    branch: str
    """The branch, as the user wrote it. Each branch has its own folder."""
    told: list[Key] = Field(default_factory=list)

    @classmethod
    def read(cls, folder: Path, branch: str) -> Watched:
        """Read the file in ``folder``; a new record if there is no file. Raises UsageError for another branch."""
        if not (folder / FILE).exists():
            return cls(branch=branch)
        found = read_json(folder / FILE, cls)
        if found.branch != branch:
            raise UsageError(f"{folder} watches {found.branch}, not {branch}", hint="name another folder with --out")
        return found

    def tell(self, keys: Iterable[Key]) -> Watched:
        return self.model_copy(update={"told": [*self.told, *keys][-MOST_TOLD:]})

    def write(self, folder: Path) -> None:
        """Write the file in ``folder``, whole or not at all."""
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / FILE, self)
