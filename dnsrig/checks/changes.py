"""Checks of changes: whether zones changed, and how the server under test learned of it."""

from __future__ import annotations

import statistics

import polars as pl

from dnsrig.checks import Seen, cannot_tell, check
from dnsrig.runs import changes, sockets
from dnsrig.runs.replication import INSTRUMENT
from dnsrig.runs.trial import Trial


@check(title="changes accepted by the primary", unit="% of changes due")
def changes_made(trial: Trial) -> Seen:
    """Share of the changes that were due on the primary during the measurement that it accepted.

    If a primary refuses dynamic updates or is too slow for them, its secondaries are at rest. At least 80 % must be
    accepted: then the measurement is still one "while zones change at this rate".
    """
    made, due = changes.made(trial), changes.due(trial)
    if made is None or not due:
        return cannot_tell("changes.arrow has no rows")
    return Seen(
        min(100.0, 100 * made / due),
        least=80.0,
        asked=float(trial.record.spec.options["changes_per_s"]),
        why=f"it accepted {made:,} of about {due:,.0f}",
        series=("changes.arrow/accepted_ns",),
    )


@check(title="changes served by the server under test", unit="% of accepted changes")
def changes_served(trial: Trial) -> Seen:
    """Share of the changes accepted by the primary during the measurement that the server under test also served in
    that time.

    The observer asks the server under test for the SOA of up to 100 zones that change, about 200 times a second in
    total. The server gives no answer for a catalog member that left, answers for one that came back, and answers with
    another serial for a zone that changed. Changes of the last moments cannot be served in time. If a server applies
    changes late or many at a time, this is a result, not a fault of the trial; `change-delay` shows how late. But a
    server that serves almost none was at rest, so at least 10 % must be served, and at least three changes.
    """
    if trial.followed.is_empty():
        return cannot_tell("the zones that change were not observed (followed.arrow has no rows)")
    followed = changes.followed(trial)
    served = sum(change.served_ns is not None for change in followed)
    share = 100 * served / len(followed) if followed else 0.0
    return Seen(
        share if served >= 3 else 0.0,
        least=10.0,
        why=f"{served:,} of {len(followed):,} observed changes were served in time",
        series=("followed.arrow/seen_ns", "changes.arrow/accepted_ns"),
    )


@check(title="delay of served changes", unit="ms")
def change_delay(trial: Trial) -> Seen:
    """Median time from the acceptance of a change to the first answer with it by the server under test, for changes
    that it served.

    It must be shorter than the measurement. Resolution: zones are queried in turn, so about half a second.
    """
    phase = trial.measure
    delays = [(each.served_ns - each.made_ns) / 1e6 for each in changes.followed(trial) if each.served_ns is not None]
    if not delays or phase is None:
        return cannot_tell("no served change was observed")
    measured_ms = (phase.end.monotonic_ns - phase.start.monotonic_ns) / 1e6
    return Seen(statistics.median(delays), most=measured_ms, series=("followed.arrow/seen_ns",))


@check(title="generations published by the primary", unit="% of generations")
def generations_published(trial: Trial) -> Seen:
    """Share of the loaded generations with which the primary answered, as seen by an observer near it. A secondary
    cannot transfer a generation that the primary does not have."""
    made = trial.record.instruments.get(INSTRUMENT, {}).get("generations") or []
    if not made:
        return cannot_tell("no generation was made")
    published = sum(each["published_ns"] is not None for each in made)
    return Seen(100 * published / len(made), least=100.0, asked=len(made), why=f"{published} of {len(made)}")


@check(title="updates accepted by the primary", unit="% of updates sent")
def updates_accepted(trial: Trial) -> Seen:
    """Share of the changes sent as dynamic updates (RFC 2136) that the primary accepted. It must accept all, because
    the trial waits for each."""
    summary = trial.record.instruments.get("propagation", {})
    if not (sent := summary.get("changes")):
        return cannot_tell("no change was sent")
    lost = summary.get("refused", 0) + summary.get("accept_timeouts", 0)
    return Seen(100 * (sent - lost) / sent, least=100.0, why=f"{lost} were not accepted")


@check(title="NOTIFYs received", unit="for each secondary")
def notifies(trial: Trial) -> Seen:
    """Number of NOTIFYs (RFC 1996) that reached the secondaries, for each secondary. Without one, a secondary does not
    know of the change."""
    received = trial.transfer.get("notifies")
    if received is None:
        return cannot_tell("the instrument that plays the secondaries wrote no summary")
    return Seen(received / int(trial.record.spec.options["secondaries"]), least=1.0)


@check(title="changes announced by NOTIFY", unit="%")
def told_by_notify(trial: Trial) -> Seen:
    """Number of NOTIFYs (RFC 1996) that reached the server under test and were followed by its question, for each
    change. Without NOTIFY, no NOTIFY may arrive.

    A packet socket on its host sees them during the measurement. A question is a query over UDP for the same zone, or
    data to the primary over TCP, in the next five seconds. A primary may announce several changes of a zone together,
    so 50 % is enough.
    """
    made = trial.record.instruments.get("propagation", {}).get("changes")
    packets = trial.record.instruments.get("told")
    if packets is None or not made:
        return cannot_tell("no change was made, or the packets of the server under test were not recorded")
    if dropped := packets.get("dropped"):
        return cannot_tell(f"{dropped:,} packets found no room in the recorder's buffer")
    arrived, followed = packets["notifies"], packets["followed"]
    why = f"{arrived:,} NOTIFYs arrived for {made:,} changes"
    if not trial.record.spec.transfer.notify:
        return Seen(100 * arrived / made, most=0.0, why=why)
    return Seen(100 * followed / made, least=50.0, why=f"{why}, and a question followed {followed:,} of them")


@check(title="questions to the primary by the refresh timer", unit="for each served change")
def asked_by_timer(trial: Trial) -> Seen:
    """Number of unprompted questions of the server under test to its primary without NOTIFY, for each change that it
    then served.

    A packet socket on its host sees its queries over UDP and its packets over TCP that no NOTIFY preceded. Without
    NOTIFY a server finds a change only by asking, so there is at least one question for each change.
    """
    packets = trial.record.instruments.get("told")
    seen = trial.propagation.filter(pl.col("seen_ns").is_not_null())
    served = sum(sockets.host_of(trial, secondary) == trial.subject for secondary in seen["secondary"])
    if packets is None or not served:
        return cannot_tell("it served no change, or its packets were not recorded")
    unprompted = packets["unprompted"]
    return Seen(unprompted / served, least=1.0, why=f"{unprompted:,} for {served:,} changes")
