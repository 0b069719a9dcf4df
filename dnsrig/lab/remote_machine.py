"""Another machine that has hosts of a trial, as the lab sees it. `dnsrig.machines` knows how it is reached."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

from dnsrig.lab.remote_popen import RemotePopen


class RemoteMachine(Protocol):
    """Another machine, as a trial sees it."""

    name: str

    def call(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        """Call ``function``, which is imported there by its name; arguments and result are what JSON can say.

        Raises DnsrigError where it does, or where the machine does not answer.
        """

    def start(
        self,
        host: str,
        command: Sequence[str],
        how: dict[str, Any],
        *,
        reads: bool,
        stdout: IO[Any] | int | None,
        stderr: IO[Any] | int | None,
    ) -> RemotePopen:
        """Start a program on a host there; paths in ``command`` and ``how`` are those of here. ``reads``: whether it
        gets a standard input; ``stdout`` and ``stderr`` as of `subprocess.Popen`."""

    def make_folder(self, folder: Path) -> None:
        """The place there of a folder of the trial."""

    def bring_folder(self, folder: Path) -> None:
        """A folder that lies anywhere here: paths in it are known there from then on."""

    def fetch(self, folder: Path) -> None:
        """The folder of the trial as it is there comes here, over what is here of it."""
