"""Runs of the engine that end by themselves. A script stands in for the engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from dnsrig import engine
from dnsrig.errors import DnsrigError


def test_a_failure_has_the_first_line_and_the_hint_however_long_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "dnsrig-engine"
    script.write_text(
        f"#!/bin/sh\necho 'no file {'x' * 900}' >&2; echo 'between' >&2; echo 'hint: make it' >&2; exit 2\n"
    )
    script.chmod(0o755)
    monkeypatch.setenv("DNSRIG_ENGINE", str(script))
    with pytest.raises(DnsrigError) as raised:
        engine.run(["generate"], "no dataset")
    first, last = raised.value.message.splitlines()
    assert first.startswith("no dataset: no file xxx") and len(first) < 600
    assert last == "hint: make it"


@pytest.mark.parametrize("status", [0, 2])
def test_progress_is_reported_and_is_no_error(status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "dnsrig-engine"
    script.write_text(f"#!/bin/sh\nread line; echo \"progress: $line\" >&2; echo 'a fault' >&2; exit {status}\n")
    script.chmod(0o755)
    monkeypatch.setenv("DNSRIG_ENGINE", str(script))
    noted: list[str] = []
    if status:
        with pytest.raises(DnsrigError, match="no dataset: a fault"):
            engine.watched(["generate"], "no dataset", text="half\n", note=noted.append)
    else:
        engine.watched(["generate"], "no dataset", text="half\n", note=noted.append)
    assert noted == ["half"]
