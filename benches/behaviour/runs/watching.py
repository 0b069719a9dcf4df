"""What `probe`, `propagation`, `change` and `watch` send and see; and what is refused."""

from __future__ import annotations

import os
import socket
import subprocess
import time

import dns.flags
import dns.message
import dns.opcode
import dns.rdatatype
import dns.rrset

from behaviour.bench import Bench
from behaviour.peers import answering
from behaviour.runs.common import KEY, ZONES
from behaviour.wire import View

LINKED = ("198.18.0.1", "198.18.0.2")
"""Addresses of a link's ends."""


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


def watch(bench: Bench) -> None:
    """`watch`: columns and events. What it samples is of this machine and moment."""
    hosts = f"--host here,netns=/proc/{os.getpid()}/ns/net,sockets"
    bench.run("watch", f"watch {hosts} --duration-s 1 --sockets-interval-ms 100", values=False)
    bench.keep_rows("rows", samples={"values": False}, sockets={"values": False})


def link(bench: Bench) -> None:
    """`link`: which of 300 packets are lost, and what is counted of them. The other end lies in a process's
    namespace."""
    # IPv6 would look for routers; and each packet that arrives is to be answered by an error (ICMP).
    quiet = "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6; echo 0 > /proc/sys/net/ipv4/icmp_ratemask"
    subprocess.run(["sh", "-c", quiet], check=True)
    with subprocess.Popen(
        ["unshare", "--net", "sh", "-c", f"{quiet}; echo; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as far:
        assert far.stdin is not None and far.stdout is not None
        far.stdout.readline()
        for name, process in (("here", os.getpid()), ("far", far.pid)):
            (bench.folder / f"{name}.netns").symlink_to(f"/proc/{process}/ns/net")
        ends = "--left here.netns,here --right far.netns,far"
        paths = "--forward loss=20%,delay=1ms --reverse delay=2ms,mtu=1000"
        with bench.serving("link", f"link {ends} {paths} --seed {bench.seed} --out link.arrow"):
            in_far = ["nsenter", "--net", "--target", str(far.pid)]
            for enter, name, ours, theirs in (([], "here", *LINKED), (in_far, "far", *LINKED[::-1])):
                for command in (f"address add {ours} peer {theirs} dev {name}", f"link set {name} up"):
                    subprocess.run([*enter, "ip", *command.split()], check=True)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                for number in range(300):
                    sender.sendto(number.to_bytes(2, "big"), (LINKED[1], 9))
                    time.sleep(0.002)
            time.sleep(0.1)
        far.stdin.close()
    bench.keep_rows("rows", link={"values": False})


def refused(bench: Bench) -> None:
    """What is asked for wrongly: exit codes."""
    (bench.folder / "zones.list").write_text("not..a.name\n")
    for number, command in enumerate([
        "load 192.0.2.1 --queries none.txt",
        "load 127.0.0.1 --queries none.txt",
        "load 127.0.0.1 --zones zones.list",
        "load 127.0.0.1 --zones zones.list --tsig hmac-md5:name:c2VjcmV0",
        "transfer 192.0.2.1 --count 1",
        "transfer 127.0.0.1:9 --count 1 --retries 0 --timeout 100ms",
        "transfer 127.0.0.1 --zones zones.list",
        "transfer 127.0.0.1 --count 1 --out nowhere",
        "probe 127.0.0.1:9 --zones zones.list",
        "probe 192.0.2.1 --zones none.list",
        "change 127.0.0.1 --zones none.list --changes-per-s 1",
        "serve zones 192.0.2.1 --count 1",
        "serve zones 127.0.0.1 --count 0",
        "serve echo 192.0.2.1",
        "generate zones --count 1 --out zones.list",
        "generate tld --delegations 0 --out tld",
        "watch --host here,netns=/nowhere --duration-s 1",
        "no-such-command",
    ]):  # fmt: skip
        bench.run(f"{number:02} {command}", command, may_be_refused=True)
