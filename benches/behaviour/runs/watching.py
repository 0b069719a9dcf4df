"""What `probe`, `propagation` and `change` send and see."""

from __future__ import annotations

import dns.flags
import dns.message
import dns.opcode
import dns.rdatatype
import dns.rrset

from behaviour.bench import Bench
from behaviour.peers import answering
from behaviour.runs.common import KEY, ZONES
from behaviour.wire import View


def probe(bench: Bench) -> None:
    """`probe`, `probe follow` and `propagation`."""
    (bench.folder / "zones.list").write_text("".join(f"z{number:06}.example\n" for number in range(30)))
    with bench.serving("server", f"{ZONES} --count 30 --serial 7 --seed {bench.seed}", values=False):
        for name, options in {"any": "", "serial": "--serial 7", "rate": "--rate 100 --window 1"}.items():
            with bench.wire(name):
                bench.run(name, f"probe 127.0.0.1 --zones zones.list --out {name}.arrow {options}")
        with bench.wire("follow", View(messages=60)):
            command = "probe follow 127.0.0.1 --zones zones.list --rate 400 --out follow.arrow"
            bench.run("follow", command, values=False, interrupt_after_s=0.4)
    serials: dict[bytes, int] = {}
    with bench.wire("propagation"), answering(5303, lambda message: _updated(message, serials)):
        bench.run(
            "propagation",
            "propagation --primary 127.0.0.1:5303 --secondary 127.0.0.1:5303 --zone a.example --zone b.example"
            " --changes 8 --pause-ms 5 --poll-rate-per-s 20 --out propagation.arrow",
        )
    bench.keep_rows("rows")


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


def change(bench: Bench) -> None:
    """`change`: members of a catalog, and texts in zones, signed and not."""
    bench.run("dataset", f"generate zones --count 30 --seed {bench.seed} --out zones")
    members = "--catalog catalog.example --members zones/zones.list --absent 4 --first-member 2"
    with bench.serving("echo", "serve echo 127.0.0.1 --threads 1 --transport udp"):
        for name, options in {
            "catalog": members,
            "zones": "--zones zones/zones.list",
            "signed": f"{members} --tsig {KEY}",
        }.items():
            with bench.wire(name, View(key=KEY if name == "signed" else None)):
                bench.run(name, f"change 127.0.0.1 {options} --changes-per-s 100 --duration-s 0.4 --out {name}.arrow")
    bench.keep_rows("rows")
