"""How many packets a second `replay prepare` reads on one core, and how much memory it takes: from a pcap of queries
and answers.

Half of the packets are queries of 100,000 clients, half are answers. Each size is prepared several times; the file is
in the page cache. Rates are by CPU time, so the time of the disk does not count; rates by elapsed time are beside
them.
"""

from __future__ import annotations

import json
import os
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from smoke import parser, sized, status

from dnsrig import paths

ROUNDS = sized(3, smoke=1)
PACKETS = sized((1_000_000, 4_000_000), smoke=(1_000, 4_000))
CLIENTS = 100_000
GOAL_PACKETS_PER_S = 1e6
SERVER = bytes((192, 0, 2, 53))


def frame(source: bytes, source_port: int, destination: bytes, destination_port: int, message: bytes) -> bytes:
    udp = struct.pack(">HHHH", source_port, destination_port, 8 + len(message), 0) + message
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0) + source + destination
    return b"\2" * 12 + b"\x08\x00" + ip + udp


def write(path: Path, packets: int) -> None:
    chosen = random.Random(1)
    with path.open("wb") as output:
        output.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for number in range(packets // 2):
            client = struct.pack(">I", 0x0A000000 + int(CLIENTS * chosen.random() ** 2))
            name = b"".join(
                bytes((len(label),)) + label for label in (b"w%06d" % (number % 65_521), b"example", b"com")
            )
            body = name + b"\0\0\1\0\1"
            query = struct.pack(">HHHHHH", number & 0xFFFF, 0x0100, 1, 0, 0, 0) + body
            answer = (
                struct.pack(">HHHHHH", number & 0xFFFF, 0x8180, 1, 1, 0, 0) + body + b"\xc0\x0c\0\1\0\1\0\0\1\0\0\4abcd"
            )
            port = 1024 + chosen.randrange(60_000)
            for offset_us, packet in (
                (0, frame(client, port, SERVER, 53, query)),
                (200, frame(SERVER, 53, client, port, answer)),
            ):
                seconds, us = divmod(number * 20 + offset_us, 1_000_000)
                output.write(struct.pack("<IIII", seconds, us, len(packet), len(packet)) + packet)


def prepare(capture: Path, out: Path, memory: str) -> tuple[float, float, int]:
    """Packets a second of CPU time and of elapsed time, and the most memory it had."""
    command = [str(paths.engine()), "replay", "prepare", str(capture), "--out", str(out), "--memory", memory]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout
        summary = json.loads(process.stdout.read())
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    packets = summary["ledger"]["packets"]["read"]
    return packets / summary["cpu_ns"] * 1e9, packets / summary["elapsed_ns"] * 1e9, usage.ru_maxrss // 1024


def main() -> int:
    parser(__doc__).parse_args()
    print(f"{'packets':>10} {'--memory':>9} {'packets/s of CPU':>17} {'elapsed':>11} {'RSS MB':>7}")
    slowest = float("inf")
    with tempfile.TemporaryDirectory() as folder:
        capture, out = Path(folder) / "capture.pcap", Path(folder) / "stream"
        for packets in PACKETS:
            write(capture, packets)
            for memory in ("1G", "64M"):
                found = sorted(prepare(capture, out, memory) for _ in range(ROUNDS))
                cpu, elapsed, rss_mb = found[ROUNDS // 2]
                slowest = min(slowest, cpu)
                print(f"{packets:>10,} {memory:>9} {cpu:>17,.0f} {elapsed:>11,.0f} {rss_mb:>7}")
    return status(goals_met=slowest >= GOAL_PACKETS_PER_S)


if __name__ == "__main__":
    sys.exit(main())
