"""Each trap is provoked for real, and is silent where nothing is wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import DNSRIG

from dnsrig.analysis.read import Trial
from dnsrig.traps import Conclusion, all_traps

Measure = Callable[..., Trial]
FAST_BIND = ("server=bind@forky", 'hosts.secondary.settings."serial-query-rate"=10000')


TRIES = 4
"""A server may hit the right moment by chance, and this machine may really be disturbed once."""


def eventually(trap: str, verdict: str, measure: Measure, *settings: str) -> Conclusion:
    """The first conclusion with ``verdict`` in a few trials; a trap that is wrong is wrong in all of them."""
    conclusions = []
    for _ in range(TRIES):
        conclusions.append(finding(trap, measure(*settings)))
        if conclusions[-1].verdict == verdict:
            return conclusions[-1]
    raise AssertionError(conclusions)


def finding(trap: str, trial: Trial) -> Conclusion:
    conclusion = all_traps()[trap].after(trial)
    assert conclusion is not None
    return conclusion


def test_server_rate_limit(measure: Measure) -> None:
    found = finding("server-rate-limit", measure("server=bind@forky", "zones=80"))
    assert found.verdict == "found"
    assert found.evidence["setting"] == "serial-query-rate"
    assert found.evidence["zones_per_s"] == pytest.approx(20, rel=0.15)
    assert "serial-query-rate" in found.remedy


def test_server_rate_limit_lifted(measure: Measure) -> None:
    assert finding("server-rate-limit", measure(*FAST_BIND, "zones=80")).verdict == "clear"


def test_coarse_log_clock(measure: Measure) -> None:
    found = finding("coarse-log-clock", measure("server=knot@forky", "zones=2"))
    assert found.verdict == "found"
    assert found.evidence["log_resolution_s"] == 1


def test_fine_log_clock(measure: Measure) -> None:
    assert finding("coarse-log-clock", measure("server=nsd@forky", "zones=2")).verdict == "clear"


def test_ports_exhausted(measure: Measure) -> None:
    narrow = 'hosts.secondary.sysctls."net.ipv4.ip_local_port_range"="40000 40099"'
    found = finding("ports-exhausted", measure(*FAST_BIND, "zones=300", "limit_s=10", narrow))
    assert found.verdict == "found"
    assert found.evidence["ephemeral_ports"] == 100
    assert "address not available" in str(found.evidence["log_line"])


def test_ports_are_enough(measure: Measure) -> None:
    assert finding("ports-exhausted", measure(*FAST_BIND, "zones=80")).verdict == "clear"


def test_dropped_soa_answers_and_the_wait_for_them(measure: Measure) -> None:
    """PowerDNS asks for all SOA records at once, and its socket has no room for all the answers."""
    trial = measure("server=powerdns@forky", "zones=3000", "limit_s=30")
    drops = finding("udp-buffer-drops", trial)
    assert drops.verdict == "found"
    assert int(drops.evidence["dropped_secondary"] or 0) > 0
    assert trial.record.logs["secondary"].failures["SOA query unanswered"] > 0
    wait = finding("idle-wait", trial)
    assert wait.verdict == "found"
    assert "SOA query unanswered" in wait.summary


def test_no_drops_and_no_wait(measure: Measure) -> None:
    trial = measure("server=powerdns@forky", "zones=80")
    assert finding("udp-buffer-drops", trial).verdict == "clear"
    assert finding("idle-wait", trial).verdict == "clear"


def test_wait_for_the_reload(measure: Measure) -> None:
    """NSD has all zones within milliseconds and mostly serves them only after its next reload."""
    reload = 'hosts.secondary.settings."xfrd-reload-timeout"=4'
    found = eventually("idle-wait", "found", measure, "server=nsd@forky", "zones=40", reload)
    assert found.evidence["setting"] == "xfrd-reload-timeout"


def test_silent_start(measure: Measure) -> None:
    """Knot looks only now and then whether it may answer; mostly not at the right moment."""
    found = eventually("silent-start", "found", measure, "server=knot@forky", "zones=100")
    assert "server.async-start = off" in found.summary


def test_no_silent_start(measure: Measure) -> None:
    trial = measure("server=knot@forky", "zones=100", 'hosts.secondary.settings."server.async-start"="on"')
    assert finding("silent-start", trial).verdict == "clear"


def test_cpu_contention(measure: Measure) -> None:
    last = max(os.sched_getaffinity(0))
    burn = f"import os,time; os.sched_setaffinity(0,[{last}]); end=time.time()+60\nwhile time.time()<end: pass"
    burner = subprocess.Popen([sys.executable, "-c", burn])
    try:
        found = finding("cpu-contention", measure("server=bind@forky", "zones=60"))
    finally:
        burner.kill()
        burner.wait()
    assert found.verdict == "found"
    assert float(found.evidence["foreign_percent"] or 0) > 30


def test_two_rigs_mark_each_others_results(measure: Measure, tmp_path: Path) -> None:
    other = subprocess.Popen(
        [*DNSRIG, "run", "tour", "--set", "server=bind@forky", "--set", "zones=300", "--repeats", "1"],
        cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while not list(tmp_path.glob("runs/**/exec.json")):
        time.sleep(0.1)
    trial = measure("server=nsd@forky", "zones=20")
    other.send_signal(signal.SIGINT)
    other.wait(60)
    found = finding("cpu-contention", trial)
    assert (found.verdict, found.evidence["other_trials"]) == ("found", 1)
    assert "1 other trial(s)" in found.summary


def test_no_contention_by_the_rigs_own_doing(measure: Measure) -> None:
    eventually("cpu-contention", "clear", measure, "server=bind@forky", "zones=60")
