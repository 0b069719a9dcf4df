"""A congestion control was set on the receiving side, where it changes nothing.

Congestion control governs what a host sends (RFC 5681): in a zone transfer that is the primary's side. The secondary,
however far away it is, sends only queries and acknowledgements. If you tune only the far site, you measure the
primary's default again.

How it is detected: a host was given a congestion control, but another host sent the data of the largest connection, and
its socket used a different one.
"""

from __future__ import annotations

from dnsrig.runs import sockets
from dnsrig.runs.sockets import Flow
from dnsrig.runs.trial import Trial
from dnsrig.text import digits
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell

ORDER = 42
GROUP = "the network and TCP"
OUTCOMES = JUDGED
TITLE = "congestion control set on the receiver only"
SOURCE = "S4: M. Prause: only the sender's algorithm matters (2015); RFC 5681"
WITHOUT_TCP = ("udp", "doq")


def after(trial: Trial) -> Conclusion | None:
    asked = asked_of(trial)
    if not asked or trial.record.spec.transfer.quic:
        return None  # over QUIC a library has its own congestion control
    flow = sockets.largest(trial)
    if flow is None and trial.load.transport in WITHOUT_TCP:
        return None
    if flow is None:
        return cannot_tell(
            "The sockets of this trial were not listed, so it is not known which side sent, and with which congestion control."
        )
    of_receiver = asked.get(flow.receiver)
    if of_receiver is None or flow.congestion == of_receiver:
        return CLEAR
    return _found(trial, flow, of_receiver)


def asked_of(trial: Trial) -> dict[str, str]:
    """Host -> the congestion control that the experiment set, on its routes or, for the client of an instrument, on its
    sockets."""
    found = {name: host.congestion for name, host in trial.record.spec.hosts.items() if host.congestion}
    of_instrument = trial.record.spec.options.get("congestion")
    return {**found, "client": str(of_instrument)} if of_instrument else found


def _found(trial: Trial, flow: Flow, asked: str) -> Conclusion:
    return Conclusion(
        "found",
        summary=f"The {flow.receiver} was given {asked}, but it received: the {digits(flow.nbytes / 1e6)} MB of the largest connection came from "
        f"the {flow.sender}, whose socket used {flow.congestion}.",
        evidence={
            "asked_of_receiver": asked,
            "used_by_sender": flow.congestion,
            "asked_of_sender": asked_of(trial).get(flow.sender),
            "bytes": flow.nbytes,
        },
        metrics=(trial.record.spec.main_metric, "throughput_kbytes_per_s", "transfer_time_s", "cwnd_segments"),
        remedy=f'Set it on the sending side: hosts.{flow.sender}.congestion = "{asked}" (ip-route(8), congctl).',
    )
