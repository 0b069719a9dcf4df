"""Each trap of a replay is provoked for real, by captures whose faults are known, and is silent without them."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from replay_data import TRAPS
from test_traps_provoked import eventually, finding

from dnsrig.runs.trial import Trial

Measure = Callable[..., Trial]
Asked = tuple[float, int, str, int]
"""When, in seconds, which client, what name, with which id."""
SERVER = b"\xc0\x00\x02\x35"
EXPERIMENT = """
title = "A capture against one server"
question = "What does this server make of it?"
procedure = "replay"
limit_s = 60

[dataset]
kind = "tiny-zones"

[stream]
kind = "capture"
file = "{capture}"

[hosts.primary]
server = "echo@engine"

[options]
duration_s = 0
timeout_s = 0.5
"""


@pytest.fixture
def replay(measure: Measure, trials: Path) -> Measure:
    """One replay of what was asked; ``settings`` change the experiment. A capture is made once a session."""

    def one(
        name: str,
        asked: Iterable[Asked],
        *settings: str,
        answered: bool = True,
        truncated: bool = False,
        snaplen: int = 0,
    ) -> Trial:
        capture, experiment = trials / f"{name}.pcap", trials / f"{name}.toml"
        if not experiment.exists():
            capture.write_bytes(pcap(asked, answered, truncated, snaplen))
            experiment.write_text(EXPERIMENT.format(capture=capture))
        return measure(*settings, experiment=str(experiment))

    return one


def pcap(asked: Iterable[Asked], answered: bool, truncated: bool, snaplen: int) -> bytes:
    """Raw IP packets; each tenth is cut at ``snaplen``, if there is one. Answers come after 1 ms."""
    packets = []
    flags = 0x8380 if truncated else 0x8180
    for time_s, client, name, number in asked:
        address, port = struct.pack("!I", 0xCB00_0000 + client), 10_000 + client % 50_000
        labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
        rest = struct.pack("!4H", 1, 0, 0, 0) + labels + b"\0\0\1\0\1"
        packets.append((time_s, ip(address, SERVER, port, 53, struct.pack("!2H", number, 0x0100) + rest)))
        if answered:
            answer = ip(SERVER, address, 53, port, struct.pack("!2H", number, flags) + rest)
            packets.append((time_s + 0.001, answer))
    data = bytearray(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 101))
    for place, (time_s, packet) in enumerate(sorted(packets)):
        kept = packet[:snaplen] if snaplen and place % 10 == 0 else packet
        data += struct.pack("<4I", 1_700_000_000 + int(time_s), int(time_s % 1 * 1e9), len(kept), len(packet)) + kept
    return bytes(data)


def ip(source: bytes, target: bytes, source_port: int, target_port: int, message: bytes) -> bytes:
    udp = struct.pack("!4H", source_port, target_port, 8 + len(message), 0) + message
    return struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0) + source + target + udp


def everyday(clients: int = 60, queries: int = 20, seconds: float = 2.0) -> list[Asked]:
    """Clients that ask about equally often, mostly for what others ask for, too."""
    draw = random.Random(1)
    number = iter(range(1, 65_536))
    return [
        (seconds * draw.random(), client, f"n{int(draw.paretovariate(0.8)) % 5000}.test", next(number))
        for client in range(clients)
        for _ in range(queries)
    ]


def faulty() -> list[Asked]:
    """30 clients that ask four times and again after 100 ms each time, and one that asks for 600 different names."""
    some = [
        (0.1 + client / 40 + n / 4, client, f"n{n}.test", 4 * client + n + 1) for client in range(30) for n in range(4)
    ]
    again = [(time_s + 0.1, client, name, number) for time_s, client, name, number in some]
    return [*some, *again, *((n / 400, 1_000, f"d{n}.test", 1_000 + n) for n in range(600))]


@pytest.fixture
def with_faults(replay: Measure) -> Trial:
    return replay(
        "faulty", faulty(), "options.port=kept", "hosts.primary.settings.threads=4", answered=False, snaplen=40
    )


def test_incomplete_capture(with_faults: Trial) -> None:
    found = finding("incomplete-capture", with_faults)
    assert found.verdict == "found"
    assert (found.evidence["datagrams_cut"], found.evidence["answers_udp"]) == (84, 0)


@pytest.mark.full
def test_a_capture_without_tcp(replay: Measure) -> None:
    """Every answer is truncated, and nobody asks again over TCP."""
    found = finding("incomplete-capture", replay("truncated", everyday(), truncated=True))
    assert found.verdict == "found" and "0 queries came over TCP" in found.summary
    assert found.evidence["answers_truncated"] == found.evidence["answers_udp"]


def test_heavy_clients(with_faults: Trial) -> None:
    found = finding("heavy-clients", with_faults)
    assert found.verdict == "found"
    assert float(found.evidence["largest_client_percent"] or 0) == pytest.approx(71, abs=4)


def test_nat_client(with_faults: Trial) -> None:
    found = finding("nat-client", with_faults)
    assert found.verdict == "found" and found.evidence["addresses"] == 1
    assert found.evidence["questions"] == found.evidence["queries"]


def test_replayed_retransmissions(with_faults: Trial) -> None:
    found = finding("replayed-retransmissions", with_faults)
    assert found.verdict == "found"
    assert float(found.evidence["retransmissions_percent"] or 0) == pytest.approx(14, abs=4)


def test_few_source_ports(with_faults: Trial) -> None:
    found = finding("few-source-ports", with_faults)
    assert found.verdict == "found"
    assert float(found.evidence["flows"] or 0) == pytest.approx(2, abs=0.3) and found.evidence["threads"] == 4


@pytest.mark.full
def test_queries_sent_late(replay: Measure) -> None:
    """Two seconds of queries in two milliseconds."""
    trial = replay("many", everyday(400, 50), "options.speed=1000")
    found = finding("queries-sent-late", trial)
    assert found.verdict == "found"
    assert float(found.evidence["slip_s"] or 0) > 0.02


@pytest.mark.full
def test_downsampled_clients(replay: Measure) -> None:
    found = finding("downsampled-clients", replay("everyday", everyday(), "stream.keep_share=0.25"))
    assert found.verdict == "found"
    assert float(found.evidence["missing_points"] or 0) > 1


LIMITED = "{ responses-per-second 5; slip 0; ipv4-prefix-length 32; }"


def heavy_and_light() -> list[Asked]:
    """Three clients that ask 300 times in two seconds, and 60 that ask twice."""
    heavy = [(n / 150, client, f"n{n}.test", n + 1) for client in range(3) for n in range(300)]
    return heavy + [(client / 40 + n / 2, 100 + client, "n1.test", n + 1) for client in range(60) for n in range(2)]


@pytest.mark.full
def test_client_rate_limit(replay: Measure) -> None:
    limit = f"hosts.primary.settings.rate-limit='{LIMITED}'"
    found = finding("client-rate-limit", replay("limited", heavy_and_light(), "hosts.primary.server=bind@forky", limit))
    assert found.verdict == "found" and found.evidence["by"] == "clients"
    assert float(found.evidence["heavy_limited_percent"] or 0) > 50
    assert float(found.evidence["others_limited_percent"] or 0) < 5


@pytest.mark.full
def test_no_client_rate_limit(replay: Measure) -> None:
    trial = replay("limited", heavy_and_light(), "hosts.primary.server=bind@forky")
    assert finding("client-rate-limit", trial).verdict == "clear"


@pytest.mark.parametrize("trap", TRAPS)
def test_an_everyday_capture_is_clear(replay: Measure, trap: str) -> None:
    eventually(trap, "clear", lambda: replay("everyday", everyday()))
