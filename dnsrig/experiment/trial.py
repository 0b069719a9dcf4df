"""One trial: makes the network, starts the servers, measures, and removes everything. Its spec is its only input."""

from __future__ import annotations

import contextlib
import gzip
import os
import shutil
import signal
import sys
import threading
import traceback
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from dnsrig import cached, checks, checksums, datasets, files, interruption, paths
from dnsrig.errors import DnsrigError
from dnsrig.experiment import gathered, needed
from dnsrig.lab import conditions, host_calls, idle, stopped
from dnsrig.lab.network import Network
from dnsrig.machines import ssh_machine
from dnsrig.machines.ssh_machine import SshMachine
from dnsrig.procedures import Result, procedure
from dnsrig.procedures.context import TrialContext, faults
from dnsrig.procedures.context.phases import Report
from dnsrig.procedures.context.workspace import ServerFailed
from dnsrig.procedures.parts import readback, validity
from dnsrig.rundir import OBSERVER, LogDrilldown, ServerSource, TrialRecord, TrialSpec, write_json
from dnsrig.runs import failures
from dnsrig.runs.trial import Trial
from dnsrig.servers import driver_of

COMPRESS_FROM_BYTES = 1 << 20
TAKEN = "another process is executing this trial"
MOST_LOG_EVENTS = 100_000
"""Most events of one log that are kept as rows."""


@interruption.caught()
def run_trial(spec: TrialSpec, directory: Path, report: Report) -> TrialRecord:
    """Execute ``spec``. ``directory`` appears by rename when everything is written, or not at all.

    A trial that fails because of dnsrig or the machine leaves ``<directory>.aborted`` and raises.
    """
    check_new(directory)
    os.umask(cached.READABLE)  # servers, which have no rights, read their configuration
    working = directory.with_name(f"{directory.name}.running")
    set_aside(working)
    working.mkdir(parents=True)
    with cached.held(working, TAKEN) as is_ours:
        try:
            with faults.full_disk_named(working):
                record = _execute(spec, working, report)
                _conclude(record, working)
            if not is_ours():
                raise DnsrigError(f"{working} was removed or renamed while this trial ran")
            working.rename(directory)
            return record
        except BaseException:
            if is_ours():
                with contextlib.suppress(OSError):  # the disk may be full
                    (working / "error.txt").write_text(traceback.format_exc())
                _rename_aside(working)
            raise


def check_new(directory: Path) -> None:
    if directory.exists():
        raise DnsrigError(
            f"{directory} already exists", hint="a finished trial is never overwritten: choose another folder"
        )


def set_aside(working: Path) -> None:
    """Rename the folder of an interrupted trial to ``….aborted``, which replaces an older one.

    Raises DnsrigError if a process still executes the trial.
    """
    if working.exists():
        with cached.held(working, TAKEN):
            _rename_aside(working)


def _rename_aside(working: Path) -> None:
    aside = working.with_name(working.name.removesuffix(".running") + ".aborted")
    shutil.rmtree(aside, ignore_errors=True)
    shutil.rmtree(working / "state", ignore_errors=True)
    working.rename(aside)


def _execute(spec: TrialSpec, working: Path, report: Report) -> TrialRecord:
    observer = spec.hosts[OBSERVER]
    os.sched_setaffinity(0, observer.cpus)
    with (
        idle.awake(not spec.cpus_sleep),
        stopped.noticed() as was_stopped,
        ssh_machine.opened(spec.machines, working, spec.run) as machines,
        Network(spec.hosts, spec.links, directory=working, repeat=spec.repeat, machines=_ready(spec, machines)) as lab,
    ):
        before = conditions.moment(working, lab.tag)
        link_tests = lab.check_links()
        context = TrialContext(spec, working, lab, report, [*needed.data(spec), paths.engine()])
        try:
            result = validity.of_links(link_tests) or _measure(context)
            if any(phase.name == "measure" for phase in context.phases.ended):
                readback.look(context)
            context.faults.check()
            was_stopped.check()
            if "watch" in context.instruments.started:
                context.clocks.finish()
                context.instruments.stop("watch")
            seen = gathered.gather(context, machines)
        except Exception:
            context.faults.check()  # a fault of the machine may be the cause, and is then reported instead
            raise
        finally:
            context.close()
        links = lab.finish_links()
        record = TrialRecord(
            spec=spec,
            outcome=result.outcome,
            reason=result.reason,
            phases=context.phases.ended,
            anchors=context.phases.anchors,
            servers=gathered.on_our_clock(context, context.servers.records()),
            instruments={
                **{name: i.summary for name, i in context.instruments.started.items() if i.summary is not None},
                **context.summaries,
                **links,
            },
            profiles=context.profiling.profiles,
            counts=context.counting.counts,
            link_tests=link_tests,
            machines=seen,
            read_back=_read_back(lab, before, conditions.moment(working, lab.tag)),
        )
    return validity.judged(record)


def _ready(spec: TrialSpec, machines: Mapping[str, SshMachine]) -> Mapping[str, SshMachine]:
    """The other machines, after the files that programs on their hosts read were copied to them."""
    made = {host.machine for host in spec.hosts.values() if host.network == "own"}
    for name, machine in machines.items():
        if name not in made:
            continue  # a server runs there already: the machine is only sampled
        reads = [path for path in needed.elsewhere(spec, name) if path.is_relative_to(paths.cache())]
        machine.bring([str(path.relative_to(paths.cache())) for path in reads])
        if not spec.cpus_sleep:
            machine.call(host_calls.stay_awake)
    return machines


def _measure(context: TrialContext) -> Result:
    try:
        return procedure(context.spec.procedure).measure(context)  # type: ignore[no-any-return]
    except ServerFailed as failure:
        context.faults.check()
        return Result("server-failed", str(failure))


