"""Emulated paths: what a document says, what named sites add, and which links they come to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dnsrig.errors import UsageError
from dnsrig.experiment import model, path, preparation, trial_specs
from dnsrig.experiment.executors.uml import check_congestion
from dnsrig.lab import addresses, links, sites, tcp
from dnsrig.lab.links import netem, nic, tun
from dnsrig.procedures import procedure
from dnsrig.rundir import FarSpec, HostSpec, LinkSpec, PathSpec, TrialSpec


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without netem, whose kernel has two congestion controls."""
    monkeypatch.setattr(netem, "unavailable", lambda: netem.LACKING)
    monkeypatch.setattr(tcp, "congestion_controls", lambda: ("cubic", "reno"))


def spec(experiment: str = "tour", *settings: str) -> TrialSpec:
    document = model.load(model.find(experiment), "quick", list(settings))
    return trial_specs.provisional(experiment, model.points(document)[0], [0, 1])


def directions(**said: Any) -> tuple[PathSpec, PathSpec]:
    return path.directions(model.PathDocument.model_validate(said))


def test_without_a_path_links_are_plain() -> None:
    made = spec()
    assert (made.link, made.kernel) == ("veth", "running")
    assert {link.kind for link in made.links} == {"veth"} and not any(link.emulated for link in made.links)


def test_a_path_applies_to_the_far_links_alone() -> None:
    made = spec("tour", "path.delay_ms=10", "path.reverse.loss_percent=1", "path.seed=7")
    assert made.link == "tun"
    far = [link for link in made.links if link.emulated]
    assert [(link.ends, link.kind, link.seed) for link in far] == [(("primary", "secondary"), "tun", 7)]
    assert far[0].forward == PathSpec(delay_ms=10, limit_packets=1667)
    assert far[0].reverse == PathSpec(delay_ms=10, loss_percent=1, limit_packets=1667)
    assert all(link.kind == "veth" for link in made.links if not link.emulated)
    assert TrialSpec.model_validate_json(made.model_dump_json()) == made


def test_zones_of_transfer_load_go_to_the_client() -> None:
    made = spec("connection-policy", "path.delay_ms=10", "baseline={}")
    assert [link.ends for link in made.links if link.emulated] == [("primary", "client")]


def test_several_primaries_each_have_a_path() -> None:
    made = spec("tour", "path.delay_ms=1", "options.primaries=3")
    far = [link for link in made.links if link.emulated]
    assert [link.ends[0] for link in far] == ["primary", "primary2", "primary3"]
    # With one seed all would lose the same packets at the same time.
    assert far[0].seed == 1 and len({(link.seed + repeat) for link in far for repeat in range(1000)}) == 3000


@pytest.mark.parametrize("kind", ["transfer", "update", "cycle"])
def test_far_by_default_is_between_the_subject_and_its_primaries(kind: str) -> None:
    assert not hasattr(procedure(kind), "far")
    assert path.far_links(procedure(kind), spec().hosts, {}) == [("primary", "secondary")]


def test_with_several_primaries_each_is_far() -> None:
    made = spec("tour", "path.delay_ms=10", "link=tun", "options.primaries=2")
    far = [link.ends for link in made.links if link.emulated]
    assert far == [("primary", "secondary"), ("primary2", "secondary")]


def test_a_site_gives_defaults_and_what_is_said_goes_before_it() -> None:
    forward, reverse = directions(site="s3-far", loss_percent=2)
    assert forward == reverse == PathSpec(rate_mbit=20, delay_ms=125, jitter_ms=50, loss_percent=2, limit_packets=5000)
    forward, reverse = directions(site="s4-lab")
    assert (forward.loss_percent, reverse.loss_percent) == (10, 0), "S4's loss is on the way of the data"
    forward, reverse = directions(site="s4-lab", reverse={"loss_percent": 3})
    assert (forward.loss_percent, reverse.loss_percent) == (10, 3)


