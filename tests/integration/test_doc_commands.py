"""The commands in the docs work: each page's console blocks are run in order, in an empty folder.

A command that ends with ``&`` goes on in the background until the page is done.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md",
    "docs/tutorial.md",
    "docs/how-to/compare.md",
    "docs/how-to/experiment.md",
    "docs/how-to/latency.md",
    "docs/how-to/load.md",
    "docs/how-to/plan.md",
    "docs/how-to/transfer.md",
    "docs/how-to/transfers-of-a-primary.md",
]
PLANNED = ["docs/how-to/databases.md", "docs/how-to/long-distance.md"]
"""Their runs take many minutes, so here they are only planned: every word of them is still understood."""
BACKGROUND = " &"
END_LIMIT_S = 10
BLOCK = re.compile(r"^```(?P<kind>\w+)(?: file=(?P<file>\S+))?\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", [*PAGES, *PLANNED])
def test_commands(page: str, tmp_path: Path) -> None:
    binaries = Path(sys.executable).parent
    (tmp_path / ".venv").symlink_to(binaries.parent)
    environment = {**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}"}
    ran = 0
    with background(tmp_path, environment) as servers:
        for block in BLOCK.finditer((ROOT / page).read_text()):
            if block["file"]:
                (tmp_path / block["file"]).write_text(block["text"])
            if block["kind"] != "console":
                continue
            for line in block["text"].splitlines():
                assert line.startswith("$ "), line
                command = line.removeprefix("$ ")
                if page in PLANNED:
                    command = command.replace("dnsrig run ", "dnsrig run --dry-run ")
                if command.endswith(BACKGROUND):
                    servers.start(command.removesuffix(BACKGROUND))
                else:
                    result = subprocess.run(
                        ["bash", "-c", command],
                        cwd=tmp_path,
                        env=environment,
                        capture_output=True,
                        text=True,
                        check=False,
                    )
                    assert result.returncode == 0, f"{line}\n{result.stdout}{result.stderr}"
                ran += 1
    assert ran


class Servers:
    """Commands that go on while others run."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder, self.environment = folder, environment
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, command: str) -> None:
        # With exec the process that is ended later is the command itself and not its shell.
        self.running[command] = subprocess.Popen(
            ["bash", "-c", f"exec {command}"], cwd=self.folder, env=self.environment
        )


@contextmanager
def background(folder: Path, environment: Mapping[str, str]) -> Iterator[Servers]:
    """Ends what was started, and sees to it that it ran until then."""
    servers = Servers(folder, environment)
    try:
        yield servers
        for command, process in servers.running.items():
            assert process.poll() is None, f"{command} ended by itself: {process.returncode}"
    finally:
        for process in servers.running.values():
            process.terminate()
        for process in servers.running.values():
            process.wait(END_LIMIT_S)
