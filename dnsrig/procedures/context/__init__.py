"""The tools of a procedure: one trial in progress, with its servers, instruments, phases and changes of zones.

Each part is a module of this folder and has the parts that it needs. `TrialContext` has them all, and the methods that
need several of them.
"""

from __future__ import annotations

import queue
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from dnsrig.lab.host import Host
from dnsrig.lab.network import Network
from dnsrig.procedures import Result
from dnsrig.procedures.context.clocks import Clocks
from dnsrig.procedures.context.faults import Faults
from dnsrig.procedures.context.instruments import Instruments
from dnsrig.procedures.context.phases import PhaseName, Phases, Report
from dnsrig.procedures.context.profiling import Counting, Profiling
from dnsrig.procedures.context.servers import LogLines, Servers
from dnsrig.procedures.context.workspace import ServerFailed, Workspace
from dnsrig.procedures.context.zone_changes import ZoneChanges
from dnsrig.procedures.instrument import STOP_LIMIT_S, Instrument, Overdue, last_event, last_words
from dnsrig.rundir import TrialSpec
from dnsrig.servers import driver_of, running
from dnsrig.servers.placement import DNS_PORT

PROBE_GRACE_S = 30.0
"""How long `probe` may take for its summary after its limit."""


class TrialContext:
    """One trial in progress. The caller owns ``network``; `close` ends every process started here."""

    def __init__(
        self, spec: TrialSpec, directory: Path, network: Network, report: Report, needed: Sequence[Path] = ()
    ) -> None:
        self.spec, self.directory, self.report = spec, directory, report
        self.workspace = Workspace(spec, directory, network)
        self.phases = Phases(report)
        self.profiling = Profiling(self.workspace)
        self.counting = Counting(self.workspace)
        self.servers = Servers(self.workspace)
        self.instruments = Instruments(self.workspace, self.servers)
        self.clocks = Clocks(self.workspace, self.instruments)
        self.changes = ZoneChanges(self.servers)
        self.faults = Faults(self.workspace, self.instruments, self.servers, [path for path in needed if path.exists()])
        self.summaries: dict[str, dict[str, Any]] = {}
        """More summaries, by name: of servers that are instruments, of facts that the rig read back, and of changes
        that a primary made by itself. The summaries of instruments are in `Instrument.summary`."""

    def option(self, name: str) -> Any:
        return self.spec.options[name]

    def host(self, name: str) -> Host:
        return self.workspace.host(name)

    @contextmanager
    def phase(self, name: PhaseName) -> Iterator[None]:
        """Everything inside belongs to this phase, even if it ends by an exception. During `measure`, the kernel's
        counts are taken."""
        with self.counting.counted() if name == "measure" else nullcontext(), self.phases.phase(name):
            yield

    def profiled(self) -> AbstractContextManager[None]:
        """Sample the CPU stacks of the hosts with ``profile`` while the code inside runs."""
        return self.profiling.profiled()

    def start_watch(self) -> None:
        """Sample every host until the trial ends. It is the first step of `setup`."""
        _ = self.profiling.unavailable
        self.instruments.start_watch()
        self.clocks.start()

    def start_ready(self, name: str, *, limit_s: float) -> None:
        """Configure and start the server of host ``name``, and wait until it answers all zones.

        A server without zones is ready when it answers anything. A server that runs already is only asked whether it
        answers. Raises ServerFailed after ``limit_s``.
        """
        if self.host(name).spec.network == "machine":
            self.check_running(name)
            return
        self.servers.prepare(name)
        self.servers.start(name)
        placement = self.servers.placements[name]
        at = f"was asked at {placement.address} port {DNS_PORT}"
        server = driver_of(placement.source)
        if server.ready_pattern:
            self._wait_for_line(name, server.ready_pattern, limit_s)
        ready = self.instruments.start_probe(f"probe-{name}", name, limit_s=limit_s)
        if placement.role == "resolver" or not server.answers_zones:
            answered = self.wait(ready, limit_s=limit_s + 10, until="first-answer")["event"] == "first-answer"
            self.instruments.stop(ready.name)
            if not answered:
                raise ServerFailed(f"{name} gave no answer within {limit_s:g} s: it {at}")
        elif self.wait(ready, limit_s=limit_s + 10)["outcome"] != "done":
            raise ServerFailed(f"{name} did not answer for all its zones within {limit_s:g} s: it {at}")

    def check_running(self, name: str, when: str = "") -> None:
        """Ask a server that runs already whether it answers, and record what it says of itself.

        Raises ServerFailed, with ``when`` before the reason, if it does not answer over the transport of the trial.
        """
        host = self.host(name).spec
        transport = self.spec.transport
        said = running.identify(host.address, host.ports, authorized=host.authorized, transports=[transport])
        self.summaries.setdefault("identity", said)
        sentence, hint = running.why_silent(said, transport, running.endpoint(host.address, host.ports[transport]))
        if sentence:
            raise ServerFailed(f"{when}{sentence}: {hint}")

    def _wait_for_line(self, name: str, pattern: str, limit_s: float) -> None:
        """Wait for a line of the log of the server of host ``name`` that matches ``pattern``."""
        deadline = time.monotonic() + limit_s
        with self.servers.started[name].log.open("rb") as log:
            lines = LogLines(log, re.compile(pattern))
            while not lines.found():
                self._look()
                self.servers.check()
                if time.monotonic() > deadline:
                    raise ServerFailed(f"{name} wrote no line that matches {pattern!r} within {limit_s:g} s")
                time.sleep(0.02)

    @contextmanager
    def twin(self, name: str, purpose: str, *, limit_s: float) -> Iterator[None]:
        """Start a twin of the server of host ``name``, which has not started, and remove it afterwards.

        A twin is a process with the same configuration on the same host. What it stored is removed, so the server that
        is measured starts with nothing and was never asked. Its folder is kept as ``<name>-<purpose>``.
        """
        self.start_ready(name, limit_s=limit_s)
        yield
        placement = self.servers.forget(name)
        placement.directory.rename(placement.directory.with_name(f"{name}-{purpose}"))
        shutil.rmtree(placement.state)

    def finish_server(self, name: str, *, limit_s: float) -> dict[str, Any]:
        """Wait until the server of host ``name``, which is an instrument, is done, or stop it after ``limit_s``.

        Returns its summary, which is the last event in its log. Its rows are added to the rows of the trial.
        """
        server = self.servers.started[name]
        deadline = time.monotonic() + limit_s
        while server.process.running and time.monotonic() < deadline:
            self._look()
            time.sleep(0.02)
        server.process.stop(limit_s=STOP_LIMIT_S)
        self.servers.check()
        source, summary = server.placement.source, last_event(server.log)
        if summary is None:
            raise ServerFailed(f"{source.label} on host {name} wrote no summary{last_words(server.log)}")
        self.summaries[source.kind] = summary
        self.servers.take_rows(name)
        return summary

    def wait(self, instrument: Instrument, *, limit_s: float, until: str = "summary") -> dict[str, Any]:
        """Wait for the event ``until`` of ``instrument``, or for its summary, and return it. Report its progress
        meanwhile.

        Raises ServerFailed if a server ends, Overdue after ``limit_s``.
        """
        deadline = time.monotonic() + limit_s
        while True:
            self._look()
            try:
                event = instrument.events.get(timeout=0.1)
            except queue.Empty:
                self.servers.check()
                if time.monotonic() > deadline:
                    raise Overdue(f"the instrument {instrument.name} did not end in {limit_s:g} s") from None
                continue
            if instrument.take(event) or event["event"] == until:
                return event
            if event["event"] == "progress":
                self.report({**event, "instrument": instrument.name})

    def rest(self, seconds: float) -> None:
        """Wait, unless ``seconds`` are negative. Raises ServerFailed if a server ends."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._look()
            self.servers.check()
            time.sleep(min(left, 0.1))

    def drain(self) -> None:
        """The phase `drain`: the rest at the end, in which no server may end."""
        with self.phase("drain"):
            time.sleep(float(self.option("drain_s")))
            self.check_alive()

    def check_alive(self) -> None:
        """Raise ServerFailed if a server has ended; of one that runs already, if it does not answer any more."""
        self.servers.check()
        if self.spec.runs_already:
            self.check_running(self.spec.subject, "at the end of the measurement ")

    def time_zones(self, probe: Instrument, begin: Callable[[], None]) -> Result:
        """Run the phases `measure`, from ``begin`` to the last zone that ``probe`` waits for, and `drain`."""
        limit_s = self.spec.limit_s
        with self.profiled(), self.phase("measure"):
            begin()
            seen = self.wait(probe, limit_s=limit_s + PROBE_GRACE_S)
            self.servers.count_threads()
        self.drain()
        if seen["outcome"] != "done":
            return Result("timeout", f"{seen['seen']:,} of {seen['zones']:,} zones after {limit_s:g} s")
        return Result("done")

    def close(self) -> None:
        """End everything, servers first, and remove what they stored."""
        self.servers.close()
        self.instruments.close()
        if made := self.changes.take():
            self.summaries["change"] = made
        if self.servers.placements or self.spec.runs_already:
            shutil.rmtree(self.workspace.state, ignore_errors=True)

    def _look(self) -> None:
        """Record what changes while a trial waits. Raises DnsrigError if the machine has a fault (`faults`)."""
        self.phases.take_anchor()
        self.profiling.note_pids()
        self.faults.look()
