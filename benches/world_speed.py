"""What an answer of a simulated Internet costs, signed and not, and what a million zones take.

All zones of the small world are signed with P-256 and are of one hoster, so that one address is asked for all of them;
`load` asks on CPU 0 as fast as the server answers, and `serve world` has CPU 1. Rates are a second of the server's CPU,
with the kernel's work for it. Targets come from a resolver's load: its misses, and a cold start.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

from pair import Cost, Pair, interleaved, pair, spread
from smoke import parser, sized

from dnsrig import paths
from dnsrig.lab.addresses import INTERNET

ROUNDS = sized(5, smoke=1)
DURATION_S = sized(3, smoke=1)
OUTSTANDING = 100
ZONES, MANY_ZONES = sized(5_000, smoke=100), sized(1_000_000, smoke=1_000)
ALL_SIGNED = (
    "signing.share=1.0", "signing.tlds.signed=1.0", "signing.zones.p256=1.0", "signing.zones.ed25519=0.0",
)  # fmt: skip
ONE_HOSTER = ("hosting.hosters=1", "zones.in_bailiwick=0.0")
CASES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "without DO": ((), ()),
    "kept signatures": ((), ("--dnssec-ok",)),
    "signatures made anew": (("--signature-cache-mib", "0"), ("--dnssec-ok",)),
    "reproducible ones": (("--signature-cache-mib", "0", "--reproducible"), ("--dnssec-ok",)),
}
"""Title -> options of `serve world`, options of `load`."""
TARGETS = {"kept signatures": 100_000, "signatures made anew": 20_000}
READY_MOST_S, RESIDENT_MOST_BYTES = 10, 2 << 30


def engine(*words: str) -> list[dict[str, Any]]:
    """What a subcommand says."""
    text = subprocess.run([str(paths.engine()), *words], check=True, stdout=subprocess.PIPE, text=True).stdout
    return [json.loads(line) for line in text.splitlines()]


def make(folder: Path, zones: int, *fields: str) -> Path:
    spec = folder / f"{zones}.toml"
    words = [f"--set={field}" for field in fields]
    engine("generate", "world", f"--out={spec}", f"--names-out={folder / 'names'}", f"--zones={zones}", *words)
    return spec


def write_queries(pair: Pair) -> str:
    """For the address of each signed zone; returns one of them."""
    lines = (pair.folder / "names").read_text().splitlines()
    zones = [name for line in lines for name, _, types in [line.split("\t")] if "DNSKEY" in types]
    pair.queries.write_text("".join(f"{zone} A\n" for zone in zones))
    return zones[0]


def costs(pair: Pair) -> None:
    spec = make(pair.folder, ZONES, *ALL_SIGNED, *ONE_HOSTER)
    explained = engine("serve", "world", str(spec), "--explain", write_queries(pair))[0]
    address = explained["levels"][-1]["servers"][0]["ipv4"]

    def measure(title: str) -> Cost:
        serve, ask = CASES[title]
        out = pair.folder / "out"
        with pair.serving([str(paths.engine()), "serve", "world", str(spec), f"--out={out}", "--threads=1", *serve]):
            asked = ["load", address, f"--queries={pair.queries}", f"--outstanding={OUTSTANDING}", *ask]
            # Each query once, and more: what can be kept is kept.
            pair.events(*asked, "--duration-s=1")
            return pair.cost(lambda: work(pair, [*asked, f"--duration-s={DURATION_S}"]))

    found = interleaved(ROUNDS, list(CASES), measure)
    print(f"answers of a world, UDP, {ZONES:,} zones signed with P-256, {ROUNDS} rounds: median [range]")
    for title, each in found.items():
        rates = [1e9 / (cost.pair_ns - cost.instrument_ns) for cost in each]
        bytes_each = each[0].details["bytes_received"] / each[0].queries
        target = f"  target {TARGETS[title]:,}" if title in TARGETS else ""
        print(f"  {title:24s}{spread(rates):>36s} a second of its CPU, {bytes_each:.0f} bytes each{target}")


def work(pair: Pair, asked: list[str]) -> tuple[float, float, dict[str, Any]]:
    summary = pair.events(*asked)[-1]
    assert set(summary["rcodes"]) == {"NOERROR"}, summary["rcodes"]
    return summary["answered"], summary["duration_s"], summary


def many(folder: Path) -> None:
    """How long until a world with a million zones answers, and its memory then."""
    spec = make(folder, MANY_ZONES, "signing.share=0.93", "signing.tlds.signed=1.0")
    words = ["serve", "world", str(spec), f"--out={folder / 'many'}", "--port=5300", "--threads=1", "--until-eof"]
    began_s = time.monotonic()
    with subprocess.Popen(
        [str(paths.engine()), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        ready = next(event for line in server.stdout if (event := json.loads(line))["event"] == "ready")
        took_s = time.monotonic() - began_s
        status = Path(f"/proc/{server.pid}/status").read_text()
        server.stdin.close()
        server.stdout.read()
    resident = int(status.partition("VmRSS:")[2].split()[0]) * 1024
    print(
        f"{ready['zones']:,} zones, 93 % signed: ready after {took_s:.1f} s (target {READY_MOST_S}), {resident / 1e6:.0f} MB resident"
    )
    assert resident < RESIDENT_MOST_BYTES


def main() -> None:
    parser(__doc__).parse_args()
    with pair(server_ranges=[str(INTERNET.ipv4)]) as hosts:
        costs(hosts)
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
        many(hosts.folder)


if __name__ == "__main__":
    main()
