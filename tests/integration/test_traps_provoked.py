"""Each trap is provoked for real, and is silent where nothing is wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import others
import pytest
from conftest import DNSRIG, share_of_others, specs

from dnsrig import paths
from dnsrig.experiment.trial import Report, run_trial
from dnsrig.lab.profile import Profiler
from dnsrig.rundir import TrialSpec
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.traps import Conclusion, all_traps

Measure = Callable[..., Trial]
SLOW_DISK_BYTES_PER_S = 20_000_000
LARGE_ZONE = ("server=nsd@forky", "delegations=200000", "baseline={}")
FAST_BIND = ("server=bind@forky", 'hosts.secondary.settings."serial-query-rate"=10000')


TRIES = 4
"""A server may hit the right moment by chance, and this machine may really be disturbed once."""


def eventually(trap: str, verdict: str, measure: Measure, *settings: str) -> Conclusion:
    """The first conclusion with ``verdict`` in a few trials; a trap that is wrong is wrong in all of them.

    A busy machine excuses what is found, and never what is not.
    """
    conclusions, shares = [], []
    for _ in range(TRIES):
        trial = measure(*settings)
        conclusions.append(finding(trap, trial))
        shares.append(share_of_others(trial))
        if conclusions[-1].verdict == verdict:
            return conclusions[-1]
    if verdict == "clear":
        others.skip_if_excused({trap}, min(shares), conclusions)
    raise AssertionError(conclusions)


def executed_here(spec: TrialSpec, directory: Path, report: Report) -> Trial:
    """A trial in this process, which is then as it was before."""
    affinity = os.sched_getaffinity(0)
    try:
        return Trial(directory, run_trial(spec, directory, report))
    finally:
        os.sched_setaffinity(0, affinity)


def finding(trap: str, trial: Trial) -> Conclusion:
    conclusion = all_traps()[trap].after(trial)
    assert conclusion is not None, (trial.record.outcome, trial.record.reason)
    return conclusion


def test_server_rate_limit(measure: Measure) -> None:
    found = eventually("server-rate-limit", "found", measure, "server=bind@forky", "zones=80")
    assert found.evidence["setting"] == "serial-query-rate"
    assert found.evidence["zones_per_s"] == pytest.approx(20, rel=0.15)
    assert "serial-query-rate" in found.remedy


@pytest.mark.full
def test_server_rate_limit_lifted(measure: Measure) -> None:
    assert finding("server-rate-limit", measure(*FAST_BIND, "zones=80")).verdict == "clear"


@pytest.mark.full
def test_coarse_log_clock(measure: Measure) -> None:
    found = finding("coarse-log-clock", measure("server=knot@forky", "zones=2"))
    assert found.verdict == "found"
    assert found.evidence["log_resolution_s"] == 1


@pytest.mark.full
def test_fine_log_clock(measure: Measure) -> None:
    assert finding("coarse-log-clock", measure("server=nsd@forky", "zones=2")).verdict == "clear"


def test_ports_exhausted(measure: Measure) -> None:
    narrow = 'hosts.secondary.sysctls."net.ipv4.ip_local_port_range"="40000 40099"'
    found = finding("ports-exhausted", measure(*FAST_BIND, "zones=300", "limit_s=10", narrow))
    assert found.verdict == "found"
    assert found.evidence["ephemeral_ports"] == 100
    # Of connect(2), or of bind(2) before it.
    assert any(words in str(found.evidence["log_line"]) for words in ("address not available", "address in use"))


@pytest.mark.full
def test_ports_are_enough(measure: Measure) -> None:
    assert finding("ports-exhausted", measure(*FAST_BIND, "zones=80")).verdict == "clear"


@pytest.mark.alone
@pytest.mark.full
def test_dropped_soa_answers_and_the_wait_for_them(measure: Measure) -> None:
    """PowerDNS asks for all SOA records at once, and its socket has no room for all the answers. The faster a machine
    is, the more zones that takes; with too many, the wait is too small a part of the whole to be found."""
    for zones in (3000, 4000, 5000, 6000):
        trial = measure("server=powerdns@forky", f"zones={zones}", "limit_s=20")
        drops, wait = (finding(trap, trial) for trap in ("udp-buffer-drops", "idle-wait"))
        if drops.verdict == wait.verdict == "found":
            break
    assert drops.verdict == "found"
    assert int(drops.evidence["dropped_secondary"] or 0) > 0
    assert trial.record.logs["secondary"].failures["SOA query unanswered"] > 0
    assert wait.verdict == "found"
    assert "SOA query unanswered" in wait.summary


@pytest.mark.full
def test_silent_connections(measure: Measure) -> None:
    """Knot DNS forgets a connection over QUIC that has more than ten unfinished streams, and a lost packet leaves one
    unfinished for longer. Each connection loses other packets."""
    some = ('matrix.outstanding."4 in 100 ms".options={clients=16, rate_qps=520}', 'outstanding="4 in 100 ms"')
    lossy = ("server=knot@forky", "transport=doq", "loss_percent=1.0", "baseline={}")
    found = eventually("silent-connections", "found", partial(measure, experiment="lossy-transports"), *lossy, *some)
    assert 0 < int(found.evidence["silent_connections"] or 0) < 16
    assert "ten streams" in found.remedy


@pytest.mark.full
def test_no_drops_and_no_wait(measure: Measure) -> None:
    trial = measure("server=powerdns@forky", "zones=80")
    assert finding("udp-buffer-drops", trial).verdict == "clear"
    assert finding("idle-wait", trial).verdict == "clear"


@pytest.mark.full
def test_wait_for_the_reload(measure: Measure) -> None:
    """NSD has all zones within milliseconds and mostly serves them only after its next reload."""
    reload = 'hosts.secondary.settings."xfrd-reload-timeout"=4'
    found = eventually("idle-wait", "found", measure, "server=nsd@forky", "zones=40", reload)
    assert found.evidence["setting"] == "xfrd-reload-timeout"


@pytest.mark.full
def test_silent_start(measure: Measure) -> None:
    """Knot looks only now and then whether it may answer; mostly not at the right moment."""
    found = eventually("silent-start", "found", measure, "server=knot@forky", "zones=100")
    assert "server.async-start = off" in found.summary


@pytest.mark.full
def test_no_silent_start(measure: Measure) -> None:
    trial = measure("server=knot@forky", "zones=100", 'hosts.secondary.settings."server.async-start"="on"')
    assert finding("silent-start", trial).verdict == "clear"


@pytest.mark.alone
def test_cpu_contention(measure: Measure) -> None:
    last = max(os.sched_getaffinity(0))
    burn = f"import os,time; os.sched_setaffinity(0,[{last}]); end=time.time()+60\nwhile time.time()<end: pass"
    burner = subprocess.Popen([sys.executable, "-c", burn])
    try:
        found = finding("cpu-contention", measure("server=bind@forky", "zones=60", meanwhile="burner"))
    finally:
        burner.kill()
        burner.wait()
    assert found.verdict == "found"
    assert float(found.evidence["foreign_percent"] or 0) > 30


@pytest.mark.full
def test_two_rigs_mark_each_others_results(measure: Measure, tmp_path: Path) -> None:
    other = subprocess.Popen(
        [*DNSRIG, "run", "tour", "--set", "server=bind@forky", "--set", "zones=300", "--repeats", "1"],
        cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while not list(tmp_path.glob("runs/**/exec.json")):
        time.sleep(0.1)
    trial = measure("server=nsd@forky", "zones=20", meanwhile="another rig")
    other.send_signal(signal.SIGINT)
    other.wait(60)
    found = finding("cpu-contention", trial)
    assert found.verdict == "found"
    assert int(found.evidence["other_trials"] or 0) >= 1
    assert "other trial(s)" in found.summary


@pytest.mark.full
@pytest.mark.alone
def test_no_contention_by_the_rigs_own_doing(measure: Measure) -> None:
    eventually("cpu-contention", "clear", measure, "server=bind@forky", "zones=60")


def knot_with_few_ports(zones: int, ports: int, *more: str) -> tuple[str, ...]:
    """Knot opens a connection a zone, and BIND as its primary leaves TIME_WAIT to it."""
    return (
        "server=knot@forky",
        f"zones={zones}",
        "hosts.primary.server=bind@forky",
        f'hosts.secondary.sysctls."net.ipv4.ip_local_port_range"="40000 {40000 + ports - 1}"',
        *more,
    )


@pytest.fixture
def slow_disk() -> Iterator[None]:
    """Reads of this process and its children come slowly, as from a disk whose data no hypervisor has in memory."""
    group, device = Path("/sys/fs/cgroup/blkio/dnsrig-test"), paths.cache().stat().st_dev
    if not (group.parent / "blkio.throttle.read_bps_device").exists():
        pytest.skip("this machine cannot throttle a disk by cgroup v1")
    group.mkdir(exist_ok=True)
    limit = f"{os.major(device)}:{os.minor(device)} {SLOW_DISK_BYTES_PER_S}"
    (group / "blkio.throttle.read_bps_device").write_text(limit)
    (group / "cgroup.procs").write_text(str(os.getpid()))
    try:
        yield
    finally:
        (group.parent / "cgroup.procs").write_text(str(os.getpid()))
        group.rmdir()


@pytest.mark.full
def test_cold_page_cache(measure: Measure, slow_disk: None) -> None:
    trial = measure(*LARGE_ZONE, "page_cache=cold", experiment="zone-load", meanwhile="slow disk")
    found = finding("cold-page-cache", trial)
    assert found.verdict == "found"
    assert int(found.evidence["file_cache_grown_bytes"] or 0) > 20e6


@pytest.mark.full
def test_warm_page_cache(measure: Measure, slow_disk: None) -> None:
    """Other programs may need the memory at the wrong moment, and then the files are not in it any more."""
    warm = partial(measure, experiment="zone-load", meanwhile="slow disk")
    assert eventually("cold-page-cache", "clear", warm, *LARGE_ZONE, "page_cache=warm")


@pytest.mark.full
def test_lowered_tw_buckets(measure: Measure) -> None:
    few = 'hosts.secondary.sysctls."net.ipv4.tcp_max_tw_buckets"=10'
    found = finding("lowered-tw-buckets", measure(*knot_with_few_ports(100, 1000, few)))
    assert found.verdict == "found"
    assert found.evidence["secondary_limit_sockets"] == 10


@pytest.mark.full
def test_port_search(measure: Measure) -> None:
    """Refresh after refresh looks at all ports, and finds none.

    The search is costly once the range is full, and on a busy machine that takes many times as long.
    """
    if why := Profiler.unavailable():
        pytest.skip(why)
    trial = measure(*knot_with_few_ports(3000, 1000, "hosts.secondary.profile=true", "limit_s=15"))
    found = finding("connect-port-search", trial)
    assert found.verdict == "found"
    assert float(found.evidence["port_search_percent"] or 0) >= 10
    assert trial.record.profiles["secondary"].samples >= 100
    assert finding("ports-exhausted", trial).verdict == "found"


def test_a_profile_is_taken(measure: Measure) -> None:
    if why := Profiler.unavailable():
        pytest.skip(why)
    trial = measure(*FAST_BIND, "zones=80", "hosts.secondary.profile=true")
    assert trial.record.outcome == "done"
    assert trial.record.profiles["secondary"].samples > 0


@pytest.mark.full
def test_no_port_search_in_a_wide_range(measure: Measure) -> None:
    if why := Profiler.unavailable():
        pytest.skip(why)
    trial = measure(*FAST_BIND, "zones=1500", "hosts.secondary.profile=true")
    assert finding("connect-port-search", trial).verdict == "clear"


@pytest.mark.full
def test_growth_that_is_not_linear(tmp_path: Path) -> None:
    """With 150 ports 100 zones are no matter, and 300 are."""
    settings = knot_with_few_ports(0, 150, "zones=[100, 300]", "limit_s=4")[2:]
    arguments = [item for setting in ("server=knot@forky", *settings) for item in ("--set", setting)]
    subprocess.run([*DNSRIG, "run", "tour", *arguments, "--repeats", "3"], cwd=tmp_path, check=True, timeout=300)
    (directory,) = (tmp_path / "runs/tour").iterdir()
    found = {finding.variant: finding for finding in all_traps()["non-linear-growth"].examine(Run.open(directory))}
    (conclusion,) = found.values()
    assert (conclusion.verdict, conclusion.evidence["zones"]) == ("found", 300)
    assert "ports-exhausted" in str(conclusion.evidence["why"])


def test_clock_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's clock is not ours to set: here only the rig sees it jump, in a real trial."""
    (spec,) = specs("tour", "server=nsd@forky", "zones=20")
    jumped_ns, real = 3 * 10**9, time.time_ns

    def report(event: dict[str, object]) -> None:
        if event.get("phase") == "drain":
            monkeypatch.setattr(time, "time_ns", lambda: real() + jumped_ns)

    found = finding("clock-steps", executed_here(spec, tmp_path / "trial", report))
    assert found.verdict == "found"
    assert found.evidence["largest_step_s"] == pytest.approx(3, abs=0.01)
