"""What several runs have in common: settings, queries, datasets."""

from __future__ import annotations

import dns.message
import dns.rrset

from behaviour.bench import Bench
from behaviour.wire import View

KEY = "hmac-sha256:transfer:c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"
ZONES = "serve zones 127.0.0.1 --threads 1"
ANY_CLOSE = View(closes=False)
CHANGED = "--changes-before 5 --changes-per-s 1 --changes-on-signal"
"""Of each zone five changes lie behind; as nobody sends the signal, there are no more."""
FAULTS = [
    "servfail-after=1", "refused-after=1", "close-after=1", "cut-after=1", "slow=5ms", "wrong-serial", "soa-different",
    "soa-missing", "out-of-zone", "wrong-id", "truncated", "serial-backwards", "length-zero", "compression-loop",
]  # fmt: skip


def ask(name: str, kind: str, number: int, **more: object) -> dns.message.QueryMessage:
    return dns.message.make_query(name, kind, id=number, flags=0, **more)  # type: ignore[arg-type]


def ask_ixfr(name: str, serial: int, number: int) -> dns.message.QueryMessage:
    query = ask(name, "IXFR", number)
    query.authority.append(dns.rrset.from_text(name, 0, "IN", "SOA", f". . {serial} 0 0 0 0"))
    return query


def asked(count: int) -> list[bytes]:
    """Queries of every kind that a primary of so many zones has to answer."""
    zones = [f"z{number:06}.example." for number in (0, 1, count - 1)]
    queries = [ask(zone, kind, 10) for zone in zones for kind in ("SOA", "AXFR", "NS", "A")]
    queries += [ask_ixfr(zone, serial, serial & 0xFFF) for zone in zones for serial in (1, 3, 6, 7, 4_000_000_000)]
    queries += [ask(f"z{count:06}.example.", "AXFR", 20), ask("www.z000001.example.", "A", 21)]
    queries += [ask("catalog.example.", "SOA", 30), ask("catalog.example.", "AXFR", 31)]
    queries += [ask_ixfr("catalog.example.", serial, 40 + serial) for serial in (1, 2, 5)]
    queries += [ask("Z000001.EXAMPLE.", "AXFR", 50), ask(zones[1], "SOA", 51, use_edns=0, want_dnssec=True)]
    return [query.to_wire() for query in queries]


def malformed() -> list[bytes]:
    query = ask("z000000.example.", "SOA", 10).to_wire()
    return [b"\x00" * 11, b"\x00" * 12, query[:-1], query + b"\x00"]


def acknowledged(message: bytes) -> bytes:
    """The answer to a NOTIFY."""
    return message[:2] + bytes([message[2] | 0x80]) + message[3:]


def dataset(bench: Bench) -> None:
    """What `load` takes queries from."""
    bench.run("dataset zones", f"generate zones --count 50 --records 9 --seed {bench.seed} --out zones")
    bench.run("dataset tld", f"generate tld --delegations 300 --seed {bench.seed} --out tld")
    (bench.folder / "queries.txt").write_text(
        "; dnsperf's format\n\nwww.example.com A\nexample.com. MX\nz000003.example TYPE65\n\\001odd\\.label.example TXT\n"
    )


def only_plain(bench: Bench, name: str) -> None:
    """Of what is on the wire, leave out TLS: nothing in it is the same twice."""
    kept, is_tls = [], False
    for line in bench.kept[f"{name}: wire"]:
        if line.startswith("tcp "):
            is_tls = ":853" in line
        if not is_tls:
            kept.append(line)
    bench.kept[f"{name}: wire"] = kept
