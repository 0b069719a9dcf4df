"""Zones that the engine signed, verified by BIND: every signature, and that no name is missing in the chain."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dnsrig import paths
from dnsrig.servers import sources

pytestmark = pytest.mark.servers

GOLDEN = Path(__file__).parents[2] / "engine/dnsrig-engine/tests/golden"
FILES = sorted(GOLDEN.glob("signed-*.zone"))


def verify(zone: Path) -> subprocess.CompletedProcess[str]:
    found = sources.find("bind@forky")
    assert found
    enter = [paths.engine(), "enter", "--root", sources.root(found), "--bind", f"{zone}:/mnt/zone:ro", "--"]
    # `-z`: a key may sign both keys and records.
    command = [*enter, "dnssec-verify", "-z", "-o", "example", "/mnt/zone"]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.mark.parametrize("zone", FILES, ids=lambda path: path.stem)
def test_bind_finds_the_zone_fully_signed(zone: Path) -> None:
    verified = verify(zone)
    assert verified.returncode == 0 and "Zone fully signed" in verified.stdout + verified.stderr, verified


def test_bind_notices_what_is_damaged(tmp_path: Path) -> None:
    lines = FILES[0].read_text().splitlines()
    last = next(line for line in reversed(lines) if " RRSIG " in line)
    turned = last[:-1] + ("1" if last.endswith("0") else "0")
    for name, damaged in {
        "turned": [turned if line == last else line for line in lines],
        "without NSEC": [line for line in lines if not line.startswith("ns2.example. 300 IN NSEC ")],
    }.items():
        zone = tmp_path / "zone"
        zone.write_text("\n".join(damaged) + "\n")
        assert verify(zone).returncode != 0, name
