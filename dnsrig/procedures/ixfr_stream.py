"""Changes of a large zone, as IXFR and as AXFR: the cost of a change of a number of records either way.

The zone changes on the primary; then the instrument `transfer` asks it for IXFR (RFC 1995) from the serial before,
again and again for ``duration_s``, and after that for AXFR. Each transfer follows the one before on the same
connection, so neither pays for connecting. Nothing is stored. Whether the primary answers IXFR by the whole zone, as it
may (RFC 1995 §4), is counted.

``made_by``:

- ``reload``: the primary loads a new zone file that differs in ``records_changed`` records (of the dataset `tld`), or
  that is the next version of your own zone (``dataset.next``), and finds the difference itself: one step from serial to
  serial
- ``updates``: so many dynamic updates (RFC 2136) of one record each, at ``updates_per_s``: as many steps, each with its
  SOA records, in which the same record changes again and again

Other options: ``settle_s``, ``drain_s``: the rest after the start and at the end.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from dnsrig import datasets
from dnsrig.datasets import tld
from dnsrig.errors import UsageError
from dnsrig.procedures import HostRole, Result
from dnsrig.procedures.context import TrialContext
from dnsrig.procedures.parts import transfer_instrument, validity
from dnsrig.rundir import Scalar, TrialSpec

DESCRIPTION = "a change of a number of records in a large zone: bytes and time by IXFR and by AXFR"
MAIN_METRIC = "ixfr_time_percent"
NEXT_VERSION = True
OPTIONS: dict[str, Scalar] = {
    "records_changed": 100,
    "made_by": "reload",
    "updates_per_s": 1000.0,
    "duration_s": 1.0,
    "settle_s": 0.5,
    "probe_rate_per_s": 1000,
    "ready_limit_s": 900,
    "drain_s": 0.3,
}
CHOICES = {"made_by": ("reload", "updates")}
RANGES = {"records_changed": (1, 150_000_000)}
HOW: dict[str, Scalar] = {**transfer_instrument.OPTIONS, "policy": "reused", "retries": 0}
"""One transfer at a time on one connection. A failed transfer is reported and not repeated."""
GRACE_S = 60.0
"""How long a running transfer may take after its time is over."""


def hosts(options: Mapping[str, Scalar]) -> dict[str, HostRole]:
    return {"primary": HostRole(role="primary", under_test=True), "client": HostRole()}


def links(hosts: Iterable[str]) -> list[tuple[str, str]]:
    return [("client", "primary")]


def expected_s(options: Mapping[str, Any]) -> float:
    made_s = options["records_changed"] / options["updates_per_s"] if options["made_by"] == "updates" else 0.0
    return float(2 * options["duration_s"] + made_s)


def next_version(values: Mapping[str, Scalar], options: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """The dataset one serial later, with as many records changed as the options say."""
    following = datasets.next_version(values)
    if options["made_by"] == "reload" and "delegations" in values:
        following["records_changed"] = options["records_changed"]
    return following


def validate(spec: TrialSpec) -> None:
    """Refuse changes that nobody could make."""
    if not spec.transfer.ixfr:
        raise UsageError("a primary without differences answers IXFR with AXFR", hint="set transfer.ixfr = true")
    if spec.options["made_by"] == "updates":
        if not spec.transfer.updates:
            raise UsageError(
                "dynamic updates of the primary's zone are not allowed", hint="set transfer.updates = true"
            )
        if spec.dataset.zones != 1:
            raise UsageError("updates need a dataset with one zone", hint="set dataset.zones = 1")
        return
    if datasets.has_own_versions(spec.dataset.parameters):
        if spec.dataset.serials_differ:
            raise UsageError("the zones have different serials, so no IXFR is from one of them", hint="give one zone")
        return
    if spec.dataset.kind != "tld":
        raise UsageError(
            f"the next version of the dataset {spec.dataset.kind} does not differ in a given number of records",
            hint='choose kind = "tld", or give the next version of your own zone: dataset.next',
        )
    most = tld.CHANGED_MOST * int(spec.dataset.parameters["delegations"])
    if int(spec.options["records_changed"]) > most:
        raise UsageError(
            f"options.records_changed = {spec.options['records_changed']:,}, but only {most:,} records can change",
            hint="make the zone larger: dataset.delegations",
        )


def checks(spec: TrialSpec) -> list[str]:
    return ["axfr-answered"]


def measure(context: TrialContext) -> Result:
    with context.phase("setup"):
        context.start_watch()
        context.start_ready("primary", limit_s=float(context.option("ready_limit_s")))
        if context.option("made_by") == "reload":
            context.changes.lay_out("primary")
        time.sleep(float(context.option("settle_s")))
    with context.phase("warmup"):
        if reason := _change(context):
            return Result("timeout", reason)
        time.sleep(float(context.option("settle_s")))
    with context.profiled(), context.phase("measure"):
        summaries = {
            "ixfr": _transfer(context, "ixfr", [f"--ixfr={context.spec.dataset.serial}"]),
            "axfr": _transfer(context, "axfr", []),
        }
        context.servers.count_threads()
    context.drain()
    return concluded(summaries)


def _change(context: TrialContext) -> str:
    """Make the change, and wait until the primary serves it. A sentence where it did not within the trial's limit."""
    if context.option("made_by") == "updates":
        return _update(context)
    limit_s = context.spec.limit_s
    context.changes.load("primary")
    probe = context.instruments.start_probe("probe-change", "primary", limit_s=limit_s, next_version=True)
    seen = context.wait(probe, limit_s=limit_s + GRACE_S)["outcome"] == "done"
    return "" if seen else f"the primary did not serve the changed zone within {limit_s:g} s"