def test_every_site_says_where_it_is_known_from() -> None:
    for name, site in sites.all_sites().items():
        assert site.source.startswith(("S3 ", "S4 ", "typical, not measured")), name
        assert path.directions(model.PathDocument.model_validate({"site": name}))


def test_distances() -> None:
    assert sites.great_circle_km((0, 0), (0, 90)) == pytest.approx(10_007.5, abs=0.1), "a quarter of the equator"
    assert sites.great_circle_km((50, 8), (50, 8)) == 0
    assert sites.typical_delay_ms(sites.FIBRE_KM_PER_MS) == sites.STRETCH


def test_loss_over_time() -> None:
    forward, reverse = directions(
        delay_ms=1, loss_percent=9, loss_over_time=[[0, 0.1], [60, 5]], reverse={"loss_percent": 1}
    )
    assert [forward.loss_percent_at(after_s) for after_s in (0, 59, 60, 1e6)] == [0.1, 0.1, 5, 5]
    assert reverse.loss_percent_at(60) == 1, "what is said of the direction back goes before what is said of both"
    assert PathSpec(loss_over_time=[(10, 5)]).loss_percent_at(3) == 0


def test_a_queue_has_room_for_what_is_under_way() -> None:
    forward, _ = directions(rate_mbit=100, delay_ms=150)
    assert forward.limit_packets == 2 * 100e6 / 8 * 0.15 / 1500
    assert directions(rate_mbit=1, delay_ms=1)[0].limit_packets == 1000
    assert directions(rate_mbit=1, delay_ms=1, limit_packets=5)[0].limit_packets == 5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["path.delay_ms=1", "link=veth"], "veth emulates no path"),
        (["path.delay_ms=1", "link=netem"], "has no netem"),
        (["link=tun"], "without a"),
        (["link=nic"], "there is no link 'nic'"),
        (["path.delay_ms=1", "path.jitter_ms=2"], "more than the delay of 1 ms"),
        (["path.mtu_bytes=1501"], "above the interfaces' 1500"),
        (["path.mtu_bytes=1279", "family=ipv6"], "MTU of 1279 bytes is too small for IPv6"),
        (["path.interface_mtu_bytes=1000", "family=ipv6"], "MTU of 1000 bytes"),
        (["family=ipv5"], "family = 'ipv5'"),
        (["path.site=soul"], "there is no site 'soul'"),
        (["path.loss_over_time=[[5, 1], [2, 1]]"], "rising times"),
        (["path.loss_over_time=[[5]]"], "rising times"),
        (["path.loss_over_time=[[5, 1], [5, 2]]"], "rising times"),
        (["path.loss_over_time=[[]]"], "rising times"),
        (["path.rate_mbit=0.0001"], "greater than or equal to 0.001"),
        (["path.loss_percent=101"], "less than or equal to 100"),
        (["path.rate_mbit='20mbit'"], "path.rate_mbit = '20mbit'"),
        (["path.latency_ms=1"], "unknown key path.latency_ms"),
        (["path.reverse.delay=1"], "unknown key path.reverse.delay"),
        (["hosts.secondary.congestion=hybla", "kernel=running"], "no congestion control 'hybla'"),
        (["kernel=another"], "no kernel 'another'"),
    ],
)
def test_what_makes_no_sense_is_told(settings: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        spec("tour", *settings)
    assert caught.value.hint


LAST_S = path.MOST_AFTER_S


@pytest.mark.parametrize(
    ("steps", "is_good"),
    [
        ([], True),
        ([[0, 0]], True),
        ([[0, 100]], True),
        ([[LAST_S, 0]], True),
        ([[0, 1], [0.001, 1]], True),
        ([[-0.001, 0]], False),
        ([[LAST_S + 0.001, 0]], False),
        ([[0, -0.001]], False),
        ([[0, 100.001]], False),
        ([[0, 1], [0, 1]], False),
        ([[0, 1], [2, 1], [1, 1]], False),
        ([[0]], False),
        ([[0, 1, 2]], False),
    ],
)
def test_a_loss_over_time_has_rising_times_and_shares(steps: list[list[float]], is_good: bool) -> None:
    if is_good:
        assert path._steps(steps) == [tuple(step) for step in steps]
    else:
        with pytest.raises(UsageError, match="rising times"):
            path._steps(steps)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ({"delay_ms": 5, "jitter_ms": 5}, {"delay_ms": 5, "jitter_ms": 5, "limit_packets": 1667}),
        ({"mtu_bytes": 1499}, {"mtu_bytes": 1499}),
        ({"mtu_bytes": 1500}, {}),
        ({"mtu_bytes": 1400, "interface_mtu_bytes": 1400}, {}),
        ({"loss_percent": 100, "loss_over_time": [[0, 1]]}, {"loss_percent": 100, "loss_over_time": [(0, 1)]}),
        ({"delay_ms": 5.99}, {"delay_ms": 5.99}),
        ({"delay_ms": 6.01}, {"delay_ms": 6.01, "limit_packets": 1002}),
        ({"rate_mbit": 1, "delay_ms": 6001}, {"rate_mbit": 1, "delay_ms": 6001, "limit_packets": 1001}),
    ],
)
def test_a_direction_within_its_limits(said: dict[str, Any], found: dict[str, Any]) -> None:
    forward, reverse = directions(**said)
    assert forward == reverse == PathSpec(**found)


