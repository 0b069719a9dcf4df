"""TLS sessions should have been resumed, but most connections paid for a full handshake.

One new TLS connection for each zone costs a signature and a key exchange each time, unless it resumes the session of an
earlier connection (RFC 8446, 2.2). For that the server must have issued a ticket. If it issues none, or too few for
connections that are opened at the same time, the resumed case is the same as the new one: the experiment then compares
a thing with itself.

How it is detected: a connection could have had a ticket if the same secondary already had an established connection.
The trap counts the full handshakes among these connections.
"""

from __future__ import annotations

from dnsrig.runs import transfers
from dnsrig.runs.transfers import FEWEST, Handshakes, handshakes_of
from dnsrig.runs.trial import Trial
from dnsrig.text import digits
from dnsrig.traps import CLEAR, JUDGED, Conclusion, cannot_tell, of_servers

ORDER = 43
GROUP = "zone transfers"
OUTCOMES = JUDGED
TITLE = "full TLS handshakes instead of resumed sessions"
SOURCE = "RFC 8446, 2.2 and 4.6.1; measured: 100 and more zones a second resumed, 22 in full (NSD)"
WEIGHT = "explains"
SMALLEST_SHARE = 0.5
"""Smallest share of full handshakes among those that could have resumed a session."""


def after(trial: Trial) -> Conclusion | None:
    if trial.transfers.is_empty() or not transfers.expects_resumption(trial):
        return None
    if trial.connections.is_empty():
        return cannot_tell("There is no connections.arrow, or it is empty.")
    found = handshakes_of(trial.connections)
    if found.full + found.resumed == 0:
        return cannot_tell("No TLS handshake was completed.")
    if found.could_resume < FEWEST or found.could_resume_full < SMALLEST_SHARE * found.could_resume:
        return CLEAR
    return _found(trial, found)


def _found(trial: Trial, found: Handshakes) -> Conclusion:
    took = "" if found.full_ms is None else f", with a median of {digits(found.full_ms)} ms"
    setting = of_servers(trial, "full-handshakes", trial.hosts_as("primary"))
    beside = f" (resumed ones: {digits(found.resumed_ms)} ms)" if found.resumed_ms is not None else ""
    return Conclusion(
        "found",
        summary=f"{found.could_resume_full:,} of {found.could_resume:,} TLS handshakes that could have resumed a session were full{took}{beside}.",
        evidence={
            "full_handshakes": found.full,
            "resumed_handshakes": found.resumed,
            "could_have_resumed": found.could_resume,
            "full_all_the_same": found.could_resume_full,
            "full_median_ms": None if found.full_ms is None else round(found.full_ms, 3),
            "resumed_median_ms": None if found.resumed_ms is None else round(found.resumed_ms, 3),
        },
        metrics=(trial.record.spec.main_metric, "zones_per_s", "full_handshakes", "connections_made"),
        remedy=f"Let the primary issue session tickets{setting}, more of them if connections are opened at the same time, "
        "and keep its ticket key over restarts; or keep connections open (options.policy reused or pipelined), which needs no tickets.",
    )
