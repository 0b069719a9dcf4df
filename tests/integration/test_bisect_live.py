"""`dnsrig bisect` with BIND, whose limit of SOA queries is lowered in one of eight steps; killed in the middle."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

RATES = [1000, 1001, 1002, 1003, 1004, 20, 21, 22]
CULPRIT = 5
KILL_LIMIT_S = 200
SEARCH = [
    *("tour", "--set", "zones=60", "--set", "hosts.secondary.server=bind@forky"),
    *("--vary", 'hosts.secondary.settings."serial-query-rate"', "--candidates", ",".join(map(str, RATES))),
    *("--bad-if", "transfer_time > 150 %", "--seed", "3"),
]


@pytest.mark.full
@pytest.mark.servers
@pytest.mark.timeout(1500)
def test_it_is_killed_goes_on_and_finds_the_setting(tmp_path: Path) -> None:
    """Takes minutes: a slow trial takes 3 s, and the search needs dozens of trials to be certain."""
    begun = subprocess.Popen(dnsrig(*SEARCH), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + KILL_LIMIT_S
    while len(finished(tmp_path)) < 5 and time.monotonic() < deadline:
        assert begun.poll() is None, begun.communicate()
        time.sleep(0.2)
    begun.kill()
    begun.communicate()
    before = {path: path.read_bytes() for path in finished(tmp_path)}
    assert len(before) >= 5
    (run,) = tmp_path.glob("runs/tour/*")
    ended = subprocess.run(
        dnsrig("--resume", str(run), "--json"), cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found["answer"] == "commit" and found["probability_wrong"] <= 0.02
    assert [each["position"] for each in found["candidates"]] == [CULPRIT]
    assert {path: path.read_bytes() for path in before} == before
    assert found["trials"] == len(finished(tmp_path))
    assert (run / "report.html").exists()


def finished(folder: Path) -> list[Path]:
    return sorted(folder.glob("runs/tour/*/trials/*/*/trial.json"))


def dnsrig(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "dnsrig", "bisect", *arguments]
