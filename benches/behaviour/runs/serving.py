"""What `generate` writes, and what `serve zones` and `serve echo` answer."""

from __future__ import annotations

import signal
import socket
import time

import dns.message
import dns.tsigkeyring

from behaviour.bench import Bench
from behaviour.peers import answering, over_stream, over_udp
from behaviour.runs.common import ANY_CLOSE, CHANGED, FAULTS, KEY, ZONES, acknowledged, ask, ask_ixfr, asked, malformed
from behaviour.wire import View


def generate(bench: Bench) -> None:
    """`generate zones` and `generate tld`: every file."""
    seed = bench.seed
    for name, options in {
        "zones": f"zones --count 40 --records 4 --seed {seed}",
        "long": f"zones --count 20 --records 40 --seed {seed} --suffix a.long.suffix --serial 77 --refresh-s 60 --catalog-schema 1",
        "tld": f"tld --delegations 400 --seed {seed} --origin ch",
        "changed": f"tld --delegations 400 --seed {seed} --origin ch --changed 30 --serial 9",
    }.items():
        bench.run(name, f"generate {options} --out {name}")
        for file in sorted((bench.folder / name).rglob("*")):
            if file.is_file():
                bench.keep(f"{name}/{file.relative_to(bench.folder / name)}", file.read_text().splitlines())


def serve(bench: Bench) -> None:
    """`serve zones`: answers over UDP and TCP, small messages, both orders, serials far back, a catalog of either
    schema."""
    shape = f"--count 30 --records 14 --large 1:3000 --seed {bench.seed}"
    for name, options in {
        "plain": shape,
        "changed": f"{shape} {CHANGED} --change-records 3 --changes-kept 4",
        "catalog": f"{shape} --changes-of catalog --absent 6 --first-member 3 --changes-before 20"
        " --changes-per-s 1 --changes-on-signal --catalog-schema 1",
        "small": f"{shape} --message-bytes 700 --serial 4294967290 --changes-before 10 --changes-per-s 1 --changes-on-signal",
        "interleaved": f"{shape} --order interleaved --records-per-message 9 --refresh-s 60 --suffix example",
        "few": f"{shape} --concurrent-max 2",
    }.items():
        with bench.serving(name, f"{ZONES} {options}"), bench.wire(name):
            over_udp(asked(30))
            over_stream(asked(30))
            for message in malformed():
                over_stream([message])


def serve_faults(bench: Bench) -> None:
    """`serve zones`: everything that it can do wrong on purpose."""
    axfr = [ask(f"z{number:06}.example.", "AXFR", 7 + number).to_wire() for number in range(4)]
    for fault in FAULTS:
        options = f"--count 4 --records 40 --message-bytes 512 --seed {bench.seed} --fault {fault} --fault-every 2"
        with bench.serving(fault, f"{ZONES} {options}"), bench.wire(fault, ANY_CLOSE):
            over_stream(axfr)
    # What never ends is compared as far as its first messages; how much more is written is up to the sockets.
    endless, view = f"{ZONES} --count 1 --seed {bench.seed} --fault endless", View(messages=3, closes=False)
    with bench.serving("endless", endless, values=False), bench.wire("endless", view):
        over_stream(axfr[:1], limit=400_000)


def serve_tsig(bench: Bench) -> None:
    """`serve zones` with a key: each message signed, some, wrongly, and queries that are not."""
    algorithm, name, secret = KEY.split(":")
    ring = dns.tsigkeyring.from_text({name: (algorithm, secret)})
    other = dns.tsigkeyring.from_text({"stranger": (algorithm, secret)})

    def signed(query: dns.message.QueryMessage, keys: object = ring) -> bytes:
        query.use_tsig(keys)
        return query.to_wire()

    for title, options in {
        "each": "",
        "some": "--tsig-every 4",
        "missing": "--fault tsig-missing",
        "wrong": "--fault tsig-wrong",
    }.items():
        command = (
            f"{ZONES} --count 9 --records 60 --message-bytes 512 --seed {bench.seed} {CHANGED} --tsig {KEY} {options}"
        )
        asked = [
            signed(ask("z000001.example.", "AXFR", 1)),
            signed(ask_ixfr("z000004.example.", 3, 4)),
            ask("z000005.example.", "AXFR", 5).to_wire(),
            signed(ask("z000006.example.", "AXFR", 6), other),
            signed(ask("catalog.example.", "AXFR", 7)),
        ]
        with bench.serving(title, command), bench.wire(title, View(key=KEY, closes=False)):
            over_udp([signed(ask("z000002.example.", "SOA", 2)), ask("z000002.example.", "SOA", 3).to_wire()])
            over_stream(asked)


def serve_tls(bench: Bench) -> None:
    """`serve zones` and `serve echo` over TLS: what a client reads of it."""
    shape = f"--count 30 --records 14 --large 1:3000 --seed {bench.seed} --transport xot"
    with bench.serving("zones", f"{ZONES} {shape}"):
        bench.keep("zones: read", [b"".join(over_stream(asked(30), 853, tls=True)).hex()])
    with bench.serving("echo", "serve echo 127.0.0.1 --transport dot --threads 1"):
        bench.keep("echo: read", [b"".join(over_stream(asked(30), 853, tls=True)).hex()])


def serve_notify(bench: Bench) -> None:
    """`serve zones` with changes: rows, and the NOTIFYs of them."""
    for what in ("zones", "catalog"):
        options = (
            f"--count 8 --changes-of {what} --absent 2 --changes-per-s 50 --changes-on-signal --notify 127.0.0.1:5301"
        )
        command = f"{ZONES} {options} --notify-interval 1ms --out {what}.arrow --seed {bench.seed}"
        with (
            bench.wire(what, View(messages=20, merged=True)),
            answering(5301, acknowledged),
            bench.serving(what, command, values=False) as server,
        ):
            server.send_signal(signal.SIGUSR1)
            time.sleep(0.8)
            server.send_signal(signal.SIGUSR2)
            time.sleep(0.2)
    bench.keep_rows("changes", zones={"first": 20}, catalog={"first": 20})


def echo(bench: Bench) -> None:
    """`serve echo`: everything, with loss, and with delays that change the order."""
    queries = [ask(f"n{number}.example.", "A", number).to_wire() for number in range(200)]
    for name, options in {"plain": "", "delayed": "--delay 5ms", "lossy": f"--loss 30% --seed {bench.seed}"}.items():
        with bench.serving(name, f"serve echo 127.0.0.1 --threads 1 {options}"), bench.wire(name):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                client.connect(("127.0.0.1", 53))
                for query in [*queries, b"short", b"\x00" * 1300, acknowledged(queries[0])]:
                    client.send(query)
                time.sleep(0.1)
            over_stream(queries)
