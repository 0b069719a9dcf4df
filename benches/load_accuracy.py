"""How true `load`'s latencies are: against a packet capture, against a stall computed by hand, at both ends when the
instrument itself is made to stand still, and how late it sends.

The capture is tcpdump's on the instrument's own interface, with nanoseconds: of each query and its answer the time
between the two packets. `load`'s twin, from sending to receiving, must be the same but for the way through the socket.
"""

from __future__ import annotations

import math
import re
import signal
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pair import Pair, pair, spread
from smoke import parts, sized

from dnsrig.lab.capture import capturing
from dnsrig.lab.process import Process

ROUNDS = sized(5, smoke=1)
CAPTURE_QPS = sized(20_000, smoke=1_000)
LAG_QPS = sized(100_000, smoke=1_000)
DURATION_S = sized(5, smoke=1)
STALL_MS, STALL_EVERY_MS = 200, 1000
STALL_QPS = 5_000
STALL = ("--stall", f"{STALL_MS}ms", "--stall-every", f"{STALL_EVERY_MS}ms")
STOPS, STOP_MS, BETWEEN_STOPS_MS = sized(8, smoke=1), 50, 450
STOPPED_WITH = ((), ("--delay", "5ms"), ("--delay", "5ms", "--jitter", "2ms"), STALL)
"""Options of the servers that `load` asks while it is stopped."""
NANOSECOND_MAGIC = 0xA1B23C4D
"""The first bytes of a pcap file with nanoseconds (pcap-savefile(5))."""
UDP_HEADERS = 14 + 20 + 8
PORT = 53


def packets(path: Path) -> Iterator[tuple[int, int, int, int]]:
    """Time in ns, source port, destination port, message id, of every UDP datagram over IPv4 and Ethernet."""
    data = path.read_bytes()
    assert struct.unpack_from("<I", data)[0] == NANOSECOND_MAGIC
    at = 24
    while at + 16 <= len(data):
        seconds, nanoseconds, captured, _ = struct.unpack_from("<IIII", data, at)
        start = at + 16 + UDP_HEADERS
        source, destination = struct.unpack_from("!HH", data, at + 16 + 34)
        yield seconds * 1_000_000_000 + nanoseconds, source, destination, struct.unpack_from("!H", data, start)[0]
        at += 16 + captured


def captured_latencies(path: Path) -> list[int]:
    """From each query's packet to its answer's, ns, sorted."""
    asked: dict[tuple[int, int], int] = {}
    found = []
    for when, source, destination, message in packets(path):
        if destination == PORT:
            asked[source, message] = when
        elif (sent := asked.pop((destination, message), None)) is not None:
            found.append(when - sent)
    return sorted(found)


def percentile(values: list[int], percent: float) -> int:
    """The smallest value with at least that share of the values at or below it."""
    return values[max(0, math.ceil(percent / 100 * len(values)) - 1)]


def against_capture(hosts: Pair) -> None:
    print(
        f"\nTwin against a packet capture, {CAPTURE_QPS:,} queries/s, echo --delay 10ms: twin - capture, µs; target within 20"
    )
    differences: dict[float, list[float]] = {50: [], 99: [], 99.9: []}
    for _ in range(ROUNDS):
        file = hosts.folder / "capture.pcap"
        with capturing(hosts.instrument, "reflector", f"udp port {PORT}", file, direction="inout") as capture:
            summary = hosts.load(f"--rate={CAPTURE_QPS}", f"--duration-s={DURATION_S}", "--segmentation=off")
        latencies = captured_latencies(file)
        if len(latencies) < 0.999 * summary["answered"]:
            raise RuntimeError(
                f"tcpdump saw {len(latencies):,} of {summary['answered']:,} queries; the kernel dropped {capture.dropped}"
            )
        twin = summary["sent_latency_ns"]
        for percent, name in ((50, "p50"), (99, "p99"), (99.9, "p99_9")):
            differences[percent].append((twin[name] - percentile(latencies, percent)) / 1000)
    for percent, found in differences.items():
        print(f"  p{percent:<6g}{spread(found)}")


def histogram(text: str) -> Callable[[float], float]:
    """dnsperf's latency histogram as a function from percent to milliseconds, the upper ends of its bins."""
    bins = [(float(upper) * 1000, int(count)) for upper, count in re.findall(r"[\d.]+ - ([\d.]+): +(\d+)", text)]
    total = sum(count for _, count in bins)

    def at(percent: float) -> float:
        seen = 0
        for upper_ms, count in bins:
            seen += count
            if seen >= percent / 100 * total:
                return upper_ms
        return math.nan

    return at


