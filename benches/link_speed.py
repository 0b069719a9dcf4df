"""What an emulated path costs and how exact it is: throughput, the CPU of `link`, how late packets leave; beside veth.

iperf3 sends one TCP flow (cubic) from the reflector's host, on CPU 1, to the instrument's, on CPU 0; `link` may use
both, but has one thread. The kernel's work for packets that it delivers, so the receiver's TCP, is done in its time and
counts as its CPU.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

from pair import START_LIMIT_S, Pair, interleaved, pair, spread
from pyroute2 import NetNS
from smoke import parts, sized

from dnsrig import paths

ROUNDS = sized(5, smoke=1)
IPERF_S = sized(5, smoke=1)
INTERFACE = "far"
NEAR, FAR = "198.18.4.1", "198.18.4.2"
"""The instrument's and the reflector's addresses on the emulated path."""
RATES_MBIT = (20, 200)
DELAY_MS = 10
CPU_SHARE_MAX = 0.5


class Link:
    """A running `link`, from the reflector's host (there) to the instrument's."""

    def __init__(self, hosts: Pair, spec: str, folder: Path) -> None:
        self.events = folder / "link.jsonl"
        ends = [f"{host.namespace_path},{INTERFACE}" for host in (hosts.reflector, hosts.instrument)]
        command = [str(paths.engine()), "link", "--left", ends[0], "--right", ends[1], "--until-eof"]
        with self.events.open("w") as output:
            self.popen = subprocess.Popen(
                [*command, "--forward", spec, "--reverse", spec], stdin=subprocess.PIPE, stdout=output
            )
        os.sched_setaffinity(self.popen.pid, {0, 1})
        limit_s = time.monotonic() + START_LIMIT_S
        while '"ready"' not in self.events.read_text():
            if self.popen.poll() is not None or time.monotonic() > limit_s:
                self.popen.kill()
                raise RuntimeError(f"link ended, or was not ready in {START_LIMIT_S:g} s")
            time.sleep(0.01)
        for host, address, peer in ((hosts.reflector, FAR, NEAR), (hosts.instrument, NEAR, FAR)):
            with NetNS(host.namespace) as route:
                index = route.link_lookup(ifname=INTERFACE)[0]
                route.addr("add", index=index, local=address, address=peer, prefixlen=32)
                route.link("set", index=index, state="up")

    def cpu_s(self) -> float:
        tasks = Path(f"/proc/{self.popen.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9

    def end(self) -> dict[str, Any]:
        """The summary."""
        self.popen.communicate()
        found: dict[str, Any] = json.loads(self.events.read_text().splitlines()[-1])
        return found


def iperf(hosts: Pair, address: str) -> float:
    """Bits a second of one flow under cubic."""
    return hosts.iperf(address, "--congestion", "cubic", duration_s=IPERF_S)


def over_link(hosts: Pair, spec: str) -> tuple[float, float, dict[str, Any]]:
    """Bits a second, the CPU that `link` used a second, and its summary."""
    link = Link(hosts, spec, hosts.folder)
    try:
        before_s = link.cpu_s()
        rate = iperf(hosts, FAR)
        used_s = link.cpu_s() - before_s
    finally:
        summary = link.end()
    return rate, used_s / IPERF_S, summary


def unshaped(hosts: Pair) -> None:
    """The highest throughput: over `link` without delay and rate, and over veth."""
    tools = {
        "link": lambda: over_link(hosts, "")[:2],
        "veth": lambda: (iperf(hosts, str(hosts.reflector.address)), 0.0),
    }
    found = interleaved(ROUNDS, list(tools), lambda tool: tools[tool]())
    print(f"\nOne TCP flow, unshaped, {ROUNDS} rounds of {IPERF_S} s: median [range]")
    for tool, values in found.items():
        line = f"  {tool:6s}{spread([rate / 1e9 for rate, _ in values]):>24s} Gbit/s"
        print(
            line + (f", CPU share of link {spread([cpu for _, cpu in values])}" if tool == "link" else ""), flush=True
        )


def rates(hosts: Pair) -> None:
    """At a rate: what gets through, what it costs, how late packets are."""
    print(f"\nOne TCP flow, {DELAY_MS} ms each way, {ROUNDS} rounds of {IPERF_S} s: median [range]")
    for mbit in RATES_MBIT:
        # A queue of 50 ms beside what is under way, in packets of 1,500 bytes.
        limit = mbit * (DELAY_MS + 50) * 1000 // 12_000
        spec = f"rate={mbit}mbit,delay={DELAY_MS}ms,limit={limit}"
        found = [over_link(hosts, spec) for _ in range(ROUNDS)]
        late = [summary["forward"]["late_ns"] for _, _, summary in found]
        print(f"  {mbit} Mbit/s: {spread([rate / 1e6 for rate, _, _ in found])} Mbit/s of TCP's payload")
        print(f"    CPU share of link {spread([cpu for _, cpu, _ in found])}; target at 200 Mbit/s ≤ {CPU_SHARE_MAX}")
        for percentile in ("p50", "p99", "p99.9"):
            print(f"    late, {percentile:5s} {spread([one[percentile] / 1e3 for one in late])} µs")
        missed = [summary[way]["missed"] for _, _, summary in found for way in ("forward", "reverse")]
        print(f"    missed {'unknown' if None in missed else sum(missed)}", flush=True)


def main() -> None:
    known = {part.__name__: part for part in (unshaped, rates)}
    wanted = parts(__doc__, known)
    with pair() as hosts, hosts.iperf_server():
        for name in wanted:
            known[name](hosts)


if __name__ == "__main__":
    main()
