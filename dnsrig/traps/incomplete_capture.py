"""The replayed capture lacks a part of the clients' queries: packets were dropped or cut, only one direction was
captured, or TCP is missing.

Lost packets are usually lost in bursts, when the server was busiest, so the replay is easier than the original traffic.
Cut packets (tcpdump without `-s 0`) contain no query that can be sent. The longest are lost first: queries with EDNS,
cookies and padding. Without answers it is not known which query was repeated because the first was lost.

A capture of UDP alone lacks the queries that clients repeat over TCP after a truncated answer. The replay then spares
the server these connections.

How it is detected: from the accounting of `replay prepare`, namely cut datagrams, fragments and segments whose
neighbours are missing, answers without queries, queries without answers, and truncated answers after which few clients
repeat the query over TCP. Senders with forged addresses do not repeat it either.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dnsrig.runs import streamed
from dnsrig.runs.trial import Trial
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 60
GROUP = "resolvers and replayed traffic"
OUTCOMES = JUDGED
TITLE = "the capture lacks packets, a direction or TCP"
SOURCE = "tcpdump(1), -s and `packets dropped by kernel`; S5 replays captures of both directions"
SHARE = 0.001
"""Share of the packets above which drops and cuts count."""
ANSWERED_SHARE = 0.5
"""Least share of queries with an answer: a server that answers fewer is unlikely to be captured."""
FEWEST = 100
"""Least number of queries over UDP for which shares are meaningful."""
FOLLOWED_SHARE = 0.5
"""Least share of truncated answers that clients follow with TCP: nearly all clients do (RFC 7766, 5)."""
FEWEST_TRUNCATED = 20
"""Least number of truncated answers for which that share is meaningful: with fewer, half may be missing by chance."""


def after(trial: Trial) -> Conclusion | None:
    if (stream := streamed.of(trial)) is None:
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
        told.append(f"the capturing program dropped {dropped:,} packets, according to the file")
    if not told:
        return CLEAR
    return Conclusion(
        "found",
        summary=f"The capture lacks a part of the clients' queries: {'; '.join(told)}.",
        evidence=evidence | {"captures_cut": len(ended), "packets_dropped": dropped},
        metrics=(trial.record.spec.main_metric, "answered_qps"),
        remedy="Capture again, both directions, UDP and TCP, with `tcpdump -s 0 -B 65536 'port 53'`, until tcpdump reports at its end "
        "that the kernel dropped no packets (docs/how-to/replay.md).",
    )


def signs(accounting: Mapping[str, Mapping[str, Any]]) -> tuple[list[str], dict[str, int | float]]:
    """What is missing, as clauses of a sentence, and the numbers."""
    datagrams, messages = accounting["datagrams"], accounting["messages"]
    segments, fragments = accounting["tcp_segments"], accounting["fragments"]
    cut = datagrams["cut"] + fragments["malformed"]
    of_dns = datagrams["udp"] + datagrams["tcp_segments"] + datagrams["tcp_answers"] + cut
    # Streams of earlier versions have no count of holes.
    missing = segments["behind_hole"] + segments.get("holes", 0) + fragments["incomplete"]
    # Records of dnstap and C-DNS contain the information which answers they have.
    over_udp = messages["udp"] if not messages["records"] else 0
    answers = messages["answers"] if over_udp else 0
    truncated = messages.get("truncated", 0)
    asked = over_udp - answers
    told = []
    if of_dns and cut > SHARE * of_dns:
        told.append(f"{cut:,} of {of_dns:,} datagrams from or to a DNS port were cut")
    if missing > SHARE * max(1, datagrams["tcp_segments"] + fragments["read"]):
        told.append(f"{missing:,} segments and fragments lack their neighbours")
    if max(asked, answers) >= FEWEST:
        if answers < ANSWERED_SHARE * asked:
            told.append(
                f"only {answers:,} of {asked:,} queries over UDP have an answer: perhaps only one direction was captured"
            )
        elif answers - asked > SHARE * answers:
            told.append(f"{answers - asked:,} of {answers:,} answers over UDP have no query: it was dropped")
    if truncated >= FEWEST_TRUNCATED and messages["tcp"] < FOLLOWED_SHARE * truncated:
        told.append(
            f"{truncated:,} answers were truncated, and {messages['tcp']:,} queries came over TCP: TCP may be missing from the capture"
        )
    return told, {
        "datagrams": of_dns,
        "datagrams_cut": cut,
        "without_neighbours": missing,
        "queries_udp": asked,
        "answers_udp": answers,
        "answers_truncated": truncated,
    }