@pytest.mark.parametrize(
    ("setting", "is_good"),
    [("path.mtu_bytes=1280", True), ("path.mtu_bytes=1279", False), ("path.interface_mtu_bytes=1280", True)],
)
def test_ipv6_needs_1280_bytes(setting: str, is_good: bool) -> None:
    if is_good:
        assert spec("tour", "family=ipv6", "path.delay_ms=1", setting).link == "tun"
    else:
        with pytest.raises(UsageError, match="too small for IPv6"):
            spec("tour", "family=ipv6", "path.delay_ms=1", setting)


def far_link(*settings: str) -> LinkSpec:
    """The far link of a document whose primary has the addresses of the simulated Internet."""
    document = model.load(model.find("tour"), "quick", list(settings))
    hosts = dict(spec().hosts)
    hosts["primary"] = hosts["primary"].model_copy(update={"client_range": str(addresses.INTERNET.ipv4)})
    kind = path.link_kind(document, "running")
    return next(link for link in path.links(document, procedure("transfer"), hosts, {}, kind) if link.emulated)


def test_far_ends_have_round_trips_of_their_own() -> None:
    made = far_link("path.rtts=near", "path.delay_ms=1", "path.rtts_seed=5")
    assert made.kind == "tun" and made.forward is not None and made.reverse is not None
    assert (
        made.forward.far
        == made.reverse.far
        == FarSpec(
            distribution="near",
            rtt_classes=list(sites.DISTRIBUTIONS["near"].classes),
            prefixes=["198.18.64.0/18"],
            seed=5,
        )
    )
    assert made.forward.longest_ms == 501, "half of the longest, and what all have"
    assert made.forward.limit_packets == 2 * 1000e6 / 8 * 0.501 / 1500, "there is room for what is under way"
    assert LinkSpec.model_validate_json(made.model_dump_json()) == made


def test_far_ends_that_no_link_can_have(monkeypatch: pytest.MonkeyPatch) -> None:
    for settings, message in (
        (["path.rtts=nearby"], "no distribution of round trips 'nearby'"),
        (["path.rtts=near", "link=netem"], "delays all packets of a link alike"),
    ):
        monkeypatch.setattr(netem, "unavailable", lambda: None)
        with pytest.raises(UsageError, match=message) as caught:
            far_link(*settings)
        assert caught.value.hint
    with pytest.raises(UsageError, match="no host beyond the path has any"):
        spec("tour", "path.rtts=near")
    assert far_link("path.rtts=near").kind == "tun", "though the kernel has netem"


