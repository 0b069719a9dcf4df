"""When the packets of a replay leave: `replay play` beside dnsjit, drool, dnsreplay and tcpreplay, by rate.

    .venv/bin/python benches/replay_peers.py [PICTURE.png]

All replay the same queries, in files written here: a stream for `play`, a pcap for the others. tcpdump notes when each
packet arrives on the reflector's interface; a packet's *deviation* is that time less its time in the capture. Nobody
knows when a peer meant to begin, so each tool's median deviation counts as 0: that hides a constant delay, and no
jitter, burst or drift. Quartiles have a sign, percentiles are of the absolute value.

Peers are Debian packages, unpacked beside dnsrig's servers: dnsjit, drool, pdns-tools (dnsreplay), tcpreplay. One that
the suite lacks is left out.
"""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import altair as alt
import dpkt  # type: ignore[import-untyped]
import polars as pl
from load_accuracy import percentile
from pair import Pair, installed, interleaved, pair
from replay_lateness import (
    CLIENTS,
    CLIENTS_FROM,
    DURATION_S,
    HEADER,
    RATES_QPS,
    RECORD,
    give_clients_addresses,
    sent,
    write_stream,
)
from smoke import parser, scratch, sized

from dnsrig import paths
from dnsrig.confinement import BindMount, Confinement
from dnsrig.errors import DnsrigError
from dnsrig.lab import process
from dnsrig.lab.capture import capturing

ROUNDS = sized(3, smoke=1)
FIRST_CLIENT = ip_network(CLIENTS_FROM)[1]
LIMIT_S = 6 * DURATION_S
"""The time after which a tool is ended; what it sent counts."""
PACKAGES = {"dnsjit": "dnsjit", "drool": "drool", "dnsreplay": "pdns-tools", "tcpreplay": "tcpreplay"}
PLAY, REAL_TIME = "replay play", "replay play --real-time"
DNSJIT = """\
require("dnsjit.core.objects")
local input = require("dnsjit.input.mmpcap").new()
input:open("/mnt/capture.pcap")
local timing = require("dnsjit.filter.timing").new()
timing:realtime(1.0)
timing:producer(input)
local layer = require("dnsjit.filter.layer").new()
layer:producer(timing)
local output = require("dnsjit.output.udpcli").new()
output:connect("SERVER", "53")
local send, sending = output:receive()
local read, reading = layer:produce()
while true do
    local query = read(reading)
    if query == nil then break end
    if query:type() == "payload" then send(sending, query) end
end
"""
"""Paced as DNS Shotgun does: by the clock, each 128th packet."""
COMMANDS = {
    "dnsjit": ["dnsjit", "/mnt/replay.lua"],
    "drool": [
        "dnsjit",
        "/usr/bin/drool",
        "replay",
        "--timing",
        "keep",
        "--no-responses",
        "--no-tcp",
        "/mnt/capture.pcap",
        "SERVER",
        "53",
    ],
    "dnsreplay": ["dnsreplay", "--quiet", "1", "/mnt/capture.pcap", "SERVER", "53"],
    "tcpreplay": ["tcpreplay", "--intf1=reflector", "--preload-pcap", "--timer=gtod", "/mnt/capture.pcap"],
}
SHARES = [10 ** (-step / 8) for step in range(1, 33)]
"""Shares of the packets on the axis of the chart: down to one in 10,000."""
FEWEST = 10
"""The fewest packets behind a point of the chart."""
UNITS = ((10**9, "s"), (10**6, "ms"), (1000, "µs"))
LEAST_US = 0.3
"""The lower end of the chart: below it, the capture's resolution of 1 µs decides."""


def peers() -> dict[str, Path]:
    """The root file system of each tool that there is."""
    found = {}
    for tool, package in PACKAGES.items():
        try:
            root = installed(f"peer-{package}", package)
        except DnsrigError as error:
            print(f"without {tool}: {error}")
        else:
            found[tool] = root.path
            print(f"{tool}: {package} {root.packages[package]}: {' '.join(COMMANDS[tool])}")
    return found


