"""Zones that the engine signed, verified by BIND: every signature, and that no name is missing in the chain."""

from __future__ import annotations

from pathlib import Path

import dnssec_verify
import pytest

pytestmark = pytest.mark.servers

GOLDEN = Path(__file__).parents[2] / "engine/dnsrig-dns/tests/golden"
FILES = sorted(GOLDEN.glob("signed-*.zone"))


@pytest.mark.parametrize("zone", FILES, ids=lambda path: path.stem)
def test_bind_finds_the_zone_fully_signed(zone: Path) -> None:
    assert dnssec_verify.complaint(zone, "example") == ""


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
        assert dnssec_verify.complaint(zone, "example"), name
