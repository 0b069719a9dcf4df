"""What `transfer` and `interrogate` ask, from primaries of every kind."""

from __future__ import annotations

import time

import dns.flags
import dns.opcode

from behaviour.bench import Bench
from behaviour.peers import over_udp, without_tls
from behaviour.records import document
from behaviour.runs.common import ANY_CLOSE, CHANGED, FAULTS, KEY, ZONES, ask, only_plain
from behaviour.wire import View


def transfer(bench: Bench) -> None:
    """`transfer`: every policy, of zones, a catalog, changes, after a SOA; files that it writes."""
    shape = f"{ZONES} --count 24 --records 12 --large 1:4000 --seed {bench.seed} {CHANGED}"
    (bench.folder / "zones.list").write_text("".join(f"z{number:06}.example\n" for number in range(30)))
    (bench.folder / "written").mkdir()
    with bench.serving("server", f"{shape} --message-bytes 16000"):
        for name, options in {
            "one": "--count 24 --policy one",
            "reused": "--count 24 --policy reused",
            "pipelined": "--count 24 --policy pipelined --window 5 --write written",
            "all": "--count 24 --window 0 --close rst",
            "catalog": "--catalog catalog.example --policy reused",
            "ixfr": "--count 24 --ixfr 3 --policy reused",
            "old": "--zone z000000.example --ixfr 4000000000",
            "soa udp": "--count 12 --soa udp --ixfr 6 --policy one",
            "soa same": "--count 12 --soa same --ixfr 2 --policy reused",
            "secondaries": "--count 6 --secondaries 3 --source 127.0.0.5-127.0.0.7 --policy one",
            "missing": "--zones zones.list --retries 1 --retry-after 10ms --policy reused",
            "records": "--count 6 --expect-records 12",
            "limits": "--zone z000001.example --zone z000002.example --bytes-max 200",
        }.items():
            _transfer(bench, name, options)
        shared = View(merged=True, in_order=False, closes=False)
        _transfer(bench, "connections", "--count 24 --policy reused --connections 3", shared, shared=True)
        threads = "--count 6 --secondaries 4 --source 127.0.0.5-127.0.0.8 --threads 2 --policy one"
        _transfer(bench, "threads", threads, shared=True)
    for file in sorted((bench.folder / "written").iterdir()):
        bench.keep(file.name, file.read_text().splitlines())


def transfer_secure(bench: Bench) -> None:
    """`transfer` with TSIG, and over TLS."""
    shape = f"{ZONES} --count 24 --records 40 --seed {bench.seed} --message-bytes 900"
    for name, server, options in (
        ("signed", f"--tsig {KEY}", f"--tsig {KEY}"),
        ("some", f"--tsig {KEY} --tsig-every 3", f"--tsig {KEY} --policy one"),
        ("unsigned", f"--tsig {KEY} --fault tsig-missing", f"--tsig {KEY} --retries 0"),
        ("wrong", f"--tsig {KEY} --fault tsig-wrong", f"--tsig {KEY} --retries 0"),
    ):
        with bench.serving(f"server {name}", f"{shape} {server}"):
            _transfer(bench, name, f"--count 24 {options}", View(key=KEY, closes=False))
    with bench.serving("server", shape), without_tls(853, 53):
        for name, options in {
            "tls": "--policy pipelined",
            "tls one": "--policy one",
            "tls reused": "--policy reused",
        }.items():
            _transfer(bench, name, f"--count 24 --transport xot {options}", tls=True)


def transfer_faults(bench: Bench) -> None:
    """`transfer` from a primary that does everything wrong."""
    for fault in [*FAULTS, "endless"]:
        if fault == "close-after=1":
            continue  # Whether the next query was sent before the connection ended is up to the clock.
        shape = (
            f"{ZONES} --count 6 --records 40 --message-bytes 512 --fault-every 2 --fault {fault} --seed {bench.seed}"
        )
        with bench.serving(f"server {fault}", shape, values=fault != "endless"):
            # What never ends has a connection to itself: how much more comes before it is closed is up to the clock.
            policy, view = ("one", View(messages=60, closes=False)) if fault == "endless" else ("reused", ANY_CLOSE)
            limits = "--retries 1 --retry-after 10ms --timeout 500ms --bytes-max 200000"
            _transfer(bench, fault, f"--count 6 --policy {policy} {limits}", view, values=fault != "endless")


def transfer_notified(bench: Bench) -> None:
    """`transfer --on-notify`: a NOTIFY after another, each when the transfer before is over."""
    primary = f"{ZONES} --count 8 --records 9 --serial 5 --seed {bench.seed}"
    command = "transfer 127.0.0.1 --count 8 --on-notify --serial 3 --notify-port 5302 --out . --json --policy one"
    with (
        bench.serving("server", primary),
        bench.wire("notified", ANY_CLOSE),
        bench.serving("transfer", command),
    ):
        for number in (0, 3, 7, 3, 9):
            notify = ask(f"z{number:06}.example.", "SOA", number)
            notify.set_opcode(dns.opcode.NOTIFY)
            notify.flags |= dns.flags.AA
            over_udp([notify.to_wire()], 5302)
            time.sleep(0.15)
    bench.keep_rows("rows", tcp_info={"values": False})


def interrogate(bench: Bench) -> None:
    """`interrogate`: the table of what a primary supports, and every query on the way to it."""
    shape = f"--count 30 --records 12 --large 1:9000 --message-bytes 16000 --seed {bench.seed} --order interleaved"
    with bench.serving("server", f"{ZONES} {shape} {CHANGED} --tsig {KEY} --transport udp,tcp,xot", values=False):
        with bench.wire("interrogate", View(key=KEY, merged=True, in_order=False, distinct=True)):
            command = f"interrogate 127.0.0.1 --count 30 --tsig {KEY} --out table.json"
            bench.run("interrogate", command, values=False)
        only_plain(bench, "interrogate")
        # How much of an answer comes before a connection is given up is up to the clock.
        wire = bench.kept["interrogate: wire"]
        wire[:] = [line for line in wire if not line.startswith("<")]
    bench.keep("table", document(bench.folder / "table.json"))


def _transfer(
    bench: Bench,
    name: str,
    options: str,
    view: View = ANY_CLOSE,
    tls: bool = False,
    shared: bool = False,
    values: bool = True,
) -> None:
    """`shared`: by several connections, and which has what is decided by the clock."""
    out = f"out/{name}"
    (bench.folder / out).mkdir(parents=True)
    with bench.wire(name, view):
        bench.run(name, f"transfer 127.0.0.1 --out '{out}' --json {options}", values)
    if tls:
        only_plain(bench, name)
    by_whom = {"values": False} if shared else {"in_order": False}
    transfers = {"in_order": False, "without": "connection" if shared else None}
    bench.keep_rows(name, out, tcp_info={"values": False}, transfers=transfers, connections=by_whom)
