"""The runs: what is done with an engine, each from a seed. One function each, over a `Stage`."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Callable

import dns.flags
import dns.message
import dns.opcode
import dns.rdatatype
import dns.rrset
import dns.tsigkeyring
import dns.update

from .records import document
from .stage import Stage, answering, over_stream, over_udp, without_tls
from .wire import View

KEY = "hmac-sha256:transfer:c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"
ZONES = "serve zones 127.0.0.1 --threads 1"
ANY_CLOSE = View(closes=False)
CHANGED = "--changes-before 5 --changes-per-s 1 --changes-on-signal"
"""Of each zone five changes lie behind; as nobody sends the signal, there are no more."""
FAULTS = [
    "servfail-after=1", "refused-after=1", "close-after=1", "cut-after=1", "slow=5ms", "wrong-serial", "soa-different",
    "soa-missing", "out-of-zone", "wrong-id", "truncated", "serial-backwards", "length-zero", "compression-loop",
]  # fmt: skip


def _query(name: str, kind: str, number: int, **more: object) -> dns.message.QueryMessage:
    return dns.message.make_query(name, kind, id=number, flags=0, **more)  # type: ignore[arg-type]


def _ixfr(name: str, serial: int, number: int) -> dns.message.QueryMessage:
    query = _query(name, "IXFR", number)
    query.authority.append(dns.rrset.from_text(name, 0, "IN", "SOA", f". . {serial} 0 0 0 0"))
    return query


def _asked(count: int) -> list[bytes]:
    """Queries of every kind that a primary has to answer, good and bad."""
    zones = [f"z{number:06}.example." for number in (0, 1, count - 1)]
    queries = [_query(zone, kind, 10) for zone in zones for kind in ("SOA", "AXFR", "NS", "A")]
    queries += [_ixfr(zone, serial, serial & 0xFFF) for zone in zones for serial in (1, 3, 6, 7, 4_000_000_000)]
    queries += [_query(f"z{count:06}.example.", "AXFR", 20), _query("www.z000001.example.", "A", 21)]
    queries += [_query("catalog.example.", "SOA", 30), _query("catalog.example.", "AXFR", 31)]
    queries += [_ixfr("catalog.example.", serial, 40 + serial) for serial in (1, 2, 5)]
    queries += [_query("Z000001.EXAMPLE.", "AXFR", 50), _query(zones[1], "SOA", 51, use_edns=0, want_dnssec=True)]
    bad = [b"", b"\x00" * 11, b"\x00" * 12, queries[0].to_wire()[:-1], queries[0].to_wire() + b"\x00"]
    return [query.to_wire() for query in queries] + [message for message in bad if message]


def generate(stage: Stage) -> None:
    """`generate zones` and `generate tld`: every file."""
    seed = stage.seed
    for name, options in {
        "zones": f"zones --count 40 --records 4 --seed {seed}",
        "long": f"zones --count 20 --records 40 --seed {seed} --suffix a.long.suffix --serial 77 --refresh-s 60 --catalog-schema 1",
        "tld": f"tld --delegations 400 --seed {seed} --origin ch",
        "changed": f"tld --delegations 400 --seed {seed} --origin ch --changed 30 --serial 9",
    }.items():
        stage.run(name, f"generate {options} --out {name}")
        for file in sorted((stage.folder / name).rglob("*")):
            if file.is_file():
                stage.keep(f"{name}/{file.relative_to(stage.folder / name)}", file.read_text().splitlines())


def serve(stage: Stage) -> None:
    """`serve zones`: answers over UDP and TCP, small messages, both orders, serials far back, a catalog of either schema."""
    shape = f"--count 30 --records 14 --large 1:3000 --seed {stage.seed}"
    for name, options in {
        "plain": shape,
        "changed": f"{shape} {CHANGED} --change-records 3 --changes-kept 4",
        "catalog": f"{shape} --changes-of catalog --absent 6 --first-member 3 --changes-before 20"
        " --changes-per-s 1 --changes-on-signal --catalog-schema 1",
        "small": f"{shape} --message-octets 700 --serial 4294967290 --changes-before 10 --changes-per-s 1 --changes-on-signal",
        "interleaved": f"{shape} --order interleaved --records-per-message 9 --refresh-s 60 --suffix example",
        "few": f"{shape} --concurrent-max 2",
    }.items():
        with stage.serving(name, f"{ZONES} {options}"), stage.wire(name):
            over_udp(message for message in _asked(30)[:-5])
            over_stream(_asked(30)[:-4])
            for message in _asked(30)[-4:]:
                over_stream([message])


def serve_faults(stage: Stage) -> None:
    """`serve zones`: everything that it can do wrong on purpose."""
    axfr = [_query(f"z{number:06}.example.", "AXFR", 7 + number).to_wire() for number in range(4)]
    for fault in FAULTS:
        options = f"--count 4 --records 40 --message-octets 512 --seed {stage.seed} --fault {fault} --fault-every 2"
        with stage.serving(fault, f"{ZONES} {options}"), stage.wire(fault, ANY_CLOSE):
            over_stream(axfr)
    # What never ends is compared as far as its first messages; how much more is written is up to the sockets.
    endless, view = f"{ZONES} --count 1 --seed {stage.seed} --fault endless", View(messages=3, closes=False)
    with stage.serving("endless", endless, values=False), stage.wire("endless", view):
        over_stream(axfr[:1], limit=400_000)


def serve_tsig(stage: Stage) -> None:
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
            f"{ZONES} --count 9 --records 60 --message-octets 512 --seed {stage.seed} {CHANGED} --tsig {KEY} {options}"
        )
        asked = [
            signed(_query("z000001.example.", "AXFR", 1)),
            signed(_ixfr("z000004.example.", 3, 4)),
            _query("z000005.example.", "AXFR", 5).to_wire(),
            signed(_query("z000006.example.", "AXFR", 6), other),
            signed(_query("catalog.example.", "AXFR", 7)),
        ]
        with stage.serving(title, command), stage.wire(title, View(key=KEY, closes=False)):
            over_udp([signed(_query("z000002.example.", "SOA", 2)), _query("z000002.example.", "SOA", 3).to_wire()])
            over_stream(asked)


def serve_tls(stage: Stage) -> None:
    """`serve zones` and `serve echo` over TLS: what a client reads of it."""
    shape = f"--count 30 --records 14 --large 1:3000 --seed {stage.seed} --transport xot"
    with stage.serving("zones", f"{ZONES} {shape}"):
        stage.keep("zones: read", [b"".join(over_stream(_asked(30)[:-5], 853, tls=True)).hex()])
    with stage.serving("echo", "serve echo 127.0.0.1 --transport dot --threads 1"):
        stage.keep("echo: read", [b"".join(over_stream(_asked(30)[:-5], 853, tls=True)).hex()])


def serve_notify(stage: Stage) -> None:
    """`serve zones` with changes: rows, and NOTIFY to who answers and who does not."""
    for what in ("zones", "catalog"):
        options = (
            f"--count 8 --changes-of {what} --absent 2 --changes-per-s 50 --changes-on-signal --notify 127.0.0.1:5301"
        )
        command = f"{ZONES} {options} --notify-interval 1ms --out {what}.arrow --seed {stage.seed}"
        with (
            stage.wire(what, View(messages=20, merged=True)),
            answering(5301, _acknowledged),
            stage.serving(what, command, values=False) as server,
        ):
            server.send_signal(signal.SIGUSR1)
            time.sleep(0.8)
            server.send_signal(signal.SIGUSR2)
            time.sleep(0.2)
    stage.keep_rows("changes", zones={"first": 20}, catalog={"first": 20})


def _acknowledged(message: bytes) -> bytes:
    return message[:2] + bytes([message[2] | 0x80]) + message[3:]


def echo(stage: Stage) -> None:
    """`serve echo`: everything, with loss, and with delays that change the order."""
    queries = [_query(f"n{number}.example.", "A", number).to_wire() for number in range(200)]
    for name, options in {"plain": "", "delayed": "--delay 5ms", "lossy": f"--loss 30% --seed {stage.seed}"}.items():
        with stage.serving(name, f"serve echo 127.0.0.1 --threads 1 {options}"), stage.wire(name):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                client.connect(("127.0.0.1", 53))
                for query in [*queries, b"short", b"\x00" * 1300, _acknowledged(queries[0])]:
                    client.send(query)
                time.sleep(0.1)
            over_stream(queries)


def _dataset(stage: Stage) -> None:
    stage.run("dataset zones", f"generate zones --count 50 --records 9 --seed {stage.seed} --out zones")
    stage.run("dataset tld", f"generate tld --delegations 300 --seed {stage.seed} --out tld")
    (stage.folder / "queries.txt").write_text(
        "; dnsperf's format\n\nwww.example.com A\nexample.com. MX\nz000003.example TYPE65\n\\001odd\\.label.example TXT\n"
    )


def load_udp(stage: Stage) -> None:
    """`load` over UDP at a rate: the datasets' names, popularity, missing names, EDNS, TSIG; rows and histograms."""
    _dataset(stage)
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
    with stage.serving("echo", "serve echo 127.0.0.1 --threads 1"):
        for name, options in runs.items():
            view = View(key=KEY if name == "signed" else None, merged=name != "alone", in_order=name != "threads")
            _load(stage, name, f"{common} {options}", view)


