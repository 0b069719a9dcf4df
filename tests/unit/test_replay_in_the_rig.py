"""A stream as a resource, and what the procedure `replay` makes of it. The engine is not run here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dnsrig import streams
from dnsrig.errors import UsageError
from dnsrig.experiment import model, plan
from dnsrig.procedures import replay
from dnsrig.rundir import DatasetSpec, Scalar, ServerSource, StreamSpec, TrialSpec

DOCUMENT: dict[str, Any] = {
    "title": "t",
    "question": "q",
    "procedure": "replay",
    "limit_s": 60,
    "dataset": {"kind": "tiny-zones"},
    "hosts": {"primary": {"server": "echo@engine"}},
}
DATASET = DatasetSpec(kind="tiny-zones", key="d", zones=3, records=12, serial=1)
STREAM = StreamSpec(kind="capture", key="s", queries=100, clients=10, span_s=60, transports={"udp": 90, "dot": 10})
ECHO = ServerSource(kind="echo", source="engine", version="1")


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    path = tmp_path / "clients.pcap"
    path.write_bytes(b"a capture")
    return path


def spec(stream: StreamSpec | None = STREAM, **options: Scalar) -> TrialSpec:
    document = {**DOCUMENT, "options": options, "stream": {"kind": "capture", "file": "x"} if stream else {}}
    point = model.Point({}, model.validate(document, "test"))
    return plan.spec("run", "test", point, {"echo@engine": ECHO}, [DATASET], [0, 1], stream)


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


def test_a_server_listens_for_tls_where_clients_used_it() -> None:
    assert spec().over_tls
    assert not spec(transport="udp").over_tls
    assert not spec(STREAM.model_copy(update={"transports": {"udp": 100}})).over_tls


def test_options_become_arguments() -> None:
    words = replay.arguments(spec(speed=2.0, port="kept"), 0.5)
    assert words[0].endswith("/streams/s/clients.stream")
    assert {"--server=198.18.0.1", "--clients-from=198.19.0.0/16", "--speed=2.0", "--port=kept"} <= set(words)
    assert {"--duration-s=0.5", "--interval-s=0.5"} <= set(words)
    assert not any(word.startswith("--duration-s") for word in replay.arguments(spec(), 0))


@pytest.mark.parametrize(
    ("options", "says"),
    [({"transport": "doh"}, "options.transport"), ({"speed": 0.0}, "above 0"), ({"port": "any"}, "fresh, kept")],
)
def test_bad_options_are_refused(options: dict[str, Scalar], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        spec(**options)
    assert says in f"{caught.value.message} {caught.value.hint}"


def test_more_clients_than_addresses_are_refused() -> None:
    with pytest.raises(UsageError, match="65,534"):
        spec(STREAM.model_copy(update={"clients": 65_535}))


def test_a_replay_needs_a_stream_and_nothing_else_takes_one() -> None:
    with pytest.raises(UsageError, match="there is none"):
        spec(None)
    other = model.validate({**DOCUMENT, "procedure": "latency", "stream": {"kind": "capture"}}, "test")
    with pytest.raises(UsageError, match="replays nothing"):
        plan.spec("run", "test", model.Point({}, other), {"echo@engine": ECHO}, [DATASET], [0, 1])


def test_a_stream_is_part_of_a_variant_and_none_is_not() -> None:
    def identity(**more: Any) -> str:
        return plan.variant(model.Point({}, model.validate({**DOCUMENT, **more}, "test"))).id

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
        ({"kind": "capture", "file": "x", "multiply": "3"}, "wrong type"),
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
