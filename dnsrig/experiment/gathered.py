"""What was recorded on other machines joins the rows of a trial, on the clock of this machine."""

from __future__ import annotations

import shutil
from collections.abc import Mapping

import polars as pl

from dnsrig.lab import host_calls
from dnsrig.machines.ssh_machine import SshMachine
from dnsrig.procedures.context import TrialContext
from dnsrig.procedures.context.instruments import elsewhere_folder
from dnsrig.rundir import ClockRecord, MachineRecord, ServerRecord
from dnsrig.runs import rows
from dnsrig.runs.row_files.watch import SAMPLES

WHOLE = "machine"
"""The name that `watch` gives to samples of the whole machine."""


def gather(context: TrialContext, machines: Mapping[str, SshMachine]) -> dict[str, MachineRecord]:
    """Add the samples of all machines to ``samples.arrow``, where a whole machine is called `machine@NAME`."""
    found = {}
    for name, machine in machines.items():
        folder = elsewhere_folder(context.directory, name)
        if f"watch-{name}" in context.instruments.started:
            context.instruments.stop(f"watch-{name}")
            machine.fetch(folder)
            _join(context, name)
            shutil.rmtree(folder)
        found[name] = MachineRecord(read_back=machine.call(host_calls.moment), clock=_clock(context, name))
    if found:
        shutil.rmtree(context.directory / "elsewhere", ignore_errors=True)
    return found


def on_our_clock(context: TrialContext, servers: dict[str, ServerRecord]) -> dict[str, ServerRecord]:
    """Convert the start times of servers on other machines to the clock of this machine."""
    for name, record in servers.items():
        record.exec_ns = context.clocks.of(context.host(name)).here(record.exec_ns)
    return servers


def _join(context: TrialContext, machine: str) -> None:
    own, there = context.directory / SAMPLES.name, elsewhere_folder(context.directory, machine) / SAMPLES.name
    seen = rows.read(there, None, SAMPLES.schema).frame
    seen = context.clocks.lines[machine].rows_here(seen, "time_ns")
    seen = seen.with_columns(
        pl.when(pl.col("host") == WHOLE).then(pl.lit(f"{WHOLE}@{machine}")).otherwise(pl.col("host")).alias("host")
    )
    pl.concat([rows.read(own, None, SAMPLES.schema).frame, seen]).write_ipc_stream(own)


def _clock(context: TrialContext, machine: str) -> ClockRecord | None:
    told = context.clocks.summaries.get(machine)
    if told is None:
        return None
    return ClockRecord(
        **told["line"],
        realtime_offset_ns=told["realtime_offset_ns"],
        realtime_error_ns=told["realtime_error_ns"],
        comparisons=told["bursts"],
    )