def load_stream(stage: Stage) -> None:
    """`load` over TCP and DoT: connections that stay, and that are closed after some queries in either way."""
    _dataset(stage)
    common = "--zones zones/zones.list --duration-s 0.5 --interval-s 0.25 --rate 200 --json"
    runs = {
        "tcp": "--transport tcp",
        "closed": "--transport tcp --queries-per-connection 7 --close rst",
        "fin": "--transport tcp --queries-per-connection 7 --close fin",
        "signed": f"--transport tcp --tsig {KEY}",
        "dot": "--transport dot --no-resumption",
        "alone": "--transport tcp --clients 1 --queries-per-connection 7",
    }
    with stage.serving("echo", "serve echo 127.0.0.1 --threads 1"), without_tls(853, 53):
        for name, options in runs.items():
            # What takes TLS off has a thread for each connection.
            view = View(
                key=KEY if name == "signed" else None, merged=name != "alone", in_order=name != "dot", closes=False
            )
            _load(stage, name, f"{common} {options}", view, tls=name == "dot")


def load_closed(stage: Stage) -> None:
    """`load` with a number outstanding, and searching a rate: the first queries, and what keys a summary has."""
    _dataset(stage)
    with stage.serving("echo", "serve echo 127.0.0.1 --threads 1", values=False):
        for name, options in {
            "udp": "--outstanding 5 --duration-s 0.2",
            "tcp": "--outstanding 5 --duration-s 0.2 --transport tcp",
            "ramp": "--ramp --ramp-start 200 --ramp-max 400 --ramp-repeats 1 --duration-s 0.2 --ramp-latency-ms 500",
        }.items():
            with stage.wire(name, View(messages=30, merged=True)):
                common = f"--zones zones/zones.list --clients 2 --json --seed {stage.seed}"
                stage.run(name, f"load 127.0.0.1 {common} {options}", values=False)


