"""Where queries and answers over UDP were lost: what the kernels on the way counted, beside what the generator counted.

The generator's own counts are one witness. The kernels of both hosts are another: they count the datagrams of sockets
(RFC 4113) and the packets of interfaces (/proc/net/dev). The samples are of moments before the first query and after
the last answer, when nothing is under way, so that the counts agree to the packet.

Interfaces count packets, and a packet of UDP GSO has several queries. So datagrams are compared with datagrams, and
packets, which say where datagrams were lost, with packets.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from dnsrig.runs.trial import Trial, total

SWEEP_NS = 50_000_000
"""One sample reads host by host. The last host is read by less than this after the time of the sample."""
Where = Literal["generator", "wire", "server"]


@dataclass(frozen=True)
class Loss:
    """Datagrams that were lost in one place."""

    where: Where
    datagrams: int
    why: str
    """The place in words."""


@dataclass(frozen=True)
class Counts:
    """What was counted between the generators and the server under test, from before the first query until after the
    last answer. Datagrams, except those that end in ``_packets``."""

    sent: int
    """Queries that the generators sent, as they say."""
    send_errors: int
    """Packets that the queue of a generator's interface did not take."""
    sent_packets: int
    sent_by_interface_packets: int
    received_by_interface_packets: int
    received: int
    """Queries that reached the server's sockets."""
    received_full: int
    """Queries that the server's sockets had no room for."""
    answered: int
    """Answers that the server's sockets sent."""
    answer_errors: int
    """Packets that the queue of the server's interface did not take."""
    answered_by_interface_packets: int
    sent_elsewhere_packets: int
    """Packets that other interfaces of the server's host sent: a secondary asks its primary meanwhile."""
    returned_by_interface_packets: int
    returned: int
    """Answers that reached the generators' sockets."""
    returned_full: int
    """Answers that the generators' sockets had no room for."""

    @property
    def losses(self) -> list[Loss]:
        """Each place in which datagrams were lost, in the order of the way."""
        on_the_way = self.sent - self.received - self.received_full
        not_here = max(0, self.answered - self.answered_by_interface_packets)
        elsewhere = min(not_here, self.sent_elsewhere_packets)
        # The kernel counts a datagram that the queue refuses as an error, and not as sent.
        in_queue = self.answer_errors + not_here - elsewhere
        unanswered = self.received - self.answered - self.answer_errors
        on_the_way_back = self.answered - not_here - self.returned - self.returned_full
        found = [
            Loss(self._of_queries[0], on_the_way, self._of_queries[1]),
            Loss("server", self.received_full, "at the server's socket, whose buffer was full"),
            Loss("server", unanswered, "in the server, or in another program on its port, which did not answer"),
            Loss("server", in_queue, "in the queue of the server's interface"),
            Loss(self._of_answers[0], on_the_way_back, self._of_answers[1]),
            Loss("generator", self.returned_full, "at the generator's socket, whose buffer was full"),
        ]
        return [loss for loss in found if loss.datagrams > 0]

    @property
    def _of_queries(self) -> tuple[Where, str]:
        """Where queries were lost that the generator sent and no socket of the server saw."""
        if self.send_errors or self.sent_packets > self.sent_by_interface_packets:
            return "generator", "in the queue of the generator's interface"
        if self.sent_by_interface_packets > self.received_by_interface_packets:
            return "wire", "between the interfaces, on the way to the server"
        return "server", "between the server's interface and its socket"

    @property
    def _of_answers(self) -> tuple[Where, str]:
        """Where answers were lost that left the server and that no socket of the generator saw."""
        if self.answered_by_interface_packets > self.returned_by_interface_packets:
            return "wire", "between the interfaces, on the way back"
        return "generator", "between the generator's interface and its socket"


def are_counted(trial: Trial) -> bool:
    """Whether the trial has a load in which each query is a datagram, between hosts that are watched."""
    spec, load = trial.record.spec, trial.load
    over_udp = load.model in ("rate", "closed") and load.transport == "udp"
    # What resolvers and frontends ask is in the counts of their sockets, and an emulated path loses what it is set to.
    alone = spec.hosts[trial.subject].role not in ("resolver", "frontend")
    emulated = any(
        link.emulated and trial.subject in link.ends and {*link.ends} & {*spec.generators} for link in spec.links
    )
    return over_udp and alone and not emulated and {*spec.generators, trial.subject} <= set(spec.hosts)


def counts(trial: Trial) -> Counts | None:
    """The counts of the load; None if there was none over UDP, or if a sample is missing."""
    if not are_counted(trial):
        return None
    spec, load = trial.record.spec, trial.load
    generators, subject = list(spec.generators), trial.subject
    inward = dict.fromkeys(spec.interface(subject, host) for host in generators)
    peers = {host for link in spec.links if subject in link.ends for host in link.ends} - {subject}
    others = {spec.interface(subject, host) for host in peers} - set(inward)

    def udp(hosts: Iterable[str], name: str) -> float | None:
        return total(_growth(trial, host, source, name) for host in hosts for source in ("udp", "udp6"))

    def outside(name: str) -> float | None:
        return total(_growth(trial, host, spec.interface(host, subject), name) for host in generators)

    def inside(name: str) -> float | None:
        return total(_growth(trial, subject, interface, name) for interface in inward)

    def elsewhere() -> float | None:
        return total(_growth(trial, subject, interface, "tx_packets") for interface in others) if others else 0.0

    found = {
        "sent": float(load.sent),
        "send_errors": udp(generators, "sndbuf_errors"),
        "sent_packets": udp(generators, "out_datagrams"),
        "sent_by_interface_packets": outside("tx_packets"),
        "received_by_interface_packets": inside("rx_packets"),
        "received": udp([subject], "in_datagrams"),
        "received_full": udp([subject], "rcvbuf_errors"),
        "answered": udp([subject], "out_datagrams"),
        "answer_errors": udp([subject], "sndbuf_errors"),
        "answered_by_interface_packets": inside("tx_packets"),
        "sent_elsewhere_packets": elsewhere(),
        "returned_by_interface_packets": outside("rx_packets"),
        "returned": udp(generators, "in_datagrams"),
        "returned_full": udp(generators, "rcvbuf_errors"),
    }
    known = {name: int(value) for name, value in found.items() if value is not None}
    return Counts(**known) if len(known) == len(found) else None


def _growth(trial: Trial, host: str, source: str, name: str) -> float | None:
    """How much a counter grew from the last sample before the first query was due to the first sample after
    `measure`."""
    start_ns, phase = trial.load.start_ns - SWEEP_NS, trial.measure
    if phase is None:
        return None
    rows = list(trial.series(host, source, name).iter_rows())
    before = [value for at_ns, value in rows if at_ns <= start_ns]
    after = [value for at_ns, value in rows if at_ns >= phase.end.monotonic_ns]
    return float(after[0] - before[-1]) if before and after else None
