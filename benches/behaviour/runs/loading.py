"""What `load` asks, and what it counts."""

from __future__ import annotations

from behaviour.bench import Bench
from behaviour.peers import without_tls
from behaviour.runs.common import KEY, dataset, only_plain
from behaviour.wire import View


def load_udp(bench: Bench) -> None:
    """`load` over UDP at a rate: the datasets' names, popularity, missing names, EDNS, TSIG; rows and histograms."""
    dataset(bench)
    common = "--duration-s 0.5 --interval-s 0.25 --json"
    runs = {
        "file": "--queries queries.txt --rate 200 --edns 0 --clients 3",
        "zones": "--zones zones/zones.list --rate 400 --types A,AAAA,MX,SOA --missing 20% --dnssec-ok",
        "tld": "--zones tld/zones.list --rate 400 --popularity zipf:1.2 --recursion-desired --missing 0.1",
        "signed": f"--zones zones/zones.list --rate 200 --tsig {KEY}",
        "poisson": "--queries queries.txt --rate 400 --poisson",
        "sources": "--queries queries.txt --rate 200 --source 127.0.0.5 --source 127.0.0.6 --burst 1",
        "threads": "--queries queries.txt --rate 200 --threads 2",
        "alone": "--queries queries.txt --rate 200 --clients 1",
    }
    with bench.serving("echo", "serve echo 127.0.0.1 --threads 1"):
        for name, options in runs.items():
            view = View(key=KEY if name == "signed" else None, merged=name != "alone", in_order=name != "threads")
            _load(bench, name, f"{common} {options}", view)


def load_stream(bench: Bench) -> None:
    """`load` over TCP and DoT: connections that stay, and that are closed after some queries in either way."""
    dataset(bench)
    common = "--zones zones/zones.list --duration-s 0.5 --interval-s 0.25 --rate 200 --json"
    runs = {
        "tcp": "--transport tcp",
        "closed": "--transport tcp --queries-per-connection 7 --close rst",
        "fin": "--transport tcp --queries-per-connection 7 --close fin",
        "signed": f"--transport tcp --tsig {KEY}",
        "dot": "--transport dot --no-resumption",
        "alone": "--transport tcp --clients 1 --queries-per-connection 7",
        "threads": "--transport tcp --clients 4 --threads 2",
    }
    with bench.serving("echo", "serve echo 127.0.0.1 --threads 1"), without_tls(853, 53):
        for name, options in runs.items():
            # What takes TLS off has a thread for each connection.
            in_order = name not in ("dot", "threads")
            view = View(key=KEY if name == "signed" else None, merged=name != "alone", in_order=in_order, closes=False)
            _load(bench, name, f"{common} {options}", view, tls=name == "dot")


def load_closed(bench: Bench) -> None:
    """`load` with a number outstanding, and searching a rate: the first queries, and what keys a summary has."""
    dataset(bench)
    with bench.serving("echo", "serve echo 127.0.0.1 --threads 1", values=False):
        for name, options in {
            "udp": "--outstanding 5 --duration-s 0.2",
            "tcp": "--outstanding 5 --duration-s 0.2 --transport tcp",
            "ramp": "--ramp --ramp-start 200 --ramp-max 400 --ramp-repeats 1 --duration-s 0.2 --ramp-latency-ms 500",
        }.items():
            with bench.wire(name, View(messages=30, merged=True)):
                common = f"--zones zones/zones.list --clients 2 --json --seed {bench.seed}"
                bench.run(name, f"load 127.0.0.1 {common} {options}", values=False)


def _load(bench: Bench, name: str, options: str, view: View, tls: bool = False) -> None:
    out = f"out/{name}"
    (bench.folder / out).mkdir(parents=True)
    with bench.wire(name, view):
        bench.run(name, f"load 127.0.0.1 --seed {bench.seed} --out '{out}' {options}")
    if tls:
        only_plain(bench, name)
    # What an interval or a bin holds is decided by the clock; which client has which query, too.
    by_clock = {"values": False}
    bench.keep_rows(name, out, intervals=by_clock, clients=by_clock, answers=by_clock)