def transfer(stage: Stage) -> None:
    """`transfer`: every policy, of zones, a catalog, changes, after a SOA; files that it writes."""
    shape = f"{ZONES} --count 24 --records 12 --large 1:4000 --seed {stage.seed} {CHANGED}"
    (stage.folder / "zones.list").write_text("".join(f"z{number:06}.example\n" for number in range(30)))
    (stage.folder / "written").mkdir()
    with stage.serving("server", f"{shape} --message-octets 16000"):
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
            "limits": "--zone z000001.example --zone z000002.example --octets-max 200",
        }.items():
            _transfer(stage, name, options)
        shared = View(merged=True, in_order=False, closes=False)
        _transfer(stage, "connections", "--count 24 --policy reused --connections 3", shared, shared=True)
    for file in sorted((stage.folder / "written").iterdir()):
        stage.keep(file.name, file.read_text().splitlines())


def transfer_secure(stage: Stage) -> None:
    """`transfer` with TSIG, and over TLS."""
    shape = f"{ZONES} --count 24 --records 40 --seed {stage.seed} --message-octets 900"
    for name, server, options in (
        ("signed", f"--tsig {KEY}", f"--tsig {KEY}"),
        ("some", f"--tsig {KEY} --tsig-every 3", f"--tsig {KEY} --policy one"),
        ("unsigned", f"--tsig {KEY} --fault tsig-missing", f"--tsig {KEY} --retries 0"),
        ("wrong", f"--tsig {KEY} --fault tsig-wrong", f"--tsig {KEY} --retries 0"),
    ):
        with stage.serving(f"server {name}", f"{shape} {server}"):
            _transfer(stage, name, f"--count 24 {options}", View(key=KEY, closes=False))
    with stage.serving("server", shape), without_tls(853, 53):
        for name, options in {
            "tls": "--policy pipelined",
            "tls one": "--policy one",
            "tls reused": "--policy reused",
        }.items():
            _transfer(stage, name, f"--count 24 --transport xot {options}", tls=True)


