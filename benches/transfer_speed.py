"""What a transfer costs `transfer` and its peers, what the synthetic primary can give, and how near a path's rate both
come.

Every record that comes is parsed and counted, by all tools but iperf3, which takes bytes. Tools take turns, several
rounds in shuffled order. CPU time is measured for the whole host, so the kernel's work counts. The primary has CPU 1
for itself, the instrument CPU 0.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from pair import Cost, Pair, interleaved, pair, ratios, spread
from pyroute2 import NetNS
from smoke import parts, sized

ROUNDS = sized(5, smoke=1)
ZONES = sized(1_000_000, smoke=1_000)
LARGE_RECORDS = sized(5_000_000, smoke=20_000)
PEERS_RECORDS = sized(1_000_000, smoke=20_000)
MANY = sized(10_000_000, smoke=10_000)
"""Zones or records, to measure memory."""
SECONDARIES = sized(1_000, smoke=10)
ZONES_OF_EACH = 100
IPERF_S = sized(4, smoke=1)
SHAPED_GBITS = (1, 5)
NAME = "z000000.example"
Work = tuple[float, float, dict[str, Any]]


def transfer(hosts: Pair, *options: str, counted: str = "records") -> Work:
    summary = hosts.engine("transfer", *options)
    if summary["failed"]:
        raise RuntimeError(f"not all was transferred: {summary['outcomes']}")
    return summary[counted], summary["elapsed_ns"] / 1e9, summary


def kdig(hosts: Pair) -> Work:
    text = hosts.peer("kdig", f"@{hosts.reflector.address}", NAME, "AXFR", "+tcp", "+timeout=60")
    return _records(text), _found(r"in ([\d.]+) (m?s)", text), {}


def dig(hosts: Pair) -> Work:
    text = hosts.peer("dig", f"@{hosts.reflector.address}", NAME, "AXFR", "+time=60")
    return _records(text), _found(r"Query time: ([\d.]+) (m?)sec", text), {}


def _records(text: str) -> float:
    return sum(1 for line in text.splitlines() if line and not line.startswith(";"))


def _found(pattern: str, text: str) -> float:
    match = re.search(pattern, text)
    if match is None:
        raise RuntimeError(f"no {pattern!r} in {text[-500:]}")
    return float(match[1]) / (1000 if match[2].startswith("m") else 1)


def unshaped(hosts: Pair) -> None:
    """One large zone, as fast as the pair of CPUs can: CPU a record of each tool's host."""
    one = ("--zone", NAME)
    with hosts.zones("--count=1", f"--records={PEERS_RECORDS}"):
        tools: dict[str, Callable[[], Work]] = {
            "transfer": lambda: transfer(hosts, *one),
            "kdig": lambda: kdig(hosts),
            "dig": lambda: dig(hosts),
        }
        costs: dict[str, list[Cost]] = interleaved(ROUNDS, list(tools), lambda tool: hosts.cost(tools[tool]))
    print(f"\nOne zone of {PEERS_RECORDS:,} records, unshaped, {ROUNDS} rounds: median [range]")
    for tool, found in costs.items():
        line = f"  {tool:12s}{spread([1e9 / c.rate for c in found]):>28s} ns a record, {spread([c.instrument_ns for c in found]):>28s} ns CPU"
        if tool != "transfer":
            share = ratios([c.instrument_ns for c in costs["transfer"]], [c.instrument_ns for c in found])
            line += f"; transfer's is {spread(share, 2)} of it; target ≤ 0.2"
        print(line, flush=True)


def tiny(hosts: Pair) -> None:
    """Many of the smallest zones on one connection, window wide open, one CPU each."""
    with hosts.zones(f"--count={ZONES}", "--records=2") as server:

        def measure(_: str) -> tuple[Cost, float]:
            cost = hosts.cost(
                lambda: transfer(hosts, f"--count={ZONES}", "--suffix=example", "--window=0", counted="done")
            )
            return cost, _resident_mb(server.pid)

        found = interleaved(ROUNDS, ["transfer"], measure)["transfer"]
    costs, resident = [cost for cost, _ in found], [mb for _, mb in found]
    # By elapsed time, because the instrument's CPU time includes the making of the list of names.
    shares = [1e9 / cost.rate / (cost.pair_ns - cost.instrument_ns) for cost in costs]
    busy = [cost.details["busy_share"] for cost in costs]
    print(f"\n{ZONES:,} zones of two records, pipelined on one connection, {ROUNDS} rounds: median [range]")
    print(f"  {spread([c.rate for c in costs])} zones/s; target ≥ 500,000")
    print(
        f"  CPU a zone: transfer {spread([c.instrument_ns for c in costs])} ns, serve zones {spread([c.pair_ns - c.instrument_ns for c in costs])} ns"
    )
    print(f"  transfer was busy {spread(busy)} of the time")
    print(f"  what serve zones could send, as multiple of what transfer takes: {spread(shares)}; target ≥ 2")
    print(f"  memory of serve zones after each round: {spread(resident)} MB", flush=True)


