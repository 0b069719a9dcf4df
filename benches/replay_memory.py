"""How much memory `replay play` takes over ten minutes of an hour of 9,000 queries/s by 100,000 clients.

    .venv/bin/python benches/replay_memory.py [folder for the stream, 2 GB]

Queries are shared among clients by Zipf's law with exponent 1, so clients that were not seen before come all the time.
One client in a hundred asks over TCP. The reflector is `serve echo` on loopback.
"""

from __future__ import annotations

import json
import random
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from replay_lateness import HEADER, RECORD
from smoke import parser, sized, status

from dnsrig import paths

RATE_QPS, STREAM_S, CLIENTS, PLAY_S = sized((9_000, 3600, 100_000, 600), smoke=(1_000, 10, 1_000, 3))
TCP_EVERY = 100
"""Every so many-th client asks over TCP."""
SERVER, CLIENTS_FROM = "127.0.0.1:5399", "127.64.0.0/10"
EVERY_S, FROM_S = sized((10, 60), smoke=(1, 1))
GOAL_GROWTH_MB = 8
FIELDS = ("VmRSS", "RssAnon", "RssFile")


def write_stream(path: Path) -> int:
    """An hour of Poisson arrivals; how many clients there are."""
    draw, numbers = random.Random(1), dict[int, int]()
    due_ns, count = 0, RATE_QPS * STREAM_S
    with path.open("wb") as output:
        output.write(bytes(HEADER.size))
        for number in range(count):
            # Zipf's law: the logarithm of the rank is uniform.
            rank = int(CLIENTS ** draw.random())
            client = numbers.setdefault(rank, len(numbers))
            name = b"\x08%08d\x07example\x03com\x00" % number
            message = struct.pack("!6H", number & 0xFFFF, 0x0100, 1, 0, 0, 0) + name + b"\0\1\0\1"
            record = RECORD.pack(due_ns, client, len(message), rank % TCP_EVERY == 0, 0) + message
            output.write(record + bytes(-len(record) % 8))
            last_ns = due_ns
            due_ns += int(draw.expovariate(RATE_QPS) * 1e9)
        output.seek(0)
        output.write(HEADER.pack(b"DNSRSTRM", 1, HEADER.size, count, len(numbers), 0, last_ns, 0, 0))
    return len(numbers)


def resident_mb(pid: int) -> list[float]:
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return [int(status[field].split()[0]) / 1024 for field in FIELDS]


def main() -> int:
    asking = parser(__doc__)
    asking.add_argument("folder", nargs="?", help="folder for the stream")
    engine, asked = str(paths.engine()), asking.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        stream = Path(folder) / "hour.stream"
        clients = write_stream(stream)
        print(
            f"{RATE_QPS * STREAM_S:,} queries of {clients:,} clients, {stream.stat().st_size / 1e9:.2f} GB", flush=True
        )
        serve = [engine, "serve", "echo", SERVER, "--transport", "udp,tcp", "--until-eof"]
        command = [engine, "replay", "play", str(stream), "--server", SERVER, "--clients-from", CLIENTS_FROM]
        with (
            subprocess.Popen(serve, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as echo,
            tempfile.TemporaryFile("w+") as output,
        ):
            assert echo.stdin and echo.stdout
            echo.stdout.readline()
            with subprocess.Popen([*command, f"--duration-s={PLAY_S}", "--json"], stdout=output) as play:
                found = sampled(play)
            echo.stdin.close()
            echo.stdout.read()
            output.seek(0)
            summary = json.loads(output.readlines()[-1])
    at_first = next(total for at_s, total in found if at_s >= FROM_S)
    growth_mb = found[-1][1] - at_first
    print(f"from {FROM_S} s to the end {growth_mb:+.1f} MB; goal {GOAL_GROWTH_MB:+d} MB")
    print(f"sent {summary['sent']:,}, answered {summary['answered']:,}, lag {summary['lag_ns']}")
    return status(goals_met=growth_mb <= GOAL_GROWTH_MB and summary["sent"] >= 0.99 * RATE_QPS * PLAY_S)


def sampled(play: subprocess.Popen[bytes]) -> list[tuple[float, float]]:
    """Seconds and resident MB, until it has sent all."""
    begun, found = time.monotonic(), list[tuple[float, float]]()
    print(f"{'s':>5}" + "".join(f"{field + ' MB':>12}" for field in FIELDS), flush=True)
    while (at_s := time.monotonic() - begun) < PLAY_S and play.poll() is None:
        resident = resident_mb(play.pid)
        found.append((at_s, resident[0]))
        print(f"{at_s:5.0f}" + "".join(f"{value:12.1f}" for value in resident), flush=True)
        time.sleep(EVERY_S)
    return found


if __name__ == "__main__":
    sys.exit(main())
