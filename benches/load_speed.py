"""What a query costs `load` and its peers: CPU a query over UDP, TCP and TLS, and new connections a second.

Each tool loads the same reflector over the same link, in turn, several rounds in shuffled order. CPU time is
measured for the whole host, so it includes the kernel's work in softirqs. Targets are ratios: below them, `load` is
better.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pair import Cost, Pair, interleaved, pair, ratios, spread
from smoke import parts, sized

ROUNDS = sized(5, smoke=1)
DURATION_S = sized(4, smoke=1)
OUTSTANDING = 100
CLIENTS = 16
Work = tuple[float, float, dict[str, Any]]


def load(pair: Pair, *options: str) -> Work:
    summary = pair.load("--duration-s", str(DURATION_S), *options)
    return summary["answered"], summary["duration_s"], summary


def dnsperf(pair: Pair, mode: str, *options: str) -> Work:
    port = "853" if mode == "dot" else "53"
    text = pair.peer(
        "dnsperf", "-s", str(pair.reflector.address), "-p", port, "-m", mode, "-d", "/mnt/queries.txt",
        "-q", str(OUTSTANDING), "-c", str(CLIENTS), "-l", str(DURATION_S), *options,
    )  # fmt: skip
    answered = float(_found(r"Queries completed:\s+(\d+)", text))
    return answered, float(_found(r"Run time \(s\):\s+([\d.]+)", text)), {"text": text}


def kxdpgun(pair: Pair, rate: int) -> Work:
    text = pair.peer(
        "kxdpgun", "-T", "-t", str(DURATION_S), "-Q", str(rate), "-i", "/mnt/queries.txt", str(pair.reflector.address)
    )
    return float(_found(r"total replies:\s+(\d+)", text)), DURATION_S, {"text": text}


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    if match is None:
        raise RuntimeError(f"no {pattern!r} in {text[-800:]}")
    return match[1]


def compare(pair: Pair, title: str, tools: dict[str, Callable[[], Work]], target: dict[str, float]) -> None:
    """CPU a query of every tool, and of all but the last relative to the last, which is the peer."""
    costs: dict[str, list[Cost]] = interleaved(ROUNDS, list(tools), lambda tool: pair.cost(tools[tool]))
    print(f"\n{title}, {ROUNDS} rounds: median [range]")
    peer = list(tools)[-1]
    for tool, found in costs.items():
        line = f"  {tool:28s}{spread([c.instrument_ns for c in found]):>28s} ns CPU a query, pair {spread([c.pair_ns for c in found]):>28s}, {spread([c.rate for c in found]):>36s} /s"
        if tool != peer:
            by_instrument = ratios([c.instrument_ns for c in found], [c.instrument_ns for c in costs[peer]])
            by_pair = ratios([c.pair_ns for c in found], [c.pair_ns for c in costs[peer]])
            line += f"  = {spread(by_instrument, 2)} of {peer}, pair {spread(by_pair, 2)}; target ≤ {target[tool]}"
        print(line, flush=True)


def connections(pair: Pair) -> None:
    tools: dict[str, Callable[[], Work]] = {
        "load": lambda: load(pair, "--transport=tcp", "--queries-per-connection=1", f"--outstanding={OUTSTANDING}", f"--clients={OUTSTANDING}"),
        "kxdpgun -T": lambda: kxdpgun(pair, 100_000),
        "dnsperf": lambda: dnsperf(pair, "tcp", "-O", "num-queries-per-conn=1"),
    }  # fmt: skip
    costs: dict[str, list[Cost]] = interleaved(ROUNDS, list(tools), lambda tool: pair.cost(tools[tool]))
    print(f"\nTCP, one query a connection, {ROUNDS} rounds: median [range]")
    for tool, found in costs.items():
        print(
            f"  {tool:28s}{spread([c.rate for c in found]):>36s} connections/s, {spread([c.instrument_ns for c in found])} ns CPU each"
        )
    print(
        f"  load / dnsperf: {spread(ratios([c.rate for c in costs['load']], [c.rate for c in costs['dnsperf']]))}; target ≥ 10"
    )


def main() -> None:
    wanted = parts(__doc__, ("udp", "tcp", "dot", "connections"))
    with pair() as hosts, hosts.echo("--transport", "udp,tcp,dot"):
        closed = (f"--outstanding={OUTSTANDING}", f"--clients={CLIENTS}", "--edns=0", "--recursion-desired")
        if "udp" in wanted:
            tools: dict[str, Callable[[], Work]] = {
                "load, plain sockets": lambda: load(hosts, *closed, "--segmentation=off"),
                "load, UDP_SEGMENT": lambda: load(hosts, *closed),
                "dnsperf": lambda: dnsperf(hosts, "udp"),
            }
            compare(hosts, "UDP", tools, {"load, plain sockets": 0.6, "load, UDP_SEGMENT": 0.5})
        for mode in ("tcp", "dot"):
            if mode in wanted:
                tools = {
                    "load": lambda mode=mode: load(hosts, *closed, f"--transport={mode}"),  # type: ignore[misc]
                    "load, 16 queries a write": lambda mode=mode: load(
                        hosts, *closed, f"--transport={mode}", "--burst=16"
                    ),  # type: ignore[misc]
                    "dnsperf": lambda mode=mode: dnsperf(hosts, mode),  # type: ignore[misc]
                }
                compare(hosts, mode.upper(), tools, {"load": 0.67, "load, 16 queries a write": 0.67})
        if "connections" in wanted:
            connections(hosts)


if __name__ == "__main__":
    main()
