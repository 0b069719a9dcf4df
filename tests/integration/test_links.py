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

from dnsrig.lab import addresses, sites
from dnsrig.lab.host import inside
from dnsrig.lab.links import datagrams, far, netem, selftest
from dnsrig.lab.network import Network
from dnsrig.rundir import Family, FarSpec, HostSpec, LinkSpec, PathSpec
from dnsrig.runs.trial import Trial

ASKED = PathSpec(rate_mbit=50, delay_ms=20, jitter_ms=5, loss_percent=1)
PATH = ["path.rate_mbit=50", "path.delay_ms=20", "path.jitter_ms=5", "path.loss_percent=1", "link=tun"]
SMALL = ["server=nsd@forky", "zones=50", "hosts.primary.server=zones@engine"]


FAMILIES: tuple[Family, ...] = ("ipv4", "ipv6")


def hosts(family: Family = "ipv4", **right: Any) -> dict[str, HostSpec]:
    return {
        "left": HostSpec(address=addresses.own(1, family), cpus=[0]),
        "right": HostSpec(address=addresses.own(2, family), cpus=[0], **right),
    }


FREE = {"ipv4": (socket.IPPROTO_IP, 15), "ipv6": (socket.IPPROTO_IPV6, 78)}
"""IP_FREEBIND, IPV6_FREEBIND (ip(7), linux/in6.h)."""


def link(forward: PathSpec, reverse: PathSpec, kind: str = "tun") -> list[LinkSpec]:
    return [LinkSpec(ends=("left", "right"), kind=kind, forward=forward, reverse=reverse)]


PAIRS = [
    (ASKED, ASKED),
    (PathSpec(delay_ms=40, jitter_ms=20, ordered=False), PathSpec(delay_ms=5, rate_mbit=2)),
    (PathSpec(delay_ms=5, mtu_bytes=1400), PathSpec(delay_ms=150, mtu_bytes=1300)),
    (PathSpec(delay_ms=5, loss_over_time=[(0, 0), (0.7, 40)]), PathSpec(delay_ms=5, loss_percent=2)),
]


@pytest.mark.alone
@pytest.mark.parametrize("kind", ["tun", "netem"])
@pytest.mark.parametrize(("forward", "reverse"), quick(PAIRS, PAIRS[1]))
def test_a_link_is_as_asked(kind: str, forward: PathSpec, reverse: PathSpec, tmp_path: Path) -> None:
    if kind == "netem" and netem.unavailable():
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


@pytest.mark.parametrize("family", FAMILIES)
def test_what_the_test_is_told_of_the_path_is_forgotten(family: Family) -> None:
    """Else the first connection of a trial would know the path's MTU already."""
    forward = PathSpec(delay_ms=1, mtu_bytes=1300)
    with Network(hosts(family), link(forward, forward)) as network:
        (check,) = network.check_links()
        assert check["forward"]["found"]["too_large_told"], check
        left, right = (network.hosts[name] for name in ("left", "right"))
        with inside(left.namespace), socket.socket(left.family, socket.SOCK_DGRAM) as sock:
            sock.connect((str(right.address), 1))
            option = (socket.IPPROTO_IP, 14) if family == "ipv4" else (socket.IPPROTO_IPV6, 24)
            assert sock.getsockopt(*option) == 1500, "IP_MTU (ip(7)), IPV6_MTU (ipv6(7))"


