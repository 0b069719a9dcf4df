"""Instruments: their events, their end, and what is said when they fail. A script stands in for the engine."""

from __future__ import annotations

import os
import time
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

    def started(script: str, name: str = "load") -> Instrument:
        engine = tmp_path / "dnsrig-engine"
        engine.write_text(f"#!/bin/sh\n{script}\n")
        engine.chmod(0o755)
        monkeypatch.setenv("DNSRIG_ENGINE", str(engine))
        return Instrument.start(name, HOST, [name], tmp_path / "instruments" / f"{name}.stderr")

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


SUMMARY = """echo '{"event":"started"}'; echo '{"event":"summary",%s}'; exit %d"""


@pytest.mark.parametrize("told", ['"interrupted":true', '"outcome":"interrupted"'])
def test_one_that_somebody_else_interrupted_is_no_result(start: Start, told: str) -> None:
    instrument = start(SUMMARY % (told, 130))
    with pytest.raises(DnsrigError, match="the instrument load was interrupted by a signal before it finished"):
        instrument.take(instrument.events.get(timeout=10))


def test_one_that_we_stop_may_say_that_it_was_interrupted(start: Start) -> None:
    instrument = start("""trap 'echo "{\\"event\\":\\"summary\\",\\"interrupted\\":true}"; exit 130' TERM
echo '{"event":"started"}'
while :; do sleep 0.05; done""")
    instrument.stop()
    assert instrument.summary is not None and instrument.summary["interrupted"]


def test_one_that_is_stopped_and_has_no_summary_is_an_error(start: Start) -> None:
    # The words come first: it is stopped as soon as it says that it has started.
    instrument = start("""echo 'no space' >&2; echo '{"event":"started"}'; exec sleep 60""")
    with pytest.raises(DnsrigError, match="the instrument load was ended by SIGTERM: no space"):
        instrument.stop()


def ended(start: Start, script: str, name: str = "load") -> Instrument:
    """An instrument whose end nobody has heard yet."""
    instrument = start(script, name)
    instrument.process.popen.wait(10)
    while [event["event"] for event in list(instrument.events.queue)][-1:] != ["ended"]:
        time.sleep(0.01)
    return instrument


def test_an_end_that_nobody_waits_for_is_noticed(start: Start) -> None:
    killed = ended(start, """echo '{"event":"started"}'; kill -KILL $$""", "watch")
    with pytest.raises(DnsrigError, match="the instrument watch was ended by SIGKILL"):
        killed.check()
    in_order = ended(start, SUMMARY % ('"samples":3', 0), "watch")
    with pytest.raises(DnsrigError, match="the instrument watch exited with status 0"):
        in_order.check()


def test_an_end_that_was_due_is_no_fault(start: Start) -> None:
    done = ended(start, SUMMARY % ('"sent":3', 0))
    done.check()
    assert done.take(done.events.get(timeout=10)), "its summary is still to be taken"
    done.check()
    running = start("""echo '{"event":"started"}'; cat""")
    running.check()
    running.process.stop()
    running.check()
