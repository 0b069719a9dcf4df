"""What other servers answer from the zones that a simulated Internet dumps is what it answers itself."""

from __future__ import annotations

import os
import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset
import pytest
import world_oracles
import world_server
from world_oracles import LEVELS, Dump, Question

from dnsrig.lab.network import Network
from dnsrig.rundir import HostSpec, LinkSpec

CPUS = sorted(os.sched_getaffinity(0))
KINDS = ["bind", "knot", "nsd"]
SETTINGS = [
    "tlds.count=20",
    "hosting.hosters=10",
    "signing.share=0.5",
    "signing.tlds.signed=0.5",
    "signing.tlds.nsec3=0.7",
    "signing.zones.nsec3=0.5",
    "signing.zones.ed25519=0.2",
    "zones.wildcard=0.7",
    "zones.empty_non_terminal=0.5",
]
QUESTIONS = {"root": 200, "tlds": 300, "zones": 500}
"""So many of each level."""
FEW, MANY = 1, 8
"""So many times those."""
FLAGS = dns.flags.QR | dns.flags.AA | dns.flags.TC | dns.flags.RD | dns.flags.RA | dns.flags.AD | dns.flags.CD
SHAPES = {
    *("root referral DS", "root referral NSEC", "root NXDOMAIN NSEC", "root no data NSEC", "root answer"),
    *("tlds referral DS", "tlds referral NSEC", "tlds referral NSEC3", "tlds referral", "tlds answer", "tlds REFUSED"),
    *(f"{level} {what}{proof}" for level in LEVELS[1:] for what in ("NXDOMAIN", "no data") for proof in ("", " NSEC")),
    *(f"{level} {what} NSEC3" for level in LEVELS[1:] for what in ("NXDOMAIN", "no data")),
    *("zones answer", "zones answer NSEC", "zones answer NSEC3", "zones REFUSED"),
}
"""Kinds of answers, with the strongest proof in them; an answer with a proof comes of a wildcard."""


Record = tuple[str, int, dns.rdatatype.RdataType, bytes]


@dataclass(frozen=True)
class Answer:
    """An answer without what two servers may choose freely: the order of records, and the case of letters."""

    rcode: dns.rcode.Rcode
    flags: int
    edns_flags: int
    answer: frozenset[Record]
    authority: frozenset[Record]
    additional: frozenset[Record]

    @classmethod
    def of(cls, message: dns.message.Message) -> Answer:
        sections = (records(message.answer), records(message.authority), records(message.additional))
        return cls(message.rcode(), message.flags & FLAGS, message.ednsflags & dns.flags.DO, *sections)

    def differs(self, other: Answer) -> set[str]:
        """In which parts."""
        return {part for part in self.__dataclass_fields__ if getattr(self, part) != getattr(other, part)}


def records(section: list[dns.rrset.RRset]) -> frozenset[Record]:
    """With signatures as they are: both have the nonces of RFC 6979."""
    return frozenset(
        (rrset.name.to_text().lower(), rrset.ttl, rrset.rdtype, data.to_digestable())
        for rrset in section
        for data in rrset
    )


def types(section: frozenset[Record]) -> set[str]:
    return {dns.rdatatype.to_text(rtype) for _, _, rtype, _ in section}


def adds_addresses(question: Question, ours: Answer, theirs: Answer) -> bool:
    """The addresses of the hosts that MX and SRV records name: RFC 1035 §3.3.9 and RFC 2782 leave that to a server."""
    return (
        ours.differs(theirs) == {"additional"}
        and question.rtype in ("MX", "SRV")
        and ours.additional < theirs.additional
        and types(theirs.additional) <= {"A", "AAAA", "RRSIG"}
    )


def primes_without_addresses(question: Question, ours: Answer, theirs: Answer) -> bool:
    """The root's NS records without the addresses of its servers, which RFC 9609 §4.1 expects beside them."""
    return (
        ours.differs(theirs) == {"additional"}
        and (question.name, question.rtype) == (".", "NS")
        and types(ours.additional) >= {"A", "AAAA"}
        and not theirs.additional
    )


