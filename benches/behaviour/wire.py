"""Conversations as lines: a line a message, in hexadecimal, and for each conversation how it ended.

What no two runs share is replaced: ports chosen by the kernel, and in TSIG records (RFC 8945 §4.2) the time and the
MAC, after the MAC was checked: `good`, or the error. DNS ids stay, except in merged conversations: the engine hands
them out in turn.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import dns.exception
import dns.name
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.tsig

from behaviour.capture import Conversation, Stream

PORT_OF_KERNEL = 32768
"""From here on ports are ephemeral ones (net.ipv4.ip_local_port_range); servers of the runs have lower ones."""
FIXED_BYTES = 10
"""Of a record: type, class, TTL and length of data (RFC 1035 §4.1.3)."""


@dataclass(frozen=True)
class View:
    """How a run's packets are compared."""

    key: str | None = None
    """ALGORITHM:NAME:SECRET, with which messages are signed."""
    messages: int | None = None
    """Only so many messages of each direction, or of merged conversations so many queries, where a run ends by the
    clock."""
    merged: bool = False
    """All conversations between two addresses as one, its messages in order of sending, with ids left out: which of
    several clients sends a query is decided by the clock."""
    in_order: bool = True
    """Of merged conversations; else sorted, where several threads or connections share the work."""
    distinct: bool = False
    """Of merged conversations each message once: how often it is asked is decided by the clock."""
    closes: bool = True
    """How connections ended counts; not where both sides close at the same time, or a process is stopped."""


class _Signatures:
    """Checks the signatures of one conversation. Only the TSIG record is looked for: to read all others takes too
    long."""

    def __init__(self, key: str) -> None:
        algorithm, name, secret = key.split(":")
        self._key = dns.tsig.Key(name, secret, algorithm)
        self._owner, self._algorithm = _wire(self._key.name), _wire(self._key.algorithm)
        self._macs: dict[int, bytes] = {}
        self._contexts: dict[int, Any] = {}

    def replace(self, message: bytes, is_answer: bool) -> tuple[bytes, str]:
        """The message without time and MAC; and what is to say of its signature."""
        name = int.from_bytes(message[:2], "big")
        if (at := message.rfind(self._algorithm)) < 0:
            if is_answer and (context := self._contexts.get(name)):
                context.update(message)
            return message, " unsigned"
        length = int.from_bytes(message[at - 2 : at], "big")
        tsig: Any = dns.rdata.from_wire(dns.rdataclass.ANY, dns.rdatatype.TSIG, message, at, length)
        if not is_answer:
            self._macs[name] = tsig.mac
            self._contexts.pop(name, None)
        start = at - FIXED_BYTES - len(self._owner)
        is_ours = message[start:].startswith(self._owner)
        verdict = self._verify(message, start, tsig, name, is_answer) if is_ours else "of another key"
        time_at = at + len(self._algorithm)
        mac_at = time_at + 10
        id_at = mac_at + len(tsig.mac)
        blank = bytearray(message)
        blank[time_at : time_at + 6] = bytes(6)
        blank[mac_at:id_at] = bytes(len(tsig.mac))
        if blank[id_at : id_at + 2] == message[:2]:
            blank[id_at : id_at + 2] = bytes(2)
        return bytes(blank), f" {verdict}"

    def _verify(self, message: bytes, start: int, tsig: Any, name: int, is_answer: bool) -> str:
        asked = self._macs.get(name, b"") if is_answer else b""
        context = self._contexts.get(name) if is_answer else None
        try:
            context = dns.tsig.validate(  # type: ignore[no-untyped-call]
                message, self._key, self._key.name, tsig, int(time.time()), asked, start, context, is_answer
            )
        except dns.exception.DNSException as error:
            return type(error).__name__
        if is_answer:
            self._contexts[name] = context
        return "good"


def _wire(name: dns.name.Name) -> bytes:
    found = name.to_wire()
    assert found is not None
    return found


def lines(conversations: list[Conversation], view: View) -> list[str]:
    """Of all of them; in an order that does not depend on ports and on which connection was made first."""
    kinds: dict[str, list[list[str]]] = {}
    for talk in conversations:
        kinds.setdefault(_title(talk), []).append(_one(talk, view))
    found = []
    for title in sorted(kinds):
        if view.merged:
            found += [title, *_merged([talk for talk in conversations if _title(talk) == title], view)]
        else:
            for number, content in enumerate(sorted(kinds[title])):
                found += [f"{title} #{number}", *content]
    return found


def _title(talk: Conversation) -> str:
    ends = [f"{host}:{port if port < PORT_OF_KERNEL else '*'}" for host, port in (talk.client, talk.server)]
    return f"{talk.protocol} {ends[0]} -> {ends[1]}"


def _one(talk: Conversation, view: View) -> list[str]:
    both = _messages(talk, view)
    found = []
    for sign in "><":
        found += [text for _, text in both if text[0] == sign][: view.messages]
    if talk.protocol == "tcp" and view.closes:
        found.append(f"ended: {talk.asked.end}, {talk.answered.end}")
    return found


def _merged(talks: list[Conversation], view: View) -> list[str]:
    both = sorted(message for talk in talks for message in _messages(talk, view))
    found = []
    # Which answers are the first ones is decided by which client gets the CPU.
    for sign in "><" if view.messages is None else ">":
        texts = [f"{sign} id{text[6:]}" for _, text in both if text[0] == sign][: view.messages]
        if view.distinct:
            texts = list(dict.fromkeys(texts))
        found += texts if view.in_order and sign == ">" else sorted(texts)
    return found


def _messages(talk: Conversation, view: View) -> list[tuple[int, str]]:
    """All messages of both directions in the order in which they were complete."""
    both = [(number, ">", message) for number, message in _cut(talk.protocol, talk.asked)]
    both += [(number, "<", message) for number, message in _cut(talk.protocol, talk.answered)]
    signatures = _Signatures(view.key) if view.key else None
    found = []
    for number, sign, message in sorted(both, key=lambda one: one[0]):
        is_whole = len(message) >= 12
        shown, note = signatures.replace(message, sign == "<") if signatures and is_whole else (message, "")
        found.append((number, f"{sign} {shown.hex()}{note}"))
    return found


def _cut(protocol: str, stream: Stream) -> list[tuple[int, bytes]]:
    """Messages, and with which packet each was complete; over TCP the prefix of two bytes is taken off (RFC 1035
    §4.2.2)."""
    if protocol == "udp":
        return stream.pieces
    found, rest = [], b""
    for number, piece in stream.pieces:
        rest += piece
        while len(rest) >= 2 and len(rest) - 2 >= (length := int.from_bytes(rest[:2], "big")):
            found.append((number, rest[2 : 2 + length]))
            rest = rest[2 + length :]
    if rest:
        found.append((stream.pieces[-1][0], rest + b" unfinished"))
    return found