def transfer_faults(stage: Stage) -> None:
    """`transfer` from a primary that does everything wrong."""
    for fault in [*FAULTS, "endless"]:
        if fault == "close-after=1":
            continue  # Whether the next query was sent before the connection ended is up to the clock.
        shape = (
            f"{ZONES} --count 6 --records 40 --message-octets 512 --fault-every 2 --fault {fault} --seed {stage.seed}"
        )
        with stage.serving(f"server {fault}", shape, values=fault != "endless"):
            # What never ends has a connection to itself: how much more comes before it is closed is up to the clock.
            policy, view = ("one", View(messages=60, closes=False)) if fault == "endless" else ("reused", ANY_CLOSE)
            limits = "--retries 1 --retry-after 10ms --timeout 500ms --octets-max 200000"
            _transfer(stage, fault, f"--count 6 --policy {policy} {limits}", view, values=fault != "endless")


def transfer_notified(stage: Stage) -> None:
    """`transfer --on-notify`: a NOTIFY after another, each when the transfer before is over."""
    primary = f"{ZONES} --count 8 --records 9 --serial 5 --seed {stage.seed}"
    command = "transfer 127.0.0.1 --count 8 --on-notify --serial 3 --notify-port 5302 --out . --json --policy one"
    with (
        stage.serving("server", primary),
        stage.wire("notified", ANY_CLOSE),
        stage.serving("transfer", command),
    ):
        for number in (0, 3, 7, 3, 9):
            notify = _query(f"z{number:06}.example.", "SOA", number)
            notify.set_opcode(dns.opcode.NOTIFY)
            notify.flags |= dns.flags.AA
            over_udp([notify.to_wire()], 5302)
            time.sleep(0.15)
    stage.keep_rows("rows", tcp_info={"values": False})


def interrogate(stage: Stage) -> None:
    """`interrogate`: the table of what a primary supports, and every query on the way to it."""
    shape = f"--count 30 --records 12 --large 1:9000 --message-octets 16000 --seed {stage.seed} --order interleaved"
    with stage.serving("server", f"{ZONES} {shape} {CHANGED} --tsig {KEY} --transport udp,tcp,xot", values=False):
        with stage.wire("interrogate", View(key=KEY, merged=True, in_order=False, distinct=True)):
            command = f"interrogate 127.0.0.1 --count 30 --tsig {KEY} --out table.json"
            stage.run("interrogate", command, values=False)
        _only_plain(stage, "interrogate")
        # How much of an answer comes before a connection is given up is up to the clock.
        wire = stage.kept["interrogate: wire"]
        wire[:] = [line for line in wire if not line.startswith("<")]
    stage.keep("table", document(stage.folder / "table.json"))


def probe(stage: Stage) -> None:
    """`probe`, `probe follow` and `propagation`."""
    (stage.folder / "zones.list").write_text("".join(f"z{number:06}.example\n" for number in range(30)))
    with stage.serving("server", f"{ZONES} --count 30 --serial 7 --seed {stage.seed}", values=False):
        for name, options in {"any": "", "serial": "--serial 7", "rate": "--rate 100 --window 1"}.items():
            with stage.wire(name):
                stage.run(name, f"probe 127.0.0.1 --zones zones.list --out {name}.arrow {options}")
        with stage.wire("follow", View(messages=60)):
            command = "probe follow 127.0.0.1 --zones zones.list --rate 400 --out follow.arrow"
            stage.run("follow", command, values=False, interrupt_after_s=0.4)
    serials: dict[bytes, int] = {}
    with stage.wire("propagation"), answering(5303, lambda message: _updated(message, serials)):
        stage.run(
            "propagation",
            "propagation --primary 127.0.0.1:5303 --secondary 127.0.0.1:5303 --zone a.example --zone b.example"
            " --changes 8 --pause-ms 5 --poll-rate-per-s 20 --out propagation.arrow",
        )
    stage.keep_rows("rows")


