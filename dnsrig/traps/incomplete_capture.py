"""The capture that is replayed is not all that clients asked: packets were dropped, cut, or seen in one direction only,
or those of TCP are missing.

A capture that lost packets lost some in bursts, when the server was busiest: what is replayed is easier than what was
asked. Packets that were cut (tcpdump without `-s 0`) hold no query that can be sent, and the longest go first: those
with EDNS, cookies and padding. And without answers nobody knows which query was asked again because it was lost.

A capture of UDP alone lacks what clients ask again over TCP after a truncated answer: a replay then spares the server
its connections.

It is told by the accounting of `replay prepare`: datagrams that were cut, fragments and segments whose neighbours are
missing, answers to queries that are not there, queries without answers, and truncated answers after which few ask again
over TCP. Those who forge addresses do not either.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dnsrig.analysis.read import Trial
from dnsrig.traps import CLEAR, Conclusion, cannot_tell
from dnsrig.traps._replayed import replayed

ORDER = 60
TITLE = "a capture with drops, cut packets, one direction only or without TCP"
SOURCE = "tcpdump(1), -s and `packets dropped by kernel`; S5 replays captures of both directions"
SHARE = 0.001
"""Of the packets, from which drops and cuts count."""
ANSWERED_SHARE = 0.5
"""Of the queries: a server that answers fewer is hardly one that anybody would capture."""
FEWEST = 100
"""Queries over UDP, from which shares say something."""
FOLLOWED_SHARE = 0.5
"""Of the truncated answers: nearly all clients ask again over TCP (RFC 7766, 5)."""
FEWEST_TRUNCATED = 20
"""Truncated answers, from which that share says something: with fewer, chance alone may leave half of them out."""


def after(trial: Trial) -> Conclusion | None:
    if (stream := replayed(trial)) is None:
        return None
    if stream.kind != "capture":
        return CLEAR
    if not stream.accounting:
        return cannot_tell("There is no accounting of the capture.")
    told, evidence = signs(stream.accounting)
    ended = [f"{capture['path']}: {capture['ended']}" for capture in stream.captures if capture.get("ended")]
    if ended:
        told.append(f"the end of {len(ended)} of {len(stream.captures)} captures could not be read ({ended[0]})")
    dropped = sum(capture.get("dropped") or 0 for capture in stream.captures)
    if dropped:
        told.append(f"the capturing program dropped {dropped:,} packets, as the file says")
    if not told:
        return CLEAR
    return Conclusion(
        "found",
        summary=f"The capture is not all that clients asked: {'; '.join(told)}.",
        evidence=evidence | {"captures_cut": len(ended), "packets_dropped": dropped},
        metrics=(trial.record.spec.main_metric, "answered_qps"),
        remedy="Capture again, both directions, UDP and TCP, with `tcpdump -s 0 -B 65536 'port 53'`, until tcpdump says at its end "
        "that the kernel dropped no packet (docs/how-to/replay.md).",
    )


def signs(accounting: Mapping[str, Mapping[str, Any]]) -> tuple[list[str], dict[str, int | float]]:
    """What is missing, as clauses of a sentence, and the numbers."""
    datagrams, messages = accounting["datagrams"], accounting["messages"]
    segments, fragments = accounting["tcp_segments"], accounting["fragments"]
    cut = datagrams["cut"] + fragments["malformed"]
    of_dns = datagrams["udp"] + datagrams["tcp_segments"] + datagrams["tcp_answers"] + cut
    # Streams of earlier versions have no count of holes.
    missing = segments["behind_hole"] + segments.get("holes", 0) + fragments["incomplete"]
    # Records of dnstap and C-DNS say by themselves which answers they have.
    over_udp = messages["udp"] if not messages["records"] else 0
    answers = messages["answers"] if over_udp else 0
    truncated = messages.get("truncated", 0)
    asked = over_udp - answers
    told = []
    if of_dns and cut > SHARE * of_dns:
        told.append(f"{cut:,} of {of_dns:,} datagrams from or to a port of DNS were cut")
    if missing > SHARE * max(1, datagrams["tcp_segments"] + fragments["read"]):
        told.append(f"{missing:,} segments and fragments lack their neighbours")
    if max(asked, answers) >= FEWEST:
        if answers < ANSWERED_SHARE * asked:
            told.append(f"of {asked:,} queries over UDP {answers:,} have an answer: it may be one direction only")
        elif answers - asked > SHARE * answers:
            told.append(f"of {answers:,} answers over UDP {answers - asked:,} have no query, which was dropped")
    if truncated >= FEWEST_TRUNCATED and messages["tcp"] < FOLLOWED_SHARE * truncated:
        told.append(
            f"{truncated:,} answers were truncated, and {messages['tcp']:,} queries came over TCP: it may be missing"
        )
    return told, {
        "datagrams": of_dns,
        "datagrams_cut": cut,
        "without_neighbours": missing,
        "queries_udp": asked,
        "answers_udp": answers,
        "answers_truncated": truncated,
    }