def write_capture(hosts: Pair, stream: Path, path: Path) -> None:
    """The stream's queries as packets from the instrument to the reflector, with microseconds."""
    data, at = stream.read_bytes(), HEADER.size
    to, source = _mac(hosts.reflector.namespace, "instrument"), _mac(hosts.instrument.namespace, "reflector")
    with path.open("wb") as output:
        writer = dpkt.pcap.Writer(output)
        while at < len(data):
            due_ns, client, length, *_ = RECORD.unpack_from(data, at)
            message = data[at + RECORD.size : at + RECORD.size + length]
            at += (RECORD.size + length + 7) // 8 * 8
            udp = dpkt.udp.UDP(sport=1024 + client, dport=53, ulen=8 + length, data=message)
            address = (FIRST_CLIENT + client).packed
            ip = dpkt.ip.IP(src=address, dst=hosts.reflector.address.packed, p=dpkt.ip.IP_PROTO_UDP, data=udp)
            writer.writepkt_time(
                bytes(dpkt.ethernet.Ethernet(dst=to, src=source, data=ip)), Decimal(due_ns // 1000) / 10**6
            )


def _mac(namespace: str, device: str) -> bytes:
    shown = subprocess.run(["ip", "-n", namespace, "-j", "link", "show", device], capture_output=True, check=True)
    return bytes.fromhex(json.loads(shown.stdout)[0]["address"].replace(":", ""))


def deviations_ns(hosts: Pair, roots: dict[str, Path | None], dues: Sequence[int], tool: str) -> list[int]:
    """The deviation of each packet on the wire from its time in the capture, sorted; the median is 0."""
    file, log = hosts.folder / "wire.pcap", hosts.folder / "log.txt"
    binds = [BindMount(hosts.folder, "/mnt")]
    server, root = str(hosts.reflector.address), roots[tool]
    if root is None:
        command = [str(paths.engine()), "replay", "play", str(hosts.folder / "rate.stream"), f"--server={server}",
                   f"--clients-from={CLIENTS_FROM}", *tool.split()[2:]]  # fmt: skip
    else:
        command = [word.replace("SERVER", server) for word in COMMANDS[tool]]
    with log.open("w") as output, capturing(hosts.reflector, "instrument", "udp dst port 53", file) as capture:
        view: dict[str, Any] = {"confined": Confinement(root, binds, as_root=True)} if root else {}
        started = process.start("replay", hosts.instrument, command, stdout=output, stderr=output, **view)
        try:
            started.popen.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            started.stop()
    if capture.dropped != 0:
        raise RuntimeError(f"packets that tcpdump missed: {capture.dropped}")
    seen: dict[int, int] = {}
    for when_ns, number in sent(file):
        seen.setdefault(number, when_ns)
    if len(seen) < len(dues) // 100:
        raise RuntimeError(f"tcpdump saw {len(seen):,} of {len(dues):,} queries of {tool}: {log.read_text()[-1000:]}")
    offsets = [when_ns - dues[number] // 1000 * 1000 for number, when_ns in seen.items()]
    middle = statistics.median_low(offsets)
    return sorted(offset - middle for offset in offsets)


def table(rate_qps: int, queries: int, found: dict[str, list[list[int]]]) -> None:
    for tool, rounds in found.items():
        share = statistics.median(len(values) / queries * 100 for values in rounds)
        quartiles = "..".join(shown(statistics.median(percentile(values, at) for values in rounds)) for at in (25, 75))
        absolute = [sorted(map(abs, values)) for values in rounds]
        cells = [ranged([percentile(values, at) for values in absolute]) for at in (50, 99, 99.9, 100)]
        print(f"| {rate_qps:,} | {tool} | {share:.4g} % | {quartiles} | {' | '.join(cells)} |", flush=True)


def shown(nanoseconds: float) -> str:
    unit, name = next(((unit, name) for unit, name in UNITS if abs(nanoseconds) >= 0.9995 * unit), UNITS[-1])
    return f"{nanoseconds / unit:.3g} {name}"


def ranged(values: Sequence[int]) -> str:
    """Median and range of the rounds."""
    return f"{shown(statistics.median(values))} [{shown(min(values))}..{shown(max(values))}]"


def points(rate_qps: int, found: dict[str, list[list[int]]]) -> list[dict[str, Any]]:
    """For the chart: the deviation that a share of the packets exceeds."""
    made = []
    for tool, rounds in found.items():
        absolute = [sorted(map(abs, values)) for values in rounds]
        fewest = min(map(len, absolute))
        for share in SHARES:
            if share * fewest < FEWEST:
                break
            found_us = [percentile(values, 100 - 100 * share) / 1000 for values in absolute]
            low, middle, high = (max(LEAST_US, chosen(found_us)) for chosen in (min, statistics.median, max))
            label = f"{rate_qps:,} queries/s"
            made.append({"tool": tool, "rate": label, "share": share * 100, "low": low, "middle": middle, "high": high})
    return made


def chart(made: list[dict[str, Any]]) -> alt.FacetChart:
    share = alt.X(
        "share:Q",
        title="share of the packets that deviate more, %",
        scale=alt.Scale(type="log", reverse=True, domain=[0.01, 100]),
        axis=alt.Axis(values=[100, 10, 1, 0.1, 0.01], labelExpr="datum.value"),
    )
    unit = "datum.value < 1e3 ? datum.value + ' µs' : datum.value < 1e6 ? datum.value / 1e3 + ' ms' : datum.value / 1e6 + ' s'"
    axis = alt.Axis(title="deviation from the captured time", values=[10**step for step in range(7)], labelExpr=unit)
    scale = alt.Scale(type="log", domain=[LEAST_US, 5e6], clamp=True)
    base = alt.Chart(pl.DataFrame(made)).encode(
        x=share,
        color=alt.Color(
            "tool:N", title=None, sort=[PLAY, REAL_TIME, *PACKAGES], legend=alt.Legend(orient="top", symbolOpacity=1)
        ),
    )
    band = base.mark_area(opacity=0.2).encode(y=alt.Y("low:Q", scale=scale, axis=axis), y2="high:Q")
    line = base.mark_line().encode(y=alt.Y("middle:Q", scale=scale, axis=axis))
    drawn: alt.FacetChart = (
        (band + line)
        .properties(width=270, height=300)
        .facet(column=alt.Column("rate:N", title=None, sort=[f"{rate_qps:,} queries/s" for rate_qps in RATES_QPS]))
    )
    return drawn


def main() -> None:
    asking, new = parser(__doc__), scratch()
    asking.add_argument("picture", nargs="?", type=Path, default=new and new / "picture.png", metavar="PICTURE.png")
    picture = asking.parse_args().picture
    roots: dict[str, Path | None] = {PLAY: None, REAL_TIME: None, **peers()}
    print(f"\nDeviation from the captured time; median [range] of {ROUNDS} rounds")
    print("| queries/s | tool | sent | quartiles | p50 | p99 | p99.9 | most |\n|" + " --- |" * 8)
    made: list[dict[str, Any]] = []
    with pair() as hosts, hosts.echo():
        give_clients_addresses(hosts)
        stream = hosts.folder / "rate.stream"
        (hosts.folder / "replay.lua").write_text(DNSJIT.replace("SERVER", str(hosts.reflector.address)))
        for rate_qps in RATES_QPS:
            dues = write_stream(stream, rate_qps, DURATION_S, CLIENTS)
            write_capture(hosts, stream, hosts.folder / "capture.pcap")
            found = interleaved(ROUNDS, list(roots), partial(deviations_ns, hosts, roots, dues))
            table(rate_qps, len(dues), found)
            made += points(rate_qps, found)
    if picture:
        chart(made).save(picture, scale_factor=1.5)


if __name__ == "__main__":
    main()
