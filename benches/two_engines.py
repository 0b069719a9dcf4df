"""What the hot paths of two engines cost: CPU a query and a record of `load`, `serve echo`, `transfer`, `serve zones`;
one before a change, one after.

    python benches/two_engines.py BEFORE AFTER

Both ends are the same engine's. The engines take turns, several rounds in shuffled order; a ratio is AFTER's to
BEFORE's.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from load_speed import CLIENTS, OUTSTANDING, load
from pair import Cost, Pair, interleaved, pair, ratios, spread
from smoke import SMOKE, add_parts, parser, sized
from transfer_speed import PEERS_RECORDS, transfer

from dnsrig import paths

ROUNDS = sized(5, smoke=1)
SMALL_ZONES = sized(200_000, smoke=1_000)
CLOSED = (f"--outstanding={OUTSTANDING}", f"--clients={CLIENTS}")


def queries(hosts: Pair, transport: str) -> Cost:
    with hosts.echo("--transport", "udp,tcp,dot"):
        return hosts.cost(lambda: load(hosts, *CLOSED, f"--transport={transport}"))


def zone(hosts: Pair) -> Cost:
    with hosts.zones("--count=1", f"--records={PEERS_RECORDS}"):
        return hosts.cost(lambda: transfer(hosts, "--zone", "z000000.example"))


def small_zones(hosts: Pair) -> Cost:
    with hosts.zones(f"--count={SMALL_ZONES}", "--records=2"):
        return hosts.cost(
            lambda: transfer(hosts, f"--count={SMALL_ZONES}", "--suffix=example", "--window=1000", counted="done")
        )


WORKS: dict[str, tuple[str, str, str, Callable[[Pair], Cost]]] = {
    "udp": ("query over UDP", "load", "serve echo", lambda hosts: queries(hosts, "udp")),
    "tcp": ("query over TCP", "load", "serve echo", lambda hosts: queries(hosts, "tcp")),
    "dot": ("query over DoT", "load", "serve echo", lambda hosts: queries(hosts, "dot")),
    "zone": ("record of one zone", "transfer", "serve zones", zone),
    "small-zones": ("zone of two records", "transfer", "serve zones", small_zones),
}


def compare(hosts: Pair, name: str, engines: dict[str, Path]) -> None:
    what, client, server, work = WORKS[name]

    def measure(which: str) -> Cost:
        os.environ["DNSRIG_ENGINE"] = str(engines[which])
        return work(hosts)

    costs: dict[str, list[Cost]] = interleaved(ROUNDS, list(engines), measure)
    for program in (client, server):
        before, after = ([_ns(cost, program == server) for cost in costs[which]] for which in ("before", "after"))
        each = f"{spread(before):>24s} → {spread(after):>24s} ns CPU"
        print(f"  {what:20s} {program:12s} {each}: {spread(ratios(after, before), 2)}", flush=True)


def _ns(cost: Cost, of_server: bool) -> float:
    return cost.pair_ns - cost.instrument_ns if of_server else cost.instrument_ns


def main() -> None:
    asking = parser(__doc__)
    for which in ("before", "after"):
        asking.add_argument(which, nargs=sized(None, smoke="?"), type=Path, default=paths.engine() if SMOKE else None)
    add_parts(asking, WORKS)
    asked = asking.parse_args()
    engines = {"before": asked.before.resolve(), "after": asked.after.resolve()}
    print(f"{ROUNDS} rounds: median [range], before → after: after as a share of before")
    with pair() as hosts:
        for name in asked.parts:
            compare(hosts, name, engines)


if __name__ == "__main__":
    main()
