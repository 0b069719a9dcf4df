"""How exactly and how fast `replay play` sends: lateness of packets on the wire by rate, and the highest rate from one
core.

    .venv/bin/python benches/replay_lateness.py [lateness] [speed]

The capture is tcpdump's on the instrument's own interface, with nanoseconds. A packet's lateness is its time there less
the time at which its query was due by the stream: it holds the engine's own account to what left. Streams are written
here, so that neither side is the engine's. Each query has a name of its own, by which packets and queries are matched.
"""

from __future__ import annotations

import random
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from load_accuracy import NANOSECOND_MAGIC, UDP_HEADERS, percentile
from pair import Pair, pair, spread
from smoke import parts, sized

from dnsrig.lab.capture import capturing

ROUNDS = sized(3, smoke=1)
RATES_QPS = sized((1_000, 9_000, 30_000), smoke=(1_000,))
DURATION_S = sized(5, smoke=1)
CLIENTS = sized(5_000, smoke=100)
CLIENTS_FROM = "198.19.0.0/16"
GOALS_US = {50: 20.0, 99: 200.0, 99.9: 1000.0}
"""Percentile → the most lateness on the wire at 9,000 queries a second, on an idle machine."""
SPEED_QPS, SPEED_DURATION_S, SPEED_CLIENTS = sized((500_000, 2, 60_000), smoke=(1_000, 1, 100))
SPEED_GOAL_QPS = 150_000
HEADER = struct.Struct("<8sIIQQqqQQ")
RECORD = struct.Struct("<qIHBB")


def write_stream(path: Path, rate_qps: int, duration_s: float, clients: int) -> list[int]:
    """Poisson arrivals of clients that all ask about as often; when each is due, ns."""
    draw = random.Random(rate_qps)
    records, dues = bytearray(HEADER.size), []
    due_ns = 0
    for number in range(max(clients, int(rate_qps * duration_s))):
        name = b"\x08%08d\x07example\x03com\x00" % number
        message = struct.pack("!6H", draw.randrange(1 << 16), 0x0100, 1, 0, 0, 0) + name + struct.pack("!2H", 1, 1)
        client = number if number < clients else draw.randrange(clients)
        records += RECORD.pack(due_ns, client, len(message), 0, 0) + message
        records += bytes(-len(records) % 8)
        dues.append(due_ns)
        due_ns += int(draw.expovariate(rate_qps) * 1e9)
    header = HEADER.pack(b"DNSRSTRM", 1, HEADER.size, len(dues), clients, 0, dues[-1], 0, 0)
    records[: HEADER.size] = header
    path.write_bytes(records)
    return dues


def give_clients_addresses(hosts: Pair) -> None:
    for host, words in ((hosts.instrument, f"local {CLIENTS_FROM} dev lo"), (hosts.reflector, f"{CLIENTS_FROM} via {hosts.instrument.address}")):  # fmt: skip
        subprocess.run(["ip", "-n", host.namespace, "route", "add", *words.split()], check=True)


def sent(path: Path) -> Iterator[tuple[int, int]]:
    """Time in ns and number of every query in a capture; the number is in its name."""
    data = path.read_bytes()
    assert struct.unpack_from("<I", data)[0] == NANOSECOND_MAGIC
    at = 24
    while at + 16 <= len(data):
        seconds, nanoseconds, captured, _ = struct.unpack_from("<IIII", data, at)
        name = at + 16 + UDP_HEADERS + 12 + 1
        yield seconds * 1_000_000_000 + nanoseconds, int(data[name : name + 8])
        at += 16 + captured


def play(hosts: Pair, stream: Path, *options: str) -> list[dict[str, Any]]:
    server = str(hosts.reflector.address)
    return hosts.events("replay", "play", str(stream), f"--server={server}", f"--clients-from={CLIENTS_FROM}", *options)


def on_the_wire(hosts: Pair, stream: Path, dues: list[int]) -> tuple[list[int], dict[str, Any]]:
    """How late each packet was, ns, sorted; and what the engine says."""
    file = hosts.folder / "capture.pcap"
    with capturing(hosts.instrument, "reflector", "udp dst port 53", file, direction="out") as capture:
        events = play(hosts, stream, "--real-time")
    anchor, summary = events[0], events[-1]
    start_ns = summary["start_ns"] + anchor["realtime_ns"] - anchor["monotonic_ns"]
    late = sorted(when - start_ns - dues[number] for when, number in sent(file))
    if len(late) != summary["sent"]:
        raise RuntimeError(
            f"tcpdump saw {len(late):,} of {summary['sent']:,} queries; the kernel dropped {capture.dropped}"
        )
    return late, summary


def lateness(hosts: Pair) -> None:
    print(f"\nLateness on the wire, µs; goals at 9,000 queries/s: {GOALS_US}; in brackets the engine's own account")
    stream = hosts.folder / "rate.stream"
    for rate_qps in RATES_QPS:
        dues = write_stream(stream, rate_qps, DURATION_S, CLIENTS)
        found = [on_the_wire(hosts, stream, dues) for _ in range(ROUNDS)]
        for percent, name in ((50, "p50"), (99, "p99"), (99.9, "p99_9")):
            wire = spread([percentile(late, percent) / 1000 for late, _ in found])
            own = spread([summary["lag_ns"][name] / 1000 for _, summary in found])
            print(f"  {rate_qps:>7,}/s  p{percent:<6g}{wire:>28s}   ({own})")
        unanswered = [summary["timeouts"] for _, summary in found]
        real_time = all(summary["real_time"] for _, summary in found)
        print(f"  {rate_qps:>7,}/s  unanswered {unanswered}{'' if real_time else '; not in real time'}")


def speed(hosts: Pair) -> None:
    print(f"\nQueries a second from one core, all due at once; goal {SPEED_GOAL_QPS:,}; CPU a query of the process, µs")
    stream = hosts.folder / "speed.stream"
    write_stream(stream, SPEED_QPS, SPEED_DURATION_S, SPEED_CLIENTS)
    for options in ((), ("--port=kept",), ("--port=kept", "--ports=16")):
        found = [play(hosts, stream, *options, "--timeout-s=1")[-1] for _ in range(ROUNDS)]
        rates = [one["sent"] / one["sending_ns"] * 1e9 for one in found]
        cpu_us = [one["cpu_ns"] / one["sent"] / 1000 for one in found]
        answered = [round(one["answered"] / one["sent"], 3) for one in found]
        print(
            f"  {' '.join(options) or 'defaults':24s}{spread(rates):>36s} /s   CPU {spread(cpu_us)}   answered {answered}"
        )


def main() -> None:
    wanted = parts(__doc__, ("lateness", "speed"))
    with pair() as hosts:
        give_clients_addresses(hosts)
        with hosts.echo():
            if "lateness" in wanted:
                lateness(hosts)
            if "speed" in wanted:
                speed(hosts)


if __name__ == "__main__":
    main()
