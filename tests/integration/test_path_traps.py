"""Each trap of far transfers is provoked for real over an emulated path, and is silent without its cause. Trials of a
few seconds."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from test_traps_provoked import eventually, finding

from dnsrig.runs import sockets
from dnsrig.runs.trial import Trial

Measure = Callable[..., Trial]
TRAPS = ("congestion-on-receiver", "receiver-options", "small-buffers", "short-queue")


@pytest.fixture
def far(measure: Measure) -> Measure:
    """One trial of `congestion-control` over a path without loss, 50 ms each way, 40 Mbit/s, unless ``settings`` say
    something else."""

    def one(*settings: str) -> Trial:
        path = {"path.delay_ms": "50", "path.rate_mbit": "40", "path.loss_percent": "0", "path.limit_packets": "2000"}
        usual = {**path, "congestion": "cubic", "options.duration_s": "4", "baseline": "{}"}
        said = dict(setting.split("=", 1) for setting in settings)
        return measure(*(f"{name}={value}" for name, value in (usual | said).items()), experiment="congestion-control")

    return one


def test_a_clean_flow(far: Measure) -> None:
    trial = far()
    assert trial.record.outcome == "done", trial.record.reason
    assert {trap: finding(trap, trial).verdict for trap in TRAPS} == dict.fromkeys(TRAPS, "clear")
    flow = sockets.largest(trial)
    assert flow is not None and (flow.sender, flow.receiver, flow.congestion) == ("primary", "client", "cubic")
    assert flow.round_trip_ms is not None and flow.round_trip_ms >= 100
    metrics = trial.metrics
    assert (metrics["rtt_ms"] or 0) >= 100 and (metrics["cwnd_segments"] or 0) > 10
    # What the instrument read came over that connection; between two looks at it some more did.
    nbytes = 1e3 * (metrics["throughput_kbytes_per_s"] or 0) * float(trial.transfer["elapsed_ns"]) / 1e9
    assert nbytes == pytest.approx(flow.nbytes, rel=0.2)


@pytest.mark.full
def test_congestion_on_receiver(far: Measure) -> None:
    trial = far("congestion=reno", "hosts.client.congestion=cubic", "options.duration_s=2")
    found = finding("congestion-on-receiver", trial)
    assert found.verdict == "found"
    assert (found.evidence["asked_of_receiver"], found.evidence["used_by_sender"]) == ("cubic", "reno")


@pytest.mark.full
@pytest.mark.parametrize(
    ("option", "sysctl"),
    [("sacks", "tcp_sack"), ("timestamps", "tcp_timestamps"), ("window_scaling", "tcp_window_scaling")],
)
def test_receiver_options(far: Measure, option: str, sysctl: str) -> None:
    trial = far(f'hosts.client.sysctls."net.ipv4.{sysctl}"=0', "options.duration_s=2")
    found = finding("receiver-options", trial)
    assert found.verdict == "found"
    assert [name for name, value in found.evidence.items() if value is False] == [f"agreed_{option}"]
    assert found.evidence[f"net.ipv4.{sysctl}"] == "client"


@pytest.mark.full
def test_small_receive_buffer(far: Measure) -> None:
    """500 kB fill the path."""
    found = eventually("small-buffers", "found", far, 'hosts.client.sysctls."net.ipv4.tcp_rmem"="4096 65536 131072"')
    assert "third number of net.ipv4.tcp_rmem on the client" in found.remedy
    assert float(found.evidence["in_flight_max_bytes"] or 0) < 131_072


@pytest.mark.full
def test_a_receive_buffer_that_does_not_grow(far: Measure) -> None:
    """Kernels grow it at different speeds (tcp(7), tcp_moderate_rcvbuf); one that must not grow it stands for the
    slowest."""
    begins = 'hosts.client.sysctls."net.ipv4.tcp_rmem"="4096 131072 67108864"'
    stays = 'hosts.client.sysctls."net.ipv4.tcp_moderate_rcvbuf"="0"'
    found = eventually("small-buffers", "found", far, begins, stays)
    assert "second number of net.ipv4.tcp_rmem on the client" in found.remedy


@pytest.mark.full
def test_small_send_buffer(far: Measure) -> None:
    found = eventually("small-buffers", "found", far, 'hosts.primary.sysctls."net.ipv4.tcp_wmem"="4096 16384 65536"')
    assert "tcp_wmem on the primary" in found.remedy


@pytest.mark.full
def test_a_send_buffer_that_the_server_sets(measure: Measure) -> None:
    """Knot DNS sets one of 64 kB and more where the kernel's begins with less, which is twice that as the kernel
    counts."""
    path = (
        "path.delay_ms=50",
        "path.rate_mbit=40",
        "path.mtu_bytes=1500",
        "icmp=sent",
        "mss=untouched",
        "transport=tcp",
    )
    usual = (*path, "hosts.primary.server=knot@forky", "hosts.primary.congestion=bbr", "dataset.delegations=10000")

    def one(*settings: str) -> Trial:
        return measure(*usual, *settings, experiment="mtu-mss")

    found = eventually("small-buffers", "found", one)
    assert found.evidence["buffer_set_bytes"] == 131_074
    assert "itself" in found.remedy and "tcp_wmem" in found.remedy
    left_alone = finding("small-buffers", one('hosts.primary.sysctls."net.ipv4.tcp_wmem"="4096 131074 4194304"'))
    assert left_alone.evidence.get("buffer_set_bytes") is None


@pytest.mark.full
def test_short_queue(far: Measure) -> None:
    found = finding("short-queue", far("path.limit_packets=40"))
    assert found.verdict == "found"
    assert found.evidence["bandwidth_delay_packets"] == 167 and int(found.evidence["overflowed"] or 0) > 0


@pytest.mark.full
@pytest.mark.parametrize(("workers", "delay_ms", "verdict"), [(2, 15, "found"), (2, 0.1, "clear")])
def test_workers_that_wait_for_round_trips(measure: Measure, workers: int, delay_ms: float, verdict: str) -> None:
    near = ("path.jitter_ms=0", "path.loss_percent=0", f"path.delay_ms={delay_ms}")
    trial = measure(f"workers={workers}", "connections=reused", *near, experiment="workers")
    assert trial.record.outcome == "done", trial.record.reason
    found = finding("workers-rtt-bound", trial)
    assert found.verdict == verdict
    if verdict == "found":
        assert found.evidence["workers"] == workers
        # One round trip a zone, by clocks and a round trip that are known to some percent.
        assert 0.9 <= float(found.evidence["round_trips_a_zone"] or 0) <= 4
        assert "server.background-workers" in found.remedy
