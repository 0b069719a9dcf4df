"""The commands in the docs work: each page's console blocks are run in order, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md",
    "docs/tutorial.md",
    "docs/how-to/compare.md",
    "docs/how-to/experiment.md",
    "docs/how-to/latency.md",
]
BLOCK = re.compile(r"^```(?P<kind>\w+)(?: file=(?P<file>\S+))?\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", PAGES)
def test_commands(page: str, tmp_path: Path) -> None:
    binaries = Path(sys.executable).parent
    (tmp_path / ".venv").symlink_to(binaries.parent)
    ran = 0
    for block in BLOCK.finditer((ROOT / page).read_text()):
        if block["file"]:
            (tmp_path / block["file"]).write_text(block["text"])
        if block["kind"] != "console":
            continue
        for line in block["text"].splitlines():
            assert line.startswith("$ "), line
            environment = {**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}"}
            result = subprocess.run(
                ["bash", "-c", line[2:]], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
            )
            assert result.returncode == 0, f"{line}\n{result.stdout}{result.stderr}"
            ran += 1
    assert ran