def against_stall(hosts: Pair) -> None:
    print(f"\nA stall of {STALL_MS} ms every {STALL_EVERY_MS} ms, {STALL_QPS:,} queries/s: ms at each percentile")
    summary = hosts.load(f"--rate={STALL_QPS}", f"--duration-s={DURATION_S}")
    dnsperf = hosts.peer(
        "dnsperf", "-s", str(hosts.reflector.address), "-d", "/mnt/queries.txt", "-Q", str(STALL_QPS), "-c", "16",
        "-l", str(DURATION_S), "-O", "latency-histogram",
    )  # fmt: skip
    theirs = histogram(dnsperf)
    for percent, name in ((50, "p50"), (90, "p90"), (99, "p99"), (99.9, "p99_9")):
        # Queries due in a stall wait for its end: a share s of all, with waits spread evenly from 0 to the stall's
        # length.
        share = STALL_MS / STALL_EVERY_MS * 100
        by_hand = max(0.0, (percent - (100 - share)) / share * STALL_MS)
        print(
            f"  p{percent:<6g}by hand {by_hand:8.2f}   load {summary['latency_ns'][name] / 1e6:8.2f}   dnsperf {theirs(percent):8.2f}"
        )
    mean = re.search(r"Average Latency \(s\): +([\d.]+)", dnsperf)
    theirs_ms = float(mean[1]) * 1000 if mean else math.nan
    by_hand, ours = STALL_MS**2 / STALL_EVERY_MS / 2, summary["latency_ns"]["mean"] / 1e6
    print(f"  mean   by hand {by_hand:8.2f}   load {ours:8.2f}   dnsperf {theirs_ms:8.2f}")


def stand_still(load: Process) -> None:
    for _ in range(STOPS):
        time.sleep(BETWEEN_STOPS_MS / 1000)
        load.popen.send_signal(signal.SIGSTOP)
        time.sleep(STOP_MS / 1000)
        load.popen.send_signal(signal.SIGCONT)


def both_ends(hosts: Pair) -> None:
    options = (f"--rate={STALL_QPS}", f"--duration-s={DURATION_S}")
    before, found, after = (hosts.load(*options, meanwhile=one) for one in (None, stand_still, None))
    for name in ("p50", "p90", "p99", "p99_9"):
        lower, upper = (found[series][name] / 1e6 for series in ("lower_latency_ns", "latency_ns"))
        # Two runs never agree to the microsecond: the truth is known to their difference.
        least, most = sorted(one["sent_latency_ns"][name] / 1e6 for one in (before, after))
        holds = "yes" if lower <= most and least <= upper else "NO"
        print(f"    {name:6s} {lower:9.3f} ≤ {least:9.3f}..{most:<9.3f} ≤ {upper:9.3f}   {holds}")


def against_lateness(hosts: Pair) -> None:
    print(
        f"\n`load` stopped {STOPS} times for {STOP_MS} ms, {STALL_QPS:,} queries/s: lower end, truth (not stopped, before and after), upper end, ms"
    )
    for faults in sized(STOPPED_WITH, smoke=STOPPED_WITH[-1:]):
        print(f"  echo {' '.join(faults)}")
        with hosts.echo(*faults):
            both_ends(hosts)


def lag(hosts: Pair) -> None:
    print(f"\nSend lag at {LAG_QPS:,} queries/s from one core, µs; target p99 < 100")
    found = [hosts.load(f"--rate={LAG_QPS}", f"--duration-s={DURATION_S}") for _ in range(ROUNDS)]
    for name in ("p50", "p99", "p99_9", "max"):
        print(f"  {name:6s}{spread([one['lag_ns'][name] / 1000 for one in found])}")
    print(
        f"  unsent {[one['unsent'] for one in found]}, unanswered {[one['timeouts'] for one in found]}, busy {spread([one['busy_share'] for one in found])}"
    )


def main() -> None:
    wanted = parts(__doc__, ("capture", "stall", "lateness", "lag"))
    with pair() as hosts:
        if "capture" in wanted:
            with hosts.echo("--delay", "10ms"):
                against_capture(hosts)
        if "stall" in wanted:
            with hosts.echo(*STALL):
                against_stall(hosts)
        if "lateness" in wanted:
            against_lateness(hosts)
        if "lag" in wanted:
            with hosts.echo():
                lag(hosts)


if __name__ == "__main__":
    main()