def _read_back(lab: Network, before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """State of the machine before and after, of its kernel, and of the hosts."""
    hosts = {}
    for name, host in lab.hosts.items():
        hosts[name] = {"sysctls": host.sysctls, **({"tcp": lab.tcp[name]} if name in lab.tcp else {})}
    found = {"before": before, "after": after, "kernel": conditions.kernel(), "hosts": hosts}
    nics = {name: host.nic_facts for name, host in lab.hosts.items() if host.spec.nic}
    return {**found, "nics": nics} if nics else found


def _conclude(record: TrialRecord, working: Path) -> None:
    """Write the rows of logs, the manipulation checks, the checksums and the record."""
    for name, server in record.servers.items():
        log = working / "servers" / name / "server.log"
        if server.role == "secondary" and log.exists():
            record.logs[name] = drill_down(server.server, log, working / f"log-{name}.arrow")
        if name == record.spec.subject and log.exists():
            note_work(server.server, log, _catalog(record.spec), working / f"events-{name}.arrow")
    _check_manipulations(Trial(working, record))
    record.files = checksums.of_trial(working)
    for path in (working / "servers").rglob("*"):
        if path.is_file() and not path.is_symlink() and path.stat().st_size > COMPRESS_FROM_BYTES:
            _compress(path)
    write_json(working / "trial.json", record)


def declared_checks(spec: TrialSpec) -> list[str]:
    """Names of the manipulation checks of ``spec``: those of its procedure, then those that apply to any procedure."""
    return [*procedure(spec.procedure).checks(spec), *checks.for_any_procedure(spec)]


def _check_manipulations(trial: Trial) -> None:
    """Look at the manipulation checks. If a stimulus was missing, the trial is `invalid`."""
    record = trial.record
    if record.phase("measure") is not None:
        record.checks = checks.look(trial, declared_checks(record.spec))
    if record.outcome in ("done", "timeout") and (why := checks.why_invalid(record.checks)):
        record.outcome, record.reason = "invalid", why


def drill_down(source: ServerSource, log: Path, rows: Path) -> LogDrilldown:
    """The transfers in a secondary's log. One row a zone goes to ``rows``, an Arrow IPC stream.

    The columns are zone and realtime_ns, which is null if the line has no time. If a log cannot be read, the trial
    keeps it, and `LogDrilldown.unread` contains the reason.
    """
    server = driver_of(source)
    done: dict[str, int | None] = {}
    found = LogDrilldown(
        zones=0, first_realtime_ns=None, last_realtime_ns=None, resolution_ns=server.log_clock_resolution_ns
    )
    try:
        for event in server.read_log(log):
            if event.kind == "zone-done":
                done[event.zone] = event.realtime_ns
                continue
            found.failures[event.kind] = found.failures.get(event.kind, 0) + 1
            found.examples.setdefault(event.kind, event.line[:500])
            if event.realtime_ns is not None:
                found.first_failure_realtime_ns.setdefault(event.kind, event.realtime_ns)
    except Exception as error:
        found.unread = failures.describe(error)
    columns = {"zone": list(done), "realtime_ns": list(done.values())}
    pl.DataFrame(columns, schema={"zone": pl.String, "realtime_ns": pl.Int64}).write_ipc_stream(rows)
    found.zones = len(done)
    if times := [time for time in done.values() if time is not None]:
        found.first_realtime_ns, found.last_realtime_ns = min(times), max(times)
    return found


def note_work(source: ServerSource, log: Path, catalog: str, rows: Path) -> None:
    """Write the events in a log about work beside answering to ``rows``, an Arrow IPC stream: kind, realtime_ns."""
    found: list[tuple[str, int]] = []
    with contextlib.suppress(Exception):  # `drill_down` reports a log that cannot be read
        seen = islice(driver_of(source).read_work(log, catalog), MOST_LOG_EVENTS)
        found += [(event.kind, event.realtime_ns) for event in seen if event.realtime_ns is not None]
    schema = {"kind": pl.String, "realtime_ns": pl.Int64}
    pl.DataFrame(found, schema=schema, orient="row").write_ipc_stream(rows)


def _catalog(spec: TrialSpec) -> str:
    """The catalog zone, if servers get their zones from one; otherwise empty."""
    if spec.transfer.provisioning != "catalog":
        return ""
    return datasets.catalog_of(datasets.folder(spec.dataset.key))[0].rstrip(".").lower()


def _compress(path: Path) -> None:
    with (
        files.opened(path) as plain,
        files.writing(path.with_name(f"{path.name}.gz")) as file,
        gzip.GzipFile(path.name, "wb", compresslevel=4, fileobj=file) as packed,
    ):
        shutil.copyfileobj(plain, packed, 1 << 20)
    path.unlink()


def end_with_stdin() -> None:
    """End this trial when standard input closes. The runner keeps it open as long as it lives."""

    def watch() -> None:
        # Not by `sys.stdin`: its lock, held here for ever, would keep the interpreter from ending in order.
        while os.read(sys.stdin.fileno(), 1 << 16):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def _progress(event: dict[str, Any]) -> str:
    """The counts of an instrument that make progress, in words."""
    if "zones" in event:
        return f"{event.get('seen', event.get('done', 0)):,} of {event['zones']:,} zones"
    counts = [f"{event[name]:,} {name}" for name in ("sent", "answered", "accepted") if name in event]
    return f"{event.get('instrument', 'instrument')}: {', '.join(counts) or 'at work'}"


def describe(event: dict[str, Any]) -> str:
    """An event in a few words, for a user."""
    if event["event"] == "phase":
        return str(event["phase"])
    if event["event"] == "progress":
        return _progress(event)
    return str(event["event"])
