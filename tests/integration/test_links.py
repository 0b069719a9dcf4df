"""Emulated links between real hosts: what the self-test finds, and trials over them."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyroute2 import NetNS
from suites import quick

from dnsrig.analysis.read import Trial
from dnsrig.lab.host import inside
from dnsrig.lab.links import _qdisc, datagrams, netem, selftest
from dnsrig.lab.network import Network
from dnsrig.rundir import HostSpec, LinkKind, LinkSpec, PathSpec

ASKED = PathSpec(rate_mbit=50, delay_ms=20, jitter_ms=5, loss_percent=1)
PATH = ["path.rate_mbit=50", "path.delay_ms=20", "path.jitter_ms=5", "path.loss_percent=1", "link=tun"]
SMALL = ["server=nsd@forky", "zones=50", "hosts.primary.server=zones@engine"]


def hosts(**right: Any) -> dict[str, HostSpec]:
    return {
        "left": HostSpec(address="198.18.0.1", cpus=[0]),
        "right": HostSpec(address="198.18.0.2", cpus=[0], **right),
    }


def link(forward: PathSpec, reverse: PathSpec, kind: LinkKind = "tun") -> list[LinkSpec]:
    return [LinkSpec(ends=("left", "right"), kind=kind, forward=forward, reverse=reverse)]


PAIRS = [
    (ASKED, ASKED),
    (PathSpec(delay_ms=40, jitter_ms=20, ordered=False), PathSpec(delay_ms=5, rate_mbit=2)),
    (PathSpec(delay_ms=5, mtu_bytes=1400), PathSpec(delay_ms=150, mtu_bytes=1300)),
    (PathSpec(delay_ms=5, loss_over_time=[(0, 0), (0.7, 40)]), PathSpec(delay_ms=5, loss_percent=2)),
]


@pytest.mark.alone
@pytest.mark.parametrize("kind", ["tun", "netem"])
@pytest.mark.parametrize(("forward", "reverse"), quick(PAIRS, PAIRS[1], PAIRS[2]))
def test_a_link_is_as_asked(kind: LinkKind, forward: PathSpec, reverse: PathSpec, tmp_path: Path) -> None:
    if kind == "netem" and not netem.available():
        pytest.skip("this kernel has no netem")
    with Network(hosts(), link(forward, reverse, kind), directory=tmp_path) as network:
        (check,) = network.check_links()
        told = network.finish_links()["link"]
    assert check["works"] and "wrong" not in check, check
    assert check["kind"] == kind and check["kernel"]
    asked_ms = forward.delay_ms + reverse.delay_ms
    assert check["rtt_median_us"] / 1e3 > asked_ms - forward.jitter_ms - reverse.jitter_ms
    assert check["forward"]["asked"] == forward.model_dump(exclude_defaults=True)
    assert (check["forward"]["found"]["overtaken_percent"] > 0) == (not forward.ordered)
    assert told["forward"]["delivered_packets"] > 0 and told["reverse"]["delivered_bytes"] > 0
    if kind == "tun":
        assert (tmp_path / "link-left-right.arrow").stat().st_size > 0


def test_what_the_test_is_told_of_the_path_is_forgotten() -> None:
    """Else the first connection of a trial would know the path's MTU already."""
    forward = PathSpec(delay_ms=1, mtu_bytes=1300)
    with Network(hosts(), link(forward, forward)) as network:
        (check,) = network.check_links()
        assert check["forward"]["found"]["too_large_told"]
        with inside(network.hosts["left"].namespace), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.connect(("198.18.0.2", 1))
            assert sock.getsockopt(socket.IPPROTO_IP, 14) == 1500, "IP_MTU (ip(7))"


@pytest.mark.parametrize("icmp", [True, False])
def test_the_router_of_netem_without_netem(monkeypatch: pytest.MonkeyPatch, icmp: bool) -> None:
    """All but the queueing discipline is there on any kernel: forwarding, path MTU, ICMP, packets that are packets."""
    monkeypatch.setattr(_qdisc, "netem", lambda *_, **__: None)
    path = PathSpec(mtu_bytes=1400, icmp=icmp)
    specs = hosts(source_addresses=["198.19.1.1"])
    with Network(specs, link(path, path, "netem")) as network:
        (check,) = network.check_links()
        assert check["works"] and check["forward"]["found"]["too_large_told"] == icmp, check
        left, right = (network.hosts[name] for name in ("left", "right"))
        before = sent_packets(left.namespace)
        with datagrams.probe(left, right) as ends:
            ends.send_at_once(ends.forward, 100, 1400)
            ends.collect(time.monotonic() + 0.3)
            assert len(ends.forward.arrived_s) == 100
        assert sent_packets(left.namespace) - before == 100, "large segments do not leave the host whole"
        with inside(right.namespace):
            listener = socket.create_server(("198.19.1.1", 5300))
        with inside(left.namespace), listener, socket.create_connection(("198.19.1.1", 5300), timeout=5):
            pass