def follows_aliases(question: Question, ours: Answer, theirs: Answer) -> bool:
    """To another zone that it has: RFC 1034 §4.3.2 has it so, but a resolver uses only what is of the zone asked."""
    return (
        ours.differs(theirs) <= {"answer", "authority"}
        and "CNAME" in types(ours.answer)
        and ours.answer <= theirs.answer
        and ours.authority <= theirs.authority
    )


def proves_more(question: Question, ours: Answer, theirs: Answer) -> bool:
    """Of a wildcard that is asked for by its own name, more than that it has no such type (RFC 5155 §7.2.3)."""
    return (
        ours.differs(theirs) == {"authority"}
        and question.name.startswith("*.")
        and ours.authority < theirs.authority
        and types(theirs.authority - ours.authority) <= {"NSEC3", "RRSIG"}
    )


Difference = Callable[[Question, Answer, Answer], bool]
DIFFERENCES: dict[str, list[Difference]] = {
    "bind": [primes_without_addresses],
    "knot": [adds_addresses],
    "nsd": [follows_aliases, proves_more],
}
"""What is known; docs/explanation/world.md has it in words."""


def shape(level: str, answer: Answer) -> str:
    if answer.rcode != dns.rcode.NOERROR:
        kind = dns.rcode.to_text(answer.rcode)
    elif not answer.flags & dns.flags.AA:
        kind = "referral"
    else:
        kind = "answer" if answer.answer else "no data"
    found = types(answer.authority)
    proof = next((rtype for rtype in ("DS", "NSEC3", "NSEC") if rtype in found), None)
    return f"{level} {kind} {proof}" if proof else f"{level} {kind}"


def chosen(dump: Dump, times: int) -> dict[str, list[Question]]:
    """Some questions of each level, by the zone that they are asked about."""
    by_level: dict[str, list[tuple[str, Question]]] = defaultdict(list)
    for zone in dump.files:
        by_level[dump.level(zone)] += [(zone, question) for question in dump.questions(zone)]
    found: dict[str, list[Question]] = defaultdict(list)
    for level, every in by_level.items():
        for zone, question in random.Random(1).sample(every, min(QUESTIONS[level] * times, len(every))):
            found[zone].append(question)
    return found


@pytest.mark.parametrize(
    ("kind", "zones", "times"),
    [
        pytest.param("bind", 60, FEW, id="bind-few", marks=pytest.mark.full),
        *(pytest.param(kind, 200, MANY, id=f"{kind}-many", marks=pytest.mark.full) for kind in KINDS),
    ],
)
def test_another_server_answers_the_same(tmp_path: Path, kind: str, zones: int, times: int) -> None:
    """Takes a minute or more with many zones: eight thousand questions are asked one by one, of two servers."""
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    folder = tmp_path / "dump"
    world = world_server.make(tmp_path / "world.toml", "--zones", str(zones), *settings, "--dump", str(folder))
    dump = Dump(folder)
    names = ["client", "internet", *LEVELS]
    specs = {name: HostSpec(address=f"198.18.0.{number}", cpus=CPUS) for number, name in enumerate(names, 2)}
    links = [LinkSpec(ends=(name, "client")) for name in names[1:]]
    unexpected, shapes = {}, set()
    with Network(specs, links, directory=tmp_path) as network:
        client, internet = network.hosts["client"], network.hosts["internet"]
        world_server.route(internet, client)
        others = {level: network.hosts[level] for level in LEVELS}
        with (
            world_server.serve(world, internet, "--reproducible"),
            world_oracles.serve(kind, dump, others, tmp_path / kind),
        ):
            for zone, questions in chosen(dump, times).items():
                level = dump.level(zone)
                with (
                    world_oracles.asking(client, dump.address(zone)) as to_world,
                    world_oracles.asking(client, specs[level].address) as to_other,
                ):
                    for question in questions:
                        messages = [world_oracles.ask(to, question) for to in (to_world, to_other)]
                        ours, theirs = map(Answer.of, messages)
                        shapes.add(shape(level, ours))
                        if ours != theirs and not any(known(question, ours, theirs) for known in DIFFERENCES[kind]):
                            unexpected[question] = [zone, ours.differs(theirs), *map(str, messages)]
    assert unexpected == {}
    assert shapes >= SHAPES