def memory(hosts: Pair) -> None:
    """Resident memory of the synthetic primary after a transfer out of few and of many zones, small and large."""
    print("\nMemory of serve zones after transfers, MB")
    for options, what in (
        (("--count=1000", "--records=2"), ("--count=1000", "--suffix=example")),
        ((f"--count={MANY}", "--records=2"), (f"--count={MANY // 10}", "--suffix=example")),
        (("--count=1", f"--records={MANY}"), ("--zone", NAME)),
    ):
        with hosts.zones(*options) as server:
            transfer(hosts, *what)
            print(f"  {' '.join(options):36s}{_resident_mb(server.pid):8.1f}", flush=True)


def _resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return float(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]


@contextmanager
def shaped(hosts: Pair, gbits: int) -> Iterator[None]:
    """The primary's side of the link sends at most so much (tc-tbf(8))."""
    rate = gbits * 1_000_000_000 // 8
    with NetNS(hosts.reflector.namespace) as route:
        link = route.link_lookup(ifname="instrument")[0]
        # The burst holds what comes due in 2 ms and some of the kernel's largest packets; the queue 20 ms.
        burst, limit = max(rate // 500, 262_144), rate // 50
        bucket = {"handle": 0x10000, "parent": 0xFFFFFFFF, "rate": rate, "burst": burst, "limit": limit}
        route.tc("add", "tbf", link, **bucket)
        try:
            yield
        finally:
            route.tc("del", "tbf", link, **bucket)


def rates(hosts: Pair) -> None:
    for gbits in SHAPED_GBITS:
        rate(hosts, gbits)


def rate(hosts: Pair, gbits: int) -> None:
    """One large zone over a shaped path, beside what iperf3 brings over it."""
    address = str(hosts.reflector.address)
    tools: dict[str, Callable[[], float]] = {
        "transfer": lambda: byte_rate(transfer(hosts, "--zone", NAME, counted="bytes")),
        "iperf3": lambda: hosts.iperf(address, duration_s=IPERF_S) / 8,
    }
    records = f"--records={LARGE_RECORDS * gbits}"
    with shaped(hosts, gbits), hosts.zones("--count=1", records), hosts.iperf_server("--bind", address):
        found = interleaved(ROUNDS, list(tools), lambda tool: tools[tool]())
    print(f"\nOne large zone over a path of {gbits} Gbit/s, every record counted, {ROUNDS} rounds: median [range]")
    for tool, values in found.items():
        print(f"  {tool:12s}{spread([value * 8 / 1e9 for value in values]):>28s} Gbit/s")
    share = ratios(found["transfer"], found["iperf3"])
    print(f"  transfer / iperf3: {spread(share)}; target ≥ 0.95", flush=True)


def byte_rate(work: Work) -> float:
    nbytes, duration_s, _ = work
    return nbytes / duration_s


def secondaries(hosts: Pair) -> None:
    """So many secondaries at once from one process, each with an address of its own."""
    sources = f"--source={first_source()}-{first_source() + SECONDARIES - 1}"
    with hosts.zones(f"--count={ZONES_OF_EACH}", "--records=4"):
        found = [
            transfer(
                hosts,
                f"--count={ZONES_OF_EACH}",
                "--suffix=example",
                f"--secondaries={SECONDARIES}",
                sources,
                counted="done",
            )
            for _ in range(ROUNDS)
        ]
    print(
        f"\n{SECONDARIES:,} secondaries at once, each an address and {ZONES_OF_EACH} zones, {ROUNDS} rounds: median [range]"
    )
    print(f"  {spread([count / duration_s for count, duration_s, _ in found])} zones/s")
    connections = statistics.median([details["connections"]["established"] for _, _, details in found])
    print(f"  {connections:,.0f} connections, done {found[-1][0]:,}", flush=True)


def first_source() -> IPv4Address:
    return IPv4Address("198.18.100.1")


def main() -> None:
    known = {part.__name__: part for part in (unshaped, tiny, memory, rates, secondaries)}
    wanted = parts(__doc__, known)
    sources = [str(first_source() + number) for number in range(SECONDARIES)]
    with pair(sources if "secondaries" in wanted else []) as hosts:
        for name in wanted:
            known[name](hosts)


if __name__ == "__main__":
    main()
