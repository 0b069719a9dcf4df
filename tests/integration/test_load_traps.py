"""Each trap of query load is provoked for real, against an echo server whose faults are known, and is silent without
them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread

import pytest
from own_processes import measuring_loads
from test_traps_provoked import eventually, finding

from dnsrig.runs.trial import Trial

Measure = Callable[..., Trial]
pytestmark = pytest.mark.alone
USUAL = {
    "rate_qps": "3000",
    "options.duration_s": "6",
    "options.warmup_s": "0.5",
    "options.clients": "64",
    "options.timeout_s": "0.5",
}


@pytest.fixture
def ask(measure: Measure) -> Measure:
    """One trial of `echo-baseline`; ``settings`` are of the echo server, ``options`` of the procedure."""

    def one(*options: str, meanwhile: str = "", **settings: str | int) -> Trial:
        changed = USUAL | dict(option.split("=", 1) for option in options)
        said = [f"{name}={value}" for name, value in changed.items()]
        said += [f'hosts.primary.settings."{n.replace("_", "-")}"={_toml(value)}' for n, value in settings.items()]
        return measure("transport=udp", *said, experiment="echo-baseline", meanwhile=meanwhile)

    return one


def _toml(value: str | int) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


@pytest.fixture
def one_blocked(ask: Measure) -> Trial:
    """The kernel has dealt 64 clients out to four threads, and one of these stands still for 200 ms of each second."""
    return ask("options.duration_s=6", threads=4, stall="200ms", stall_every="1s", stall_threads=1)


def test_mean_hides_tail(one_blocked: Trial) -> None:
    """About 5 % of the queries wait 100 ms in the mean, so the mean is about 5 ms."""
    found = finding("mean-hides-tail", one_blocked)
    assert found.verdict == "found"
    assert float(found.evidence["percentile_to_mean_ratio"] or 0) >= 10
    assert float(found.evidence["time_in_tail_percent"] or 0) > float(found.evidence["queries_in_tail_percent"] or 0)


@pytest.mark.full
def test_a_steady_delay_hides_nothing(ask: Measure) -> None:
    eventually("mean-hides-tail", "clear", lambda *options: ask(*options, delay="20ms"))


def test_blocked_thread(one_blocked: Trial) -> None:
    found = finding("blocked-thread", one_blocked)
    assert found.verdict == "found"
    # Of 64 clients the kernel gives a thread 6 to 27 (binomial, 1 in 10,000 beyond), so 2 to 11 threads may be told.
    assert int(found.evidence["threads_most"] or 0) >= 2 and int(found.evidence["threads_fewest"] or 99) <= 11
    assert float(found.evidence["late_ms"] or 0) >= 100


@pytest.mark.full
def test_a_server_that_stands_still_has_no_blocked_thread(ask: Measure) -> None:
    trial = ask("options.duration_s=6", threads=4, stall="200ms", stall_every="1s")
    assert finding("blocked-thread", trial).verdict == "clear"


@pytest.mark.full
def test_cold_first_interval(ask: Measure) -> None:
    """The echo server stands still from its fourth second to its sixth; we begin to measure in between."""
    options = ("options.warmup_s=0", "options.settle_s=4", "options.interval_s=0.5", "options.duration_s=5")
    found = finding("cold-first-interval", ask(*options, threads=4, stall="2s", stall_every="6s", stall_threads=1))
    assert found.verdict == "found"
    assert 1 <= int(found.evidence["cold_intervals"] or 0) <= 5
    assert "options.warmup_s" in found.remedy


@pytest.mark.full
def test_no_cold_first_interval(ask: Measure) -> None:
    eventually("cold-first-interval", "clear", ask)


@pytest.mark.full
def test_more_than_the_generator_can_send(ask: Measure) -> None:
    """No generator sends three million queries a second, one by one, from one core."""
    trial = ask("rate_qps=3000000", "options.duration_s=1", "options.interval_s=0.2", "limit_s=60")
    assert trial.record.outcome == "invalid"
    found = finding("rate-not-sent", trial)
    assert found.verdict == "found"
    assert float(found.evidence["missed_percent"] or 0) < -1
    assert finding("generator-bottleneck", trial).verdict == "found"


@pytest.mark.full
def test_a_rate_that_is_sent(ask: Measure) -> None:
    trial = ask(delay="20ms")
    assert finding("rate-not-sent", trial).verdict == "clear"
    eventually("generator-bottleneck", "clear", lambda *options: ask(*options, delay="20ms"))


@pytest.mark.full
def test_a_generator_without_a_cpu_of_its_own(ask: Measure) -> None:
    first = min(os.sched_getaffinity(0))
    burn = f"import os,time; os.sched_setaffinity(0,[{first}]); end=time.time()+60\nwhile time.time()<end: pass"
    burner = subprocess.Popen([sys.executable, "-c", burn])
    try:
        # At a rate at which it does not run in real time, and so not before the other program.
        trial = ask(f"hosts.observer.cpus=[{first}]", "rate_qps=30000", meanwhile="burner")
    finally:
        burner.kill()
        burner.wait()
    found = finding("generator-bottleneck", trial)
    assert found.verdict == "found"
    assert float(found.evidence["foreign_percent"] or 0) > 10


@pytest.mark.full
def test_queries_that_the_server_had_no_room_for(ask: Measure) -> None:
    """Its socket has room for some 20,000 datagrams, and more come while it stands still."""
    fast = ("rate_qps=50000", "options.duration_s=3", "options.timeout_s=1")
    found = finding("udp-buffer-drops", ask(*fast, threads=1, stall="900ms", stall_every="1s"))
    assert found.verdict == "found"
    assert int(found.evidence["dropped_primary"] or 0) > 0


@pytest.mark.full
def test_answers_that_the_instrument_had_no_room_for(ask: Measure) -> None:
    """It is stopped while more answers to its two sockets are on their way than these have room for."""
    fast = ("rate_qps=60000", "options.clients=2", "options.timeout_s=1")
    with stopping_load_for(3.0):
        trial = ask(*fast, threads=1, delay="900ms", meanwhile="stopped")
    found = finding("udp-buffer-drops", trial)
    assert found.verdict == "found"
    assert int(found.evidence["dropped_observer"] or 0) > 0
    assert "The instrument lost answers" in found.remedy


@pytest.mark.full
def test_nothing_dropped(ask: Measure) -> None:
    assert finding("udp-buffer-drops", ask()).verdict == "clear"


@contextmanager
def stopping_load_for(seconds: float) -> Iterator[None]:
    """Stop the `load` that measures for a while, two seconds after it has begun."""

    def stop() -> None:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if pids := measuring_loads():
                time.sleep(2)
                os.kill(pids[0], signal.SIGSTOP)
                time.sleep(seconds)
                os.kill(pids[0], signal.SIGCONT)
                return
            time.sleep(0.05)

    thread = Thread(target=stop)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def test_stream_limit(ask: Measure) -> None:
    """One stream and 5 ms an answer: a connection carries 200 queries a second, and is asked for 400."""
    two = ("transport=doq", "options.clients=2", "rate_qps=800", "options.duration_s=1", "options.warmup_s=0")
    found = finding("stream-limit", ask(*two, streams_max=1, delay="5ms"))
    assert found.verdict == "found" and float(found.evidence["waited_percent"] or 0) > 10


@pytest.mark.full
def test_streams_are_enough(ask: Measure) -> None:
    two = ("transport=doq", "options.clients=2", "rate_qps=800", "options.duration_s=1", "options.warmup_s=0")
    assert finding("stream-limit", ask(*two, delay="5ms")).verdict == "clear"


@pytest.mark.full
@pytest.mark.parametrize(("permitted", "verdict"), [("refuse", "found"), ("accept", "clear")])
def test_early_data_refused(ask: Measure, permitted: str, verdict: str) -> None:
    each = ("options.queries_per_connection=1", "options.early_data=true", "options.clients=4", "options.warmup_s=0")
    trial = ask("transport=dot", "rate_qps=100", "options.duration_s=2", *each, early_data=permitted)
    assert finding("early-data-refused", trial).verdict == verdict
    assert trial.record.outcome == ("invalid" if permitted == "refuse" else "done")


@pytest.mark.full
@pytest.mark.parametrize(("clients", "verdict"), [(1, "found"), (8, "clear")])
def test_few_connections(ask: Measure, clients: int, verdict: str) -> None:
    search = ("rate_qps=0", "options.ramp_step_s=0.2", "options.ramp_most_qps=16000", "options.duration_s=1")
    found = finding("few-connections", ask("transport=tcp", f"options.clients={clients}", *search, threads=2))
    assert found.verdict == verdict
