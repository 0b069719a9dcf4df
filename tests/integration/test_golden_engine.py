"""What the engine generates, and what it sends, is what it was: bytes equal to those when the digests were made.

If a change of them is meant, make the digests anew with ``DNSRIG_BLESS=1``, in the commit of that change. Where they
differ says `benches/same_behaviour.py BEFORE AFTER` with an engine of before.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dnsrig import paths

BENCH = Path(__file__).parents[2] / "benches" / "same_behaviour.py"
GOLDEN = Path(__file__).parent / "golden" / "engine.json"
RUNS = ["generate", "serve", "transfer"]
"""Those that nothing else on the machine can change: no clock decides what is sent."""


def digests(run: str) -> dict[str, str]:
    """Of generated files and the wire; not of events and rows, whose names may change."""
    command = [sys.executable, str(BENCH), "--digests", str(paths.engine()), "--only", run]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)[run]
    return {title: digest for title, digest in found.items() if title.endswith(": wire") or ": " not in title}


@pytest.mark.parametrize("run", RUNS)
def test_bytes_are_what_they_were(run: str) -> None:
    found = digests(run)
    known = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    if "DNSRIG_BLESS" in os.environ:
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(json.dumps(known | {run: found}, indent=1, sort_keys=True) + "\n")
    else:
        assert found == known[run]
