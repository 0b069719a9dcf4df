"""Instruments: their events, their end, and what is said when they fail. A script stands in for the engine."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dnsrig.errors import DnsrigError
from dnsrig.lab.host import Host
from dnsrig.procedures.instrument import Instrument
from dnsrig.rundir import HostSpec

HOST = Host("observer", HostSpec(address="198.18.0.9", cpus=[0]), "none")
Start = Callable[..., Instrument]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Start an instrument whose engine is a shell script."""

    def started(script: str) -> Instrument:
        engine = tmp_path / "dnsrig-engine"
        engine.write_text(f"#!/bin/sh\n{script}\n")
        engine.chmod(0o755)
        monkeypatch.setenv("DNSRIG_ENGINE", str(engine))
        return Instrument.start("load", HOST, ["load"], tmp_path / "instruments" / "load.stderr")

    return started


def test_events_until_the_summary(start: Start) -> None:
    instrument = start("""echo '{"event":"started"}'; echo noise; echo '{"event":"progress","sent":1}'
echo '{"event":"summary","sent":2}'; cat""")
    assert not instrument.take(progress := instrument.events.get(timeout=10)) and progress["sent"] == 1
    assert instrument.take(instrument.events.get(timeout=10))
    assert instrument.summary is not None and instrument.summary["sent"] == 2
    assert not instrument.process.running, "it is stopped when it has said all"


def test_an_end_without_a_summary_is_told_with_its_last_words(start: Start) -> None:
    instrument = start("""echo '{"event":"started"}'; echo 'no route' >&2; exit 3""")
    with pytest.raises(DnsrigError, match="the instrument load exited with status 3: no route"):
        instrument.process.popen.wait(10)
        instrument.take(instrument.events.get(timeout=10))


def test_one_that_does_not_start_says_why(start: Start) -> None:
    with pytest.raises(DnsrigError, match="the instrument load did not start: bad argument"):
        start("echo 'bad argument' >&2; exit 2")


def test_the_engines_sentence_and_hint_are_told_apart(start: Start) -> None:
    instrument = start("""echo '{"event":"started"}'
echo 'dnsrig-engine load: too few message ids' >&2; echo 'hint: use more clients' >&2; exit 2""")
    with pytest.raises(DnsrigError, match=r"exited with status 2: dnsrig-engine load: too few message ids$") as raised:
        instrument.take(instrument.events.get(timeout=10))
    assert raised.value.hint == "use more clients"


def test_one_that_is_stopped_still_gives_its_summary(start: Start) -> None:
    instrument = start("""trap 'echo "{\\"event\\":\\"summary\\",\\"sent\\":5}"; exit 0' TERM
echo '{"event":"started"}'
while :; do sleep 0.05; done""")
    instrument.stop()
    assert instrument.summary is not None and instrument.summary["sent"] == 5


def test_one_that_must_be_on_time_goes_first_where_it_may(start: Start) -> None:
    """Real time needs a right that not everyone has; what it got is read back from the kernel."""
    instrument = start("""echo '{"event":"started"}'; cat""")
    assert os.sched_getscheduler(instrument.process.pid) == os.sched_getscheduler(0), "until then as we are"
    got = instrument.process.go_first()
    assert got == (os.sched_getscheduler(instrument.process.pid) == os.SCHED_FIFO)
    instrument.process.stop()
