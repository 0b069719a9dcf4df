"""A stream as a resource, and what the procedure `replay` makes of it. The engine is not run here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dnsrig import streams
from dnsrig.errors import UsageError
from dnsrig.experiment import model, trial_specs
from dnsrig.procedures import replay
from dnsrig.procedures.context.instruments import lists_sockets
from dnsrig.procedures.parts.client_classes import over_https, over_quic, over_tls
from dnsrig.rundir import DatasetSpec, PathSpec, Scalar, ServerSource, StreamSpec, TrialSpec

WORLD_CHECKS = {"names-in-world", "upstream-do", "world-kept-up", "world-signed-ahead"}

DOCUMENT: dict[str, Any] = {
    "title": "t",
    "question": "q",
    "procedure": "replay",
    "limit_s": 60,
    "dataset": {"kind": "tiny-zones"},
    "hosts": {"primary": {"server": "echo@engine"}},
}
EXPECTS_CLIENTS = {"hosts": {"primary": {"server": "nsd@forky", "proxy_protocol": True}}}
DATASET = DatasetSpec(kind="tiny-zones", key="d", zones=3, records=12, serial=1)
STREAM = StreamSpec(kind="capture", key="s", queries=100, clients=10, span_s=60, transports={"udp": 90, "dot": 10})
SOURCES = {
    "echo@engine": ServerSource(kind="echo", source="engine", version="1"),
    "nsd@forky": ServerSource(kind="nsd", source="forky", version="4.15.4"),
}


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    path = tmp_path / "clients.pcap"
    path.write_bytes(b"a capture")
    return path


def spec(stream: StreamSpec | None = STREAM, more: dict[str, Any] | None = None, /, **options: Scalar) -> TrialSpec:
    document = {
        **DOCUMENT,
        **(more or {}),
        "options": options,
        "stream": {"kind": "capture", "file": "x"} if stream else {},
    }
    point = model.Point({}, model.validate(document, "test"))
    return trial_specs.spec("run", "test", point, SOURCES, [DATASET], [0, 1], stream)


def test_the_clients_have_a_range_and_a_link_to_the_server_alone() -> None:
    made = spec()
    assert made.hosts["clients"].client_range == "198.19.0.0/16"
    assert not any(host.client_range for name, host in made.hosts.items() if name != "clients")
    assert {frozenset(link.ends) for link in made.links} == {
        frozenset(("clients", "primary")),
        frozenset(("observer", "primary")),
    }


def test_the_clients_of_a_resolver_reach_the_resolver() -> None:
    found = replay.links(replay.hosts({**replay.OPTIONS, "serve_as": "resolver"}))
    assert found == [("primary", "resolver"), ("clients", "resolver")]


WORLD = ServerSource(kind="world", source="engine", version="1")
UNBOUND = ServerSource(kind="unbound", source="forky", version="1.22")


def in_world(level: str = "do-unvalidated", **options: Scalar) -> TrialSpec:
    hosts = {
        "internet": {"server": "world@engine"},
        "resolver": {"server": "unbound@forky", "resolving": {"level": level}},
    }
    chosen: dict[str, Scalar] = {"serve_as": "resolver", "resolve_from": "internet", **options}
    document = {**DOCUMENT, "hosts": hosts, "dataset": {"kind": "world"}, "options": chosen}
    point = model.Point({}, model.validate({**document, "stream": {"kind": "population"}}, "test"))
    dataset = DatasetSpec(kind="world", key="w", zones=1, records=0, serial=0)
    servers = {"world@engine": WORLD, "unbound@forky": UNBOUND}
    return trial_specs.spec("run", "test", point, servers, [dataset], [0, 1], STREAM)


def test_a_resolver_resolves_from_a_world_on_a_host_of_its_own() -> None:
    made = in_world()
    assert (made.world, made.subject, made.primaries) == ("internet", "resolver", [])
    assert made.hosts["internet"].server_ranges == ["198.18.64.0/18", "2001:2:0:3::/64"]
    assert not any(host.server_ranges for name, host in made.hosts.items() if name != "internet")
    assert {frozenset(link.ends) for link in made.links} == {
        frozenset(ends)
        for ends in [
            ("internet", "resolver"),
            ("clients", "resolver"),
            ("observer", "internet"),
            ("observer", "resolver"),
        ]
    }
    assert replay.far(made.hosts, made.options) == [("internet", "resolver")]
    assert set(replay.checks(made)) >= WORLD_CHECKS
    assert not WORLD_CHECKS & set(replay.checks(spec()))
    # Zones come over a secondary's links while it is asked, as fast as they can.
    assert "links-kept-up" in replay.checks(made) and "links-kept-up" not in replay.checks(spec())


def test_connections_over_a_far_path_are_listed_but_those_of_clients() -> None:
    made = in_world()
    far = [link.model_copy(update={"forward": PathSpec(delay_ms=10.0)}) for link in made.links]
    assert not lists_sockets(made.model_copy(update={"links": far}))
    assert lists_sockets(made.model_copy(update={"links": far, "stream": None}))
    assert not lists_sockets(made.model_copy(update={"stream": None}))


def test_only_a_resolver_resolves() -> None:
    with pytest.raises(UsageError, match="a primary does not resolve"):
        in_world(serve_as="primary")


def test_a_server_listens_for_tls_where_clients_used_it() -> None:
    assert over_tls(spec())
    assert not over_tls(spec(transport="udp"))
    over_udp = STREAM.model_copy(update={"transports": {"udp": 100}})
    assert not over_tls(spec(over_udp))
    assert over_tls(spec(over_udp, classes="share=10%,transport=dot"))
    assert over_tls(spec(transport="udp", classes="share=10%,transport=as-captured"))
    assert not over_tls(spec(over_udp, transport="udp", classes="share=10%,transport=as-captured"))


@pytest.mark.parametrize(("transport", "over"), [("doh", over_https), ("doq", over_quic)])
def test_a_server_listens_for_https_and_quic_where_clients_use_them(
    transport: str, over: Callable[[TrialSpec], bool]
) -> None:
    assert not over(spec()) and not over_tls(spec(transport=transport))
    assert over(spec(transport=transport)) and over(spec(classes=f"share=10%,transport={transport}"))
    captured = STREAM.model_copy(update={"transports": {"udp": 90, transport: 10}})
    assert over(spec(captured)) and not over_tls(spec(captured)) and not over(spec(captured, transport="dot"))


def test_options_become_arguments() -> None:
    words = replay.arguments(spec(speed=2.0, port="kept"), "clients", 0.5)
    assert words[0].endswith("/streams/s/clients.stream")
    assert {"--server=198.18.0.1", "--clients-from=198.19.0.0/16", "--speed=2.0", "--port=kept"} <= set(words)
    assert {"--duration-s=0.5", "--interval-s=0.5"} <= set(words) and "--proxy-protocol" not in words
    assert "--proxy-protocol" in replay.arguments(spec(STREAM, EXPECTS_CLIENTS, proxy_protocol=True), "clients", 0)
    assert not any(word.startswith("--duration-s") for word in replay.arguments(spec(), "clients", 0))


def test_classes_become_arguments_and_are_looked_at() -> None:
    classes = "share=20%, transport=dot, early-data=yes; share=5%,transport=tcp,reuse=no"
    words = replay.arguments(spec(classes=classes, class_seed=7), "clients", 0)
    given = [word for word in words if word.startswith("--class")]
    assert given == [
        "--class=share=20%,transport=dot,early-data=yes",
        "--class=share=5%,transport=tcp,reuse=no",
        "--class-seed=7",
    ]
    assert replay.checks(spec(classes=classes))[-2:] == ["sessions-resumed", "early-data"]
    assert "sessions-resumed" in replay.checks(spec(classes="share=20%,transport=dot,resumption=yes"))
    assert replay.checks(spec()) == replay.checks(spec(classes="share=20%")) == ["rate", "queries-arrived"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"transport": "dtls"}, "options.transport"),
        ({"speed": 0.0}, "options.speed = 0.0: a number from 0.001"),
        ({"port": "any"}, "fresh, kept"),
        ({"classes": "share=60%; share=50%"}, "110 %"),
        ({"classes": "transport=dot"}, "needs a share"),
        ({"classes": "share=0"}, "above 0"),
        ({"classes": "share=many"}, "above 0"),
        ({"classes": "share=1%,colour=red"}, "'colour' is not one of share, idle"),
        ({"classes": "share=1%,share=2%"}, "twice"),
        ({"classes": "share=1%,transport=dtls"}, "transport is one of"),
        ({"classes": "share=1%,transport=doh,early-data=yes"}, "no early data over DoH"),
        ({"classes": "share=1%,transport=tcp,early-data=yes"}, "transport=dot"),
        ({"classes": ";".join(["share=1%"] * 16)}, "15 classes"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Scalar], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        spec(**options)
    assert says in f"{caught.value.message} {caught.value.hint}"


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"transport": "dot"}, "compares all queries"),
        ({"transport": "doq"}, "compares all queries"),
        ({"retransmissions": "off"}, "compares all queries"),
        ({"proxy_protocol": True}, "compares the addresses of packets"),
    ],
)
def test_what_arrives_is_compared_where_all_of_it_can_be(other: dict[str, Scalar], says: str) -> None:
    assert "stream-arrived" in replay.checks(spec(capture=True))
    with pytest.raises(UsageError, match=says):
        spec(STREAM, EXPECTS_CLIENTS if "proxy_protocol" in other else {}, capture=True, **other)


def test_more_clients_than_addresses_need_ipv6() -> None:
    stream = STREAM.model_copy(update={"clients": 65_535})
    with pytest.raises(UsageError, match="65,534") as caught:
        spec(stream)
    assert 'family = "ipv6"' in caught.value.hint
    most = stream.model_copy(update={"clients": 65_534})
    assert spec(most).hosts["clients"].client_range == "198.19.0.0/16"
    made = spec(stream, {"family": "ipv6"})
    assert made.hosts["clients"].client_range == "2001:2:0:5::/64"
    assert "--server=2001:2::1" in replay.arguments(made, "clients", 0)


def test_a_replay_needs_a_stream_and_nothing_else_takes_one() -> None:
    with pytest.raises(UsageError, match="the experiment has none"):
        spec(None)
    other = model.validate({**DOCUMENT, "procedure": "latency", "stream": {"kind": "capture"}}, "test")
    with pytest.raises(UsageError, match="replays nothing"):
        trial_specs.spec("run", "test", model.Point({}, other), SOURCES, [DATASET], [0, 1])


@pytest.mark.parametrize(
    ("stream", "says"), [({"kind": "population"}, "itself made from the dataset"), ({}, "there is no stream")]
)
def test_a_world_of_a_stream_needs_one_that_is_there_before(stream: dict[str, Any], says: str) -> None:
    dataset = {"kind": "world", "from_stream": True}
    procedure = "replay" if stream else "latency"
    document = model.validate({**DOCUMENT, "procedure": procedure, "dataset": dataset, "stream": stream}, "test")
    with pytest.raises(UsageError, match=says):
        trial_specs.spec("run", "test", model.Point({}, document), SOURCES, [DATASET], [0, 1])


def test_a_stream_is_part_of_a_variant_and_none_is_not() -> None:
    def identity(**more: Any) -> str:
        return trial_specs.variant(model.Point({}, model.validate({**DOCUMENT, **more}, "test"))).id

    assert identity() == identity(stream={}) != identity(stream={"kind": "capture", "file": "x"})


def test_a_capture_is_known_by_what_it_contains(capture: Path, tmp_path: Path) -> None:
    def key(path: Path, **more: Scalar) -> str:
        return streams.key_of(*streams.wanted({"kind": "capture", "file": str(path), **more}), "dataset")

    same, other = tmp_path / "same.pcap", tmp_path / "other.pcap"
    same.write_bytes(capture.read_bytes())
    other.write_bytes(b"another capture")
    assert key(capture) == key(same) == key(capture, keep_share=1)
    assert len({key(capture), key(other), key(capture, keep_share=0.5), key(capture, cut="0..5")}) == 4


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ({}, "stream.kind"),
        ({"kind": "tape"}, "capture"),
        ({"kind": "capture"}, "stream.file is missing"),
        ({"kind": "capture", "file": "/nowhere.pcap"}, "there is no file"),
        ({"kind": "capture", "file": "x", "loud": True}, "it has: file"),
        ({"kind": "capture", "file": "x", "multiply": "3"}, "must be a whole number"),
    ],
)
def test_what_is_no_stream_is_refused(said: dict[str, Scalar], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        streams.wanted(said)
    assert says in f"{caught.value.message} {caught.value.hint}"


def test_a_capture_is_prepared_as_asked(capture: Path) -> None:
    said: dict[str, Scalar] = {"file": str(capture), "server": "192.0.2.1, 192.0.2.2", "cut": "1..2", "keep_share": 0.1}
    said["do_share"] = "80%"
    kind, values = streams.wanted({"kind": "capture", **said})
    words = streams.kinds()[kind].arguments(values, Path())
    assert words[:3] == ["replay", "prepare", str(capture)]
    assert {"--server=192.0.2.1", "--server=192.0.2.2", "--cut=1..2", "--keep-share=0.1"} <= set(words)
    assert "--do-share=80%" in words and not any(word.startswith("--edns") for word in words)


def test_a_population_asks_for_the_names_of_the_dataset() -> None:
    kind, values = streams.wanted({"kind": "population", "qps": 9000, "recursion_desired": False})
    words = streams.kinds()[kind].arguments(values, Path("/zones"))
    assert words[:2] == ["generate", "clients"]
    assert {"--names=/zones/zones.list", "--qps=9000.0", "--page-share=0.5", "--no-recursion-desired"} <= set(words)
    assert len({streams.key_of(kind, values, dataset) for dataset in ("one", "other", "one")}) == 2
