"""Folders of the machine in the root file system of a program: `enter --bind` of the engine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class BindMount:
    """A folder of the machine, and its path for the program: below /mnt or /run of its root file system."""

    machine: Path
    seen: str
    read_only: bool = False

    def arguments(self) -> list[str]:
        """Arguments of `enter`."""
        return ["--bind", f"{self.machine}:{self.seen}{':ro' if self.read_only else ''}"]
