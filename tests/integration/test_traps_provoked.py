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

FAST_BIND = ("server=bind@forky", 'hosts.secondary.settings."serial-query-rate"=10000')


def finding(trap: str, trial: Trial) -> Conclusion:
    conclusion = all_traps()[trap].after(trial)
    assert conclusion is not None
    return conclusion


def test_server_rate_limit(measure: Callable[..., Trial]) -> None:
    found = finding("server-rate-limit", measure("server=bind@forky", "zones=80"))
    assert found.verdict == "found"
    assert found.evidence["setting"] == "serial-query-rate"
    assert found.evidence["zones_per_s"] == pytest.approx(20, rel=0.15)
    assert "serial-query-rate" in found.remedy


def test_server_rate_limit_lifted(measure: Callable[..., Trial]) -> None:
    assert finding("server-rate-limit", measure(*FAST_BIND, "zones=80")).verdict == "clear"


def test_coarse_log_clock(measure: Callable[..., Trial]) -> None:
    found = finding("coarse-log-clock", measure("server=knot@forky", "zones=2"))
    assert found.verdict == "found"
    assert found.evidence["log_resolution_s"] == 1


def test_fine_log_clock(measure: Callable[..., Trial]) -> None:
    assert finding("coarse-log-clock", measure("server=nsd@forky", "zones=2")).verdict == "clear"


def test_ports_exhausted(measure: Callable[..., Trial]) -> None:
    narrow = 'hosts.secondary.sysctls."net.ipv4.ip_local_port_range"="40000 40099"'
    found = finding("ports-exhausted", measure(*FAST_BIND, "zones=300", "limit_s=10", narrow))
    assert found.verdict == "found"
    assert found.evidence["ephemeral_ports"] == 100
    assert "address not available" in str(found.evidence["log_line"])


def test_ports_are_enough(measure: Callable[..., Trial]) -> None:
    assert finding("ports-exhausted", measure(*FAST_BIND, "zones=80")).verdict == "clear"


def test_dropped_soa_answers_and_the_wait_for_them(measure: Callable[..., Trial]) -> None:
    """PowerDNS asks for all SOA records at once, and its socket has no room for all the answers."""
    trial = measure("server=powerdns@forky", "zones=3000", "limit_s=30")
    drops = finding("udp-buffer-drops", trial)
    assert drops.verdict == "found"
    assert int(drops.evidence["dropped_secondary"] or 0) > 0
    assert trial.record.logs["secondary"].failures["SOA query unanswered"] > 0
    wait = finding("idle-wait", trial)
    assert wait.verdict == "found"
    assert "SOA query unanswered" in wait.summary


def test_no_drops_and_no_wait(measure: Callable[..., Trial]) -> None:
    trial = measure("server=powerdns@forky", "zones=80")
    assert finding("udp-buffer-drops", trial).verdict == "clear"
    assert finding("idle-wait", trial).verdict == "clear"


def test_wait_for_the_reload(measure: Callable[..., Trial]) -> None:
    """NSD has all zones within milliseconds and serves them after its next reload."""
    found = finding(
        "idle-wait", measure("server=nsd@forky", "zones=40", 'hosts.secondary.settings."xfrd-reload-timeout"=4')
    )
    assert (found.verdict, found.evidence["setting"]) == ("found", "xfrd-reload-timeout")


def test_silent_start(measure: Callable[..., Trial]) -> None:
    # Knot looks only now and then whether it may answer; once in a while it looks at the right moment.
    verdicts = [finding("silent-start", measure("server=knot@forky", "zones=100")).verdict for _ in range(4)]
    assert "found" in verdicts


def test_no_silent_start(measure: Callable[..., Trial]) -> None:
    trial = measure("server=knot@forky", "zones=100", 'hosts.secondary.settings."server.async-start"="on"')
    assert finding("silent-start", trial).verdict == "clear"


def test_cpu_contention(measure: Callable[..., Trial]) -> None:
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


def test_two_rigs_mark_each_others_results(measure: Callable[..., Trial], tmp_path: Path) -> None:
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


def test_no_contention_by_the_rigs_own_doing(measure: Callable[..., Trial]) -> None:
    # Something else may really run on this machine once; a false alarm would come every time.
    verdicts = []
    for _ in range(4):
        verdicts.append(finding("cpu-contention", measure("server=bind@forky", "zones=60")).verdict)
        if verdicts[-1] == "clear":
            return
    raise AssertionError(verdicts)