@pytest.mark.parametrize("kind", ["veth", "tun", "netem"])
def test_every_address_of_a_range_of_clients_is_reached(monkeypatch: pytest.MonkeyPatch, kind: LinkKind) -> None:
    """Without an entry an address: queries leave from any of them, and answers come back."""
    monkeypatch.setattr(_qdisc, "netem", lambda *_, **__: None)
    between = [LinkSpec(ends=("left", "right"))] if kind == "veth" else link(PathSpec(), PathSpec(), kind)
    client = ("198.19.203.7", 40_000)
    with Network(hosts(client_range="198.19.0.0/16"), between) as network:
        with inside(network.hosts["left"].namespace):
            server = socket.create_server(("198.18.0.1", 5300))
        with inside(network.hosts["right"].namespace):
            asking = socket.create_connection(("198.18.0.1", 5300), timeout=5, source_address=client)
        with server, asking:
            accepted, seen = server.accept()
            accepted.close()
    assert seen == client


def sent_packets(namespace: str) -> int:
    with NetNS(namespace) as route:
        (interface,) = route.get_links(ifname="right")
        return int(interface.get_attr("IFLA_STATS64")["tx_packets"])


def test_a_link_that_is_something_else_is_told() -> None:
    """Asked for far more than the machine can do."""
    with Network(hosts(), link(PathSpec(rate_mbit=50_000, limit_packets=10_000), PathSpec())) as network:
        (check,) = network.check_links()
    assert not check["works"] and any("Mbit/s where 50000 was asked for" in what for what in check["wrong"])


OTHERS: list[tuple[dict[str, Any], str]] = [
    ({"delay_ms": 45}, "median delay"),
    ({"jitter_ms": 0}, "median delay"),
    ({"loss_percent": 0}, "loss of 0 of 1000 packets"),
    ({"loss_percent": 8}, "loss of"),
    ({"rate_mbit": 15}, "Mbit/s where 20 was asked for"),
    ({"ordered": False}, "were overtaken"),
    ({"mtu_bytes": None}, "bytes arrive, above the path's MTU of 1400"),
    ({"mtu_bytes": 1300}, "no packet of 1400 bytes"),
    ({"icmp": False}, "the sender is not told"),
]


@pytest.mark.alone
@pytest.mark.parametrize(("real", "says"), quick(OTHERS, OTHERS[3], OTHERS[6]))
def test_a_real_link_that_is_another_one_is_told(real: dict[str, Any], says: str) -> None:
    """Each in one way alone: `there` is wrong, `back` is right."""
    asked = PathSpec(rate_mbit=20, delay_ms=30, jitter_ms=15, loss_percent=2, mtu_bytes=1400)
    with Network(hosts(), link(asked.model_copy(update=real), asked)) as network:
        left, right = (network.hosts[name] for name in ("left", "right"))
        (_, made), *_ = network.made
        check = selftest.check(left, right, link(asked, asked)[0], made.began_s)
    assert not check["works"] and any(says in what for what in check["wrong"]), check
    assert all(what.startswith("forward: ") for what in check["wrong"])


def connected(network: Network) -> tuple[socket.socket, socket.socket]:
    with inside(network.hosts["right"].namespace):
        listener = socket.create_server(("198.18.0.2", 5300))
    with inside(network.hosts["left"].namespace):
        client = socket.create_connection(("198.18.0.2", 5300), timeout=10)
    return client, listener.accept()[0]


@pytest.mark.parametrize("kind", ["veth", "tun"])
def test_tcp_settings_of_a_host(kind: LinkKind) -> None:
    specs = hosts(congestion="reno", mss_clamp_bytes=812)
    with Network(specs, [LinkSpec(ends=("left", "right"), kind=kind)]) as network:
        client, server = connected(network)
        with client, server:
            name = server.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0")
            sizes = [one.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG) for one in (client, server)]
        assert name == b"reno"
        assert sizes == [800, 800], "12 bytes are timestamps"
        assert network.tcp["right"]["congestion"] == {"requested": "reno", "obtained": "reno"}


def test_a_segment_size_that_a_host_asks_for() -> None:
    with Network(hosts(advmss_bytes=912), [LinkSpec(ends=("left", "right"))]) as network:
        client, server = connected(network)
        with client, server:
            assert client.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG) == 900
            assert network.tcp["right"] == {"advmss_bytes": 912}


@pytest.mark.alone
def test_a_trial_over_a_path(measure: Callable[..., Trial]) -> None:
    trial = measure(*SMALL, *PATH, "hosts.primary.congestion=cubic")
    record = trial.record
    assert (record.outcome, record.reason) == ("done", "")
    far = next(check for check in record.link_checks if check["kind"] == "tun")
    assert far["rtt_median_us"] > 30_000
    assert record.conditions["hosts"]["primary"]["tcp"]["congestion"]["obtained"] == "cubic"
    assert record.instruments["link"]["forward"]["delay_ns"]["min"] >= 15_000_000
    assert (trial.metrics["transfer_time_s"] or 0) > 0.06, "a handshake, a query and an answer at least"
    rows = trial.links()["primary-secondary"]
    assert set(rows["direction"]) == {"forward", "reverse"} and rows["bytes"].sum() > 0
    assert 0 < (trial.metrics["link_mb"] or 0) < 1
    assert 0 < (trial.metrics["link_share_percent"] or 0) < 100


def test_a_trial_over_a_path_that_cannot_be_is_invalid(measure: Callable[..., Trial]) -> None:
    trial = measure(*SMALL, "path.rate_mbit=50000", "path.limit_packets=10000", "link=tun")
    assert trial.record.outcome == "invalid"
    assert "not as asked: forward: rate" in trial.record.reason
    assert trial.record.phases == [], "it is not begun"