def test_a_procedure_without_far_links_takes_no_path() -> None:
    with pytest.raises(UsageError, match="no link that a"):
        spec("zone-load", "path.delay_ms=1")


def test_a_congestion_control_that_the_kernel_lacks_takes_another_kernel() -> None:
    assert spec("tour", "hosts.secondary.congestion=cubic").kernel == "running"
    made = spec("tour", "hosts.secondary.congestion=hybla", "path.delay_ms=1")
    assert (made.kernel, made.link, made.hosts["secondary"].congestion) == ("uml", "netem", "hybla")


def test_one_variant_that_needs_another_kernel_takes_all_there() -> None:
    """Else kernels and links would be compared as well."""
    axis = ['matrix."hosts.secondary.congestion"=["cubic", "hybla"]', "path.delay_ms=1"]
    points = preparation.draft(preparation.Request("tour", settings=axis)).points
    assert {point.document.kernel for point in points} == {"uml"}
    points = preparation.draft(preparation.Request("tour", settings=[axis[0].replace("hybla", "reno"), axis[1]])).points
    assert {point.document.kernel for point in points} == {"auto"}


def test_netem_where_the_kernel_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(netem, "unavailable", lambda: None)
    assert spec("tour", "path.delay_ms=1").link == "netem"
    assert spec("tour", "path.delay_ms=1", "link=tun").link == "tun"


def test_a_new_kind_is_known_by_what_it_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name occurs nowhere else: it is chosen, and readers of its counters know its header."""
    declared = {name: getattr(tun, name) for name in links.WANTED}
    kind = SimpleNamespace(**{**declared, "ORDER": 0.5, "FAR_DELAYS": False, "HEADER_BYTES": 4, "WRITES_ROWS": False})
    known = sorted({**links.kinds(), "l2tp": kind}.items(), key=lambda one: one[1].ORDER)
    monkeypatch.setattr(links, "kinds", lambda: dict(known))
    (far,) = (link for link in spec("tour", "path.delay_ms=1").links if link.emulated)
    assert (far.kind, far.header_bytes, far.writes_rows) == ("l2tp", 4, False)
    assert spec("tour").link == "veth", "without a path"
    with pytest.raises(UsageError, match="l2tp delays all packets of a link alike"):
        far_link("path.rtts=near", "link=l2tp")
    with pytest.raises(UsageError, match="there is no link 'soul'") as caught:
        spec("tour", "link=soul")
    assert caught.value.hint == "use auto or one of veth, l2tp, netem, tun"


def test_a_second_kind_between_machines_may_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = {name: getattr(nic, name) for name in links.WANTED}
    known = {**links.kinds(), "vxlan": SimpleNamespace(**{**declared, "ORDER": nic.ORDER + 1})}
    monkeypatch.setattr(links, "kinds", lambda: known)
    hosts = {name: HostSpec(address=f"198.18.0.{n}", cpus=[0], nic="eth1") for n, name in enumerate("ab", start=1)}
    hosts["b"].machine = "rack-1"
    assert path._near_link(("a", "b"), hosts).kind == "nic"


def test_a_congestion_control_that_no_kernel_has_is_refused_before_the_first_trial() -> None:
    made = spec("tour", "kernel=uml", "hosts.primary.congestion=hybla")
    check_congestion([made], ["cubic", "hybla"])
    with pytest.raises(UsageError, match="User-mode Linux has no congestion control 'hybla'"):
        check_congestion([made], ["cubic"])


def test_congestion_controls_in_modules(tmp_path: Any) -> None:
    folder = tmp_path / "6.1-x" / "kernel/net/ipv4"
    folder.mkdir(parents=True)
    for name in ("tcp_hybla.ko", "tcp_illinois.ko.xz", "tcp_diag.ko", "udp_diag.ko"):
        (folder / name).touch()
    assert tcp.loadable_controls(tmp_path, "6.1-x") == {"hybla", "illinois"}
    assert tcp.loadable_controls(tmp_path, "none") == set()