@pytest.mark.parametrize("kind", ["veth", "tun", "netem"])
def test_hosts_that_do_nothing_send_nothing(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """No discovery of duplicates, of neighbours, of routers, and no report of groups."""
    monkeypatch.setattr(netem, "set_discipline", lambda *_, **__: None)
    between = [LinkSpec(ends=("left", "right"))] if kind == "veth" else link(PathSpec(), PathSpec(), kind)
    with Network(hosts("ipv6"), between) as network:
        time.sleep(1.5)  # a report of groups is sent within a second (RFC 3810, 9.11)
        assert sent_packets(network.hosts["left"].namespace) == 0
        with NetNS(network.hosts["right"].namespace) as route:
            (interface,) = route.get_links(ifname="left")
            assert interface.get_attr("IFLA_STATS64")["rx_packets"] == 0, "nor does a router between them"


def test_a_link_too_narrow_for_ipv6_leaves_the_host_its_address() -> None:
    """A server that listens there starts whatever the links are."""
    with Network(hosts(), [LinkSpec(ends=("left", "right"), mtu_bytes=1000)]) as network:
        (check,) = network.check_links()
        assert check["works"] and check["mtu_bytes"] == 1000
        with inside(network.hosts["left"].namespace):
            socket.create_server(("2001:2::1", 53), family=socket.AF_INET6).close()


@pytest.mark.parametrize(("icmp", "family"), [(True, "ipv4"), (False, "ipv6")])
def test_the_router_of_netem_without_netem(monkeypatch: pytest.MonkeyPatch, icmp: bool, family: Family) -> None:
    """All but the queueing discipline is there on any kernel: forwarding, path MTU, ICMP, packets that are packets."""
    monkeypatch.setattr(netem, "set_discipline", lambda *_, **__: None)
    path = PathSpec(mtu_bytes=1400, icmp=icmp)
    (other,) = addresses.sources(0, 1, family)
    specs = hosts(family, source_addresses=[other])
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
            listener = socket.create_server((other, 5300), family=right.family)
        with inside(left.namespace), listener, socket.create_connection((other, 5300), timeout=5):
            pass


@pytest.mark.parametrize(
    ("family", "kind"), [("ipv4", "veth"), ("ipv4", "tun"), ("ipv4", "netem"), ("ipv6", "veth"), ("ipv6", "netem")]
)
def test_every_address_of_a_range_of_clients_is_reached(
    monkeypatch: pytest.MonkeyPatch, family: Family, kind: str
) -> None:
    """Without an entry an address: queries leave from any of them, and answers come back."""
    monkeypatch.setattr(netem, "set_discipline", lambda *_, **__: None)
    between = [LinkSpec(ends=("left", "right"))] if kind == "veth" else link(PathSpec(), PathSpec(), kind)
    clients = addresses.CLIENTS.of(family)
    client = (str(clients[52_000]), 40_000)
    with Network(hosts(family, client_range=str(clients)), between) as network:
        left, right = (network.hosts[name] for name in ("left", "right"))
        at = (str(left.address), 5300)
        with inside(left.namespace):
            server = socket.create_server(at, family=left.family)
        with inside(right.namespace):
            asking = socket.socket(right.family)
            asking.settimeout(5)
            # Of IPv6 a socket is bound to addresses of devices, unless it may be to any.
            asking.setsockopt(*FREE[family], 1)
            asking.bind(client)
            asking.connect(at)
        with server, asking:
            accepted, seen = server.accept()
            accepted.close()
    assert seen[:2] == client


def sent_packets(namespace: str) -> int:
    with NetNS(namespace) as route:
        (interface,) = route.get_links(ifname="right")
        return int(interface.get_attr("IFLA_STATS64")["tx_packets"])


@pytest.mark.full
def test_a_link_that_is_something_else_is_told() -> None:
    """Asked for far more than the machine can do."""
    with Network(hosts(), link(PathSpec(rate_mbit=50_000, limit_packets=10_000), PathSpec())) as network:
        (check,) = network.check_links()
    assert not check["works"] and any("Mbit/s where 50000 was asked for" in what for what in check["wrong"])


def far_path(distribution: str, seed: int, family: Family, **more: Any) -> PathSpec:
    """With the simulated Internet beyond it."""
    own = FarSpec(
        distribution=distribution,
        rtt_classes=list(sites.distribution(distribution).classes),
        prefixes=[str(addresses.INTERNET.of(family))],
        seed=seed,
    )
    return PathSpec(far=own, limit_packets=5000, **more)


@pytest.mark.alone
@pytest.mark.parametrize(("family", "ordered"), quick([("ipv4", True), ("ipv6", False)], ("ipv6", False)))
def test_each_address_of_the_internet_is_as_far_as_it_is(family: Family, ordered: bool) -> None:
    path = far_path("far", 1, family, delay_ms=2, jitter_ms=1, ordered=ordered)
    specs = hosts(family, client_range=str(addresses.INTERNET.of(family)))
    with Network(specs, link(path, path)) as network:
        (check,) = network.check_links()
        told = network.finish_links()["link"]
    assert check["works"], check
    assert all(set(one) == {"asked_ms", "forward_ms", "reverse_ms"} for one in check["far"].values())
    assert max(one["asked_ms"] for one in check["far"].values()) > 100, "the farthest of 256 is"
    for direction in ("forward", "reverse"):
        # Six addresses, nine packets each; all others go between the hosts themselves, and are not far.
        assert told[direction]["far_packets"] == 6 * 9
        delays_ns = told[direction]["delay_ns"]
        assert delays_ns["min"] < 5e6 and delays_ns["max"] > 100e6, delays_ns


@pytest.mark.full
@pytest.mark.alone
def test_a_handshake_pays_the_distance_of_its_server() -> None:
    """Of two servers on one host, by what the link says of its packets."""
    path = far_path("far", 1, "ipv4")
    assert path.far is not None
    near, *_, distant = far.sample(path.far, path.far.prefixes[0], 6)
    delays_ns = {}
    for address in (near, distant):
        with Network(hosts(client_range=path.far.prefixes[0]), link(path, path)) as network:
            with inside(network.hosts["right"].namespace):
                listener = socket.create_server((str(address), 53))
            with inside(network.hosts["left"].namespace), listener:
                socket.create_connection((str(address), 53), timeout=10).close()
            delays_ns[address] = network.finish_links()["link"]["reverse"]["delay_ns"]
    for address, found in delays_ns.items():
        # The histogram has three digits.
        assert found["min"] > 0.99e6 * far.one_way_ms(path.far, address), (address, found)
    assert delays_ns[distant]["min"] > 5 * far.one_way_ms(path.far, near) * 1e6


@pytest.mark.full
@pytest.mark.alone
@pytest.mark.parametrize("real", [{"far": None}, {"far": far_path("far", 2, "ipv4").far}])
def test_a_link_with_other_distances_is_told(real: dict[str, Any]) -> None:
    """None at all; or those of another seed, which are the same distribution."""
    asked = far_path("far", 1, "ipv4")
    with Network(
        hosts(client_range=str(addresses.INTERNET.ipv4)), link(asked.model_copy(update=real), asked)
    ) as network:
        left, right = (network.hosts[name] for name in ("left", "right"))
        (_, made), *_ = network.made
        check = selftest.check(left, right, link(asked, asked)[0], made.began_s)
    assert not check["works"] and all(what.startswith("forward: delay of 198.18.") for what in check["wrong"]), check


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
@pytest.mark.parametrize(("real", "says"), quick(OTHERS, OTHERS[3]))
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
    right = network.hosts["right"]
    at = (str(right.address), 5300)
    with inside(right.namespace):
        listener = socket.create_server(at, family=right.family)
    with inside(network.hosts["left"].namespace):
        client = socket.create_connection(at, timeout=10)
    return client, listener.accept()[0]


@pytest.mark.parametrize(("kind", "family"), [("veth", "ipv4"), ("tun", "ipv4"), ("veth", "ipv6"), ("tun", "ipv6")])
def test_tcp_settings_of_a_host(kind: str, family: Family) -> None:
    specs = hosts(family, congestion="reno", mss_clamp_bytes=812)
    with Network(specs, [LinkSpec(ends=("left", "right"), kind=kind)]) as network:
        client, server = connected(network)
        with client, server:
            name = server.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0")
            sizes = [one.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG) for one in (client, server)]
        assert name == b"reno"
        assert sizes == [800, 800], "12 bytes are timestamps"
        assert network.tcp["right"]["congestion"] == {"requested": "reno", "obtained": "reno"}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_segment_size_that_a_host_asks_for(family: Family) -> None:
    with Network(hosts(family, advmss_bytes=912), [LinkSpec(ends=("left", "right"))]) as network:
        client, server = connected(network)
        with client, server:
            assert client.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG) == 900
            assert network.tcp["right"] == {"advmss_bytes": 912}


@pytest.mark.alone
def test_a_trial_over_a_path(measure: Callable[..., Trial]) -> None:
    trial = measure(*SMALL, *PATH, "hosts.primary.congestion=cubic")
    record = trial.record
    assert (record.outcome, record.reason) == ("done", "")
    far = next(check for check in record.link_tests if check["kind"] == "tun")
    assert far["rtt_median_us"] > 30_000
    assert record.read_back["hosts"]["primary"]["tcp"]["congestion"]["obtained"] == "cubic"
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
