"""What a query costs `load` and its peers: CPU a query over UDP, TCP, DoT, DoH and DoQ, and new connections a second.

Each tool loads the same reflector over the same link, in turn, several rounds in shuffled order. CPU time is
measured for the whole host, so it includes the kernel's work in softirqs. Targets are ratios: below them, `load` is
better. Over DoQ `load` is alone: dnspyre, the only peer with many queries a connection, is not in Debian. kxdpgun opens
a connection for each query over QUIC.

The part `handshakes` compares the CPU time of a full TLS handshake, on both sides together, with what its arithmetic
needs by itself, as `openssl speed` measures it on the same CPU: one signature (ECDSA P-256), its verification, and on
each side a key and an agreement (X25519).
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
    port = {"dot": "853", "doh": "443"}.get(mode, "53")
    text = pair.peer(
        "dnsperf", "-s", str(pair.reflector.address), "-p", port, "-m", mode, "-d", "/mnt/queries.txt",
        "-q", str(OUTSTANDING), "-c", str(CLIENTS), "-l", str(DURATION_S), *options,
    )  # fmt: skip
    answered = float(_found(r"Queries completed:\s+(\d+)", text))
    return answered, float(_found(r"Run time \(s\):\s+([\d.]+)", text)), {"text": text}


def kxdpgun(pair: Pair, mode: str, rate: int) -> Work:
    text = pair.peer(
        "kxdpgun", mode, "-t", str(DURATION_S), "-Q", str(rate), "-i", "/mnt/queries.txt", str(pair.reflector.address)
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


def connections(pair: Pair, title: str, tools: dict[str, Callable[[], Work]], target: str) -> dict[str, list[Cost]]:
    """Connections a second of every tool, with one query each, and the ratio of the first tool to each other one."""
    costs: dict[str, list[Cost]] = interleaved(ROUNDS, list(tools), lambda tool: pair.cost(tools[tool]))
    print(f"\n{title}, one query a connection, {ROUNDS} rounds: median [range]")
    for tool, found in costs.items():
        print(
            f"  {tool:28s}{spread([c.rate for c in found]):>36s} connections/s, {spread([c.instrument_ns for c in found])} ns CPU each"
        )
    first, *others = tools
    for other in others:
        if not all(cost.queries for cost in costs[other]):
            print(f"  {other} had no answers, so it is not compared")
            continue
        by_rate = ratios([c.rate for c in costs[first]], [c.rate for c in costs[other]])
        print(f"  {first} / {other}: {spread(by_rate)}; target {target}", flush=True)
    return costs


def handshakes(pair: Pair) -> None:
    """Full TLS handshakes, beside their arithmetic."""
    words = ("openssl", "speed", "-seconds", str(sized(2, smoke=1)), "ecdsap256", "ecdhx25519")
    rate = one_query(pair, "--transport=dot", "--no-resumption")
    costs: dict[str, list[Any]] = interleaved(
        ROUNDS, ["load", "openssl"], lambda tool: pair.cost(rate) if tool == "load" else pair.peer(*words)
    )
    of_arithmetic = [_arithmetic_ns(text) for text in costs["openssl"]]
    of_handshakes = [cost.pair_ns for cost in costs["load"]]
    print(f"\nDoT, full handshakes, {ROUNDS} rounds: median [range]")
    print(f"  load and serve echo: {spread([c.rate for c in costs['load']])} /s, {spread(of_handshakes)} ns CPU each")
    print(f"  arithmetic alone, by openssl speed: {spread(of_arithmetic)} ns CPU each")
    print(f"  share of the arithmetic: {spread(ratios(of_arithmetic, of_handshakes))}; target ≥ 0.6", flush=True)


def _arithmetic_ns(text: str) -> float:
    """CPU time of the arithmetic of a handshake on both sides, in ns, from what `openssl speed` printed."""
    sign, verify = (
        float(_found(pattern, text)) for pattern in (r"nistp256\).*s\s+([\d.]+)\s+[\d.]+", r"nistp256\).*\s([\d.]+)\n")
    )
    agree = float(_found(r"X25519\).*\s([\d.]+)\n", text))
    return 1e9 * (1 / sign + 1 / verify + 4 / agree)


def one_query(pair: Pair, *options: str) -> Callable[[], Work]:
    """A load whose connections have one query each."""
    many = ("--queries-per-connection=1", f"--outstanding={OUTSTANDING}", f"--clients={OUTSTANDING}")
    return lambda: load(pair, *many, *options)


def main() -> None:
    wanted = parts(__doc__, ("udp", "tcp", "dot", "doh", "doq", "connections", "quic", "handshakes"))
    with pair() as hosts, hosts.echo("--transport", "udp,tcp,dot,doh,doq"):
        closed = (f"--outstanding={OUTSTANDING}", f"--clients={CLIENTS}", "--edns=0", "--recursion-desired")
        if "udp" in wanted:
            tools: dict[str, Callable[[], Work]] = {
                "load, plain sockets": lambda: load(hosts, *closed, "--segmentation=off"),
                "load, UDP_SEGMENT": lambda: load(hosts, *closed),
                "dnsperf": lambda: dnsperf(hosts, "udp"),
            }
            compare(hosts, "UDP", tools, {"load, plain sockets": 0.6, "load, UDP_SEGMENT": 0.5})
        for mode, share in (("tcp", 0.67), ("dot", 0.67), ("doh", 0.6)):
            if mode in wanted:
                tools = {
                    "load": lambda mode=mode: load(hosts, *closed, f"--transport={mode}"),  # type: ignore[misc]
                    "load, 16 queries a write": lambda mode=mode: load(
                        hosts, *closed, f"--transport={mode}", "--burst=16"
                    ),  # type: ignore[misc]
                    "dnsperf": lambda mode=mode: dnsperf(hosts, mode),  # type: ignore[misc]
                }
                compare(hosts, mode.upper(), tools, {"load": share, "load, 16 queries a write": share})
        if "doq" in wanted:
            alone = {"load": lambda: load(hosts, *closed, "--transport=doq")}
            compare(hosts, "DOQ", alone, {})
        if "connections" in wanted:
            tools = {
                "load": one_query(hosts, "--transport=tcp"),
                "kxdpgun -T": lambda: kxdpgun(hosts, "-T", 100_000),
                "dnsperf": lambda: dnsperf(hosts, "tcp", "-O", "num-queries-per-conn=1"),
            }
            connections(hosts, "TCP", tools, "≥ 1 of kxdpgun's, ≥ 10 of dnsperf's")
        if "quic" in wanted:
            for title, option, mode in (("resumed", "", "-U"), ("full handshakes", "--no-resumption", "-U0")):
                tools = {
                    "load": one_query(hosts, "--transport=doq", *([option] if option else [])),
                    f"kxdpgun {mode}": lambda mode=mode: kxdpgun(hosts, mode, 20_000),  # type: ignore[misc]
                }
                connections(hosts, f"DoQ, {title}", tools, "≥ 1")
        if "handshakes" in wanted:
            handshakes(hosts)


if __name__ == "__main__":
    main()