def _update(context: TrialContext) -> str:
    """One update a record. A primary that is slower than they are due has the trial's limit for what has to wait."""
    count, rate_per_s = int(context.option("records_changed")), float(context.option("updates_per_s"))
    listed = context.workspace.dataset / "zones.list"
    limit_s, due_s = context.spec.limit_s, count / rate_per_s
    words = [f"--zones={listed}", f"--changes-per-s={rate_per_s:.12g}", f"--duration-s={due_s:.9g}"]
    change = context.instruments.start_change(
        "change", "primary", [*words, f"--timeout-s={limit_s:g}", *context.instruments.signed()]
    )
    made = context.wait(change, limit_s=2 * limit_s + due_s + GRACE_S)
    return "" if made["accepted"] == count else f"the primary made {made['accepted']:,} of {count:,} changes"


def _transfer(context: TrialContext, name: str, words: list[str]) -> Mapping[str, Any]:
    """Transfer the zone again and again for a while; the rows go to a folder of that name."""
    out = context.directory / name
    out.mkdir()
    duration_s = float(context.option("duration_s"))
    arguments = [*transfer_instrument.policy(HOW), "--repeat", f"--duration-s={duration_s:g}", *words]
    started = context.instruments.start_transfer(name, "client", "primary", arguments, options=HOW, out=out)
    return context.wait(started, limit_s=duration_s + GRACE_S)


def concluded(summaries: Mapping[str, Mapping[str, Any]]) -> Result:
    """What the summaries of the instrument, one a way, mean for the trial."""
    for name, summary in summaries.items():
        if failed := transfer_instrument.outcomes(summary):
            return Result("server-failed", f"{name.upper()}: {failed}")
        if not summary["done"]:
            what = "says that nothing changed" if summary["up_to_date"] else "brought nothing"
            return Result("server-failed", f"{name.upper()} {what}")
        if reason := validity.why_transfer_did_not({**summary, "busy_share": 0.0}):
            # How busy the instrument is says nothing here: it waits for one transfer at a time.
            return Result("invalid", reason)
    return Result("done")