def _updated(message: bytes, serials: dict[bytes, int]) -> bytes:
    """A server with one SOA a zone, whose serial is what the latest update asked for."""
    query = dns.message.from_wire(message)
    zone = query.question[0].name if query.question else query.sections[0][0].name
    key = zone.to_digestable()
    reply = dns.message.make_response(query)
    reply.flags |= dns.flags.AA
    if query.opcode() == dns.opcode.UPDATE:
        for rrset in query.sections[2]:
            if rrset.rdtype == dns.rdatatype.SOA and len(rrset):
                serials[key] = rrset[0].serial
    else:
        text = f"ns.example. admin.example. {serials.get(key, 1)} 3600 900 1209600 300"
        reply.answer.append(dns.rrset.from_text(zone, 3600, "IN", "SOA", text))
    return reply.to_wire()


def change(stage: Stage) -> None:
    """`change`: members of a catalog, and texts in zones, signed and not."""
    stage.run("dataset", f"generate zones --count 30 --seed {stage.seed} --out zones")
    members = "--catalog catalog.example --members zones/zones.list --absent 4 --first-member 2"
    with stage.serving("echo", "serve echo 127.0.0.1 --threads 1 --transport udp"):
        for name, options in {
            "catalog": members,
            "zones": "--zones zones/zones.list",
            "signed": f"{members} --tsig {KEY}",
        }.items():
            with stage.wire(name, View(key=KEY if name == "signed" else None)):
                stage.run(name, f"change 127.0.0.1 {options} --changes-per-s 100 --duration-s 0.4 --out {name}.arrow")
    stage.keep_rows("rows")


def _load(stage: Stage, name: str, options: str, view: View, tls: bool = False) -> None:
    out = f"out/{name}"
    (stage.folder / out).mkdir(parents=True)
    with stage.wire(name, view):
        stage.run(name, f"load 127.0.0.1 --seed {stage.seed} --out '{out}' {options}")
    if tls:
        _only_plain(stage, name)
    # What an interval or a bin holds is decided by the clock; which client has which query, too.
    by_clock = {"values": False}
    stage.keep_rows(name, out, intervals=by_clock, clients=by_clock, answers=by_clock)


def _transfer(
    stage: Stage,
    name: str,
    options: str,
    view: View = ANY_CLOSE,
    tls: bool = False,
    shared: bool = False,
    values: bool = True,
) -> None:
    """`shared`: by several connections, and which has what is decided by the clock."""
    out = f"out/{name}"
    (stage.folder / out).mkdir(parents=True)
    with stage.wire(name, view):
        stage.run(name, f"transfer 127.0.0.1 --out '{out}' --json {options}", values)
    if tls:
        _only_plain(stage, name)
    by_whom = {"values": False} if shared else {"in_order": False}
    transfers = {"in_order": False, "without": "connection" if shared else None}
    stage.keep_rows(name, out, tcp_info={"values": False}, transfers=transfers, connections=by_whom)


def _only_plain(stage: Stage, name: str) -> None:
    """Of what is on the wire, leave out TLS: nothing in it is the same twice."""
    kept, is_tls = [], False
    for line in stage.kept[f"{name}: wire"]:
        if line.startswith("tcp "):
            is_tls = ":853" in line
        if not is_tls:
            kept.append(line)
    stage.kept[f"{name}: wire"] = kept


_EACH = [
    generate, serve, serve_faults, serve_tsig, serve_tls, serve_notify, echo, load_udp, load_stream, load_closed,
    transfer, transfer_secure, transfer_faults, transfer_notified, interrogate, probe, change,
]  # fmt: skip
RUNS: dict[str, Callable[[Stage], None]] = {run.__name__.replace("_", "-"): run for run in _EACH}
