"""Fan-out: one change on a primary, and how long it takes to very many secondaries.

The secondaries are played by the instrument `transfer`, each with an address of its own on the host `client`: it
answers the NOTIFY (RFC 1996) that comes to an address and then transfers the zone, from that address, by AXFR or, with
``transfer.ixfr``, by IXFR from the serial before. Nothing is stored, so what is measured is the primary: how fast it
sends NOTIFYs, and how many transfers it serves at a time. The time is from the first NOTIFY to the last secondary with
the new version. The time in which the primary loads the change and waits before it sends NOTIFY is measured separately.

Options: ``secondaries``; their transfers have the options of `transfer-load`. By default each has its own connection,
which it closes when it has the zone (``policy``), because an open connection would take a place on the primary. It
requests the SOA first (``soa``), because some primaries send a NOTIFY twice. A refused transfer is repeated ``retries``
times, first after ``retry_after_s``, then after twice as long and so on up to a minute, as real secondaries do.
``settle_s``: the rest before the change. If the primary makes changes by itself (`zones@engine`), the trial waits for
them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from dnsrig.errors import UsageError
from dnsrig.procedures import HostRole, Result
from dnsrig.procedures.context import TrialContext, placing
from dnsrig.procedures.instrument import Instrument, Overdue
from dnsrig.procedures.parts import transfer_instrument, validity
from dnsrig.rundir import Scalar, TrialSpec
from dnsrig.runs.row_files.transfer import TRANSFERS
from dnsrig.runs.transfers import Spread, spread

DESCRIPTION = "time from the first NOTIFY of a change until the last of many secondaries has it"
MAIN_METRIC = "last_done_s"
NEXT_VERSION = True
OPTIONS: dict[str, Scalar] = {
    **transfer_instrument.OPTIONS,
    "secondaries": 10,
    "policy": "one",
    "soa": "udp",
    "retries": 100,
    "settle_s": 1.0,
    "probe_rate_per_s": 1000,
    "ready_limit_s": 120,
    "drain_s": 0.3,
}
CHOICES = transfer_instrument.CHOICES
INSTRUMENT = "transfer"
READY_LIMIT_S = 30.0
"""How long the instrument may take until it listens on all its addresses."""
PROGRESS_S = 1.5
"""Limit for the next report of progress, which comes each second."""


def hosts(options: Mapping[str, Scalar]) -> dict[str, HostRole]:
    client = HostRole(source_addresses=int(options["secondaries"]), notified=True)
    return {"primary": HostRole(role="primary", under_test=True), "client": client}


def expected_s(options: Mapping[str, Any]) -> float:
    """The rest before the change, and two reports of progress."""
    return float(options["settle_s"]) + 2 * PROGRESS_S


def links(hosts: Iterable[str]) -> list[tuple[str, str]]:
    return [("client", "primary")]


def validate(spec: TrialSpec) -> None:
    if not spec.transfer.notify:
        raise UsageError("secondaries learn of the change by NOTIFY", hint="set transfer.notify = true")
    if any(version.serials_differ for version in spec.versions):
        raise UsageError(
            "the zones have different serials, but all secondaries begin with one", hint="give zones of the same serial"
        )


def checks(spec: TrialSpec) -> list[str]:
    return ["notifies", "answered-by", "connections-per-zone"]


def measure(context: TrialContext) -> Result:
    changes_itself = placing.changes_itself(context.spec)
    with context.phase("setup"):
        context.start_watch()
        context.start_ready("primary", limit_s=float(context.option("ready_limit_s")))
        if not changes_itself:
            context.changes.lay_out("primary")
    with context.phase("warmup"):
        transfer = context.instruments.start_transfer(INSTRUMENT, "client", "primary", _words(context))
        context.wait(transfer, limit_s=READY_LIMIT_S, until="ready")
        # A primary that has just started sends NOTIFYs for the old version first.
        time.sleep(float(context.option("settle_s")))
        before = _done(context, transfer)
    with context.profiled(), context.phase("measure"):
        if not changes_itself:
            context.changes.load("primary")
        _until(context, transfer, before + _wanted(context))
        context.servers.count_threads()
    with context.phase("drain"):
        time.sleep(float(context.option("drain_s")))
        context.instruments.stop(INSTRUMENT)
        context.servers.check()
    return _concluded(context)


def _words(context: TrialContext) -> list[str]:
    serial = context.spec.dataset.serial
    asks = [f"--ixfr={serial}"] if context.spec.transfer.ixfr else [f"--serial={serial}"]
    return [*transfer_instrument.policy(context.spec.options), "--on-notify", *asks]


def _wanted(context: TrialContext) -> int:
    return int(context.option("secondaries")) * context.spec.dataset.zones


def _done(context: TrialContext, transfer: Instrument) -> int:
    """Number of finished transfers, from the instrument's next report of progress."""
    return int(context.wait(transfer, limit_s=READY_LIMIT_S, until="progress")["done"])


def _until(context: TrialContext, transfer: Instrument, wanted: int) -> None:
    """Wait until ``wanted`` transfers are done, or the trial's time is over."""
    deadline = time.monotonic() + context.spec.limit_s
    while (left_s := deadline - time.monotonic()) > 0:
        try:
            event = context.wait(transfer, limit_s=min(left_s, PROGRESS_S), until="progress")
        except Overdue:
            continue
        context.report({**event, "instrument": INSTRUMENT})
        if event["done"] >= wanted:
            return


def _concluded(context: TrialContext) -> Result:
    started = next(phase.start for phase in context.phases.ended if phase.name == "measure")
    path = context.directory / "transfers.arrow"
    rows = pl.read_ipc_stream(path) if path.exists() else pl.DataFrame(schema=TRANSFERS.schema)
    seen = spread(rows, zones=context.spec.dataset.zones, serial=_next_serial(context), since_ns=started.monotonic_ns)
    summary = context.instruments.started[INSTRUMENT].summary
    assert summary is not None, "an instrument that is stopped without a summary is an error"
    return concluded(seen, summary, secondaries=int(context.option("secondaries")), limit_s=context.spec.limit_s)


def _next_serial(context: TrialContext) -> int:
    return (context.spec.next_dataset or context.spec.dataset).serial


def concluded(seen: Spread, summary: Mapping[str, Any], *, secondaries: int, limit_s: float) -> Result:
    """Result of a trial with a number of ``secondaries``, from the arrivals (``seen``) and the ``summary``."""
    if not seen.asked_ns:
        return Result("timeout", f"no NOTIFY came within {limit_s:g} s")
    if reason := validity.why_transfer_did_not(summary):
        return Result("invalid", reason)
    arrived = len(seen.arrived_ns)
    if arrived < secondaries:
        failures = ", ".join(f"{count:,} {name}" for name, count in seen.failures.items())
        why = f"; attempts that failed: {failures}" if failures else ""
        return Result("timeout", f"{arrived:,} of {secondaries:,} secondaries after {limit_s:g} s{why}")
    return Result("done")
