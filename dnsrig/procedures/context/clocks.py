"""The clocks of a trial's machines, compared by exchanges of the engine over the links between them.

Hosts on other machines have the clocks of those machines (CLOCK_MONOTONIC, which begins with each boot). Their times
are converted to the clock of this machine by a line: offset and drift, with a known error.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from dnsrig.errors import DnsrigError
from dnsrig.lab import host_calls
from dnsrig.lab.host import Host
from dnsrig.procedures.context.instruments import Instruments
from dnsrig.procedures.context.workspace import Workspace
from dnsrig.procedures.instrument import Instrument
from dnsrig.rundir import OBSERVER
from dnsrig.runs.clocks import SAME, Line
from dnsrig.runs.row_files import clock

PORT = 5399
INTERVAL_S = 10.0
FIRST_LIMIT_S = 20.0
CALLS = 20
"""The fastest of them has the smallest error."""


@dataclass
class Clocks:
    """The clocks of other machines, by name of the machine."""

    workspace: Workspace
    instruments: Instruments
    lines: dict[str, Line] = field(default_factory=dict)
    summaries: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Final report about each clock."""

    def start(self) -> None:
        """Start the comparisons, and wait for the first offsets."""
        for here, peers in self._joined().items():
            for name, there in peers.items():
                self.instruments.start(
                    f"clock-{name}", ["clock", "serve", f"{there.address}:{PORT}", "--until-eof"], there.name
                )
            self._compare(here, peers)
        for host in self._only_sampled():
            self._ask(host)

    def of(self, host: Host) -> Line:
        """The line of a host's clock."""
        return SAME if host.spec.machine is None else self.lines[host.spec.machine]

    def finish(self) -> None:
        """End the comparisons. Afterwards the lines describe the whole trial."""
        for here in self._joined():
            instrument = self.instruments.started[f"clocks-{here}"]
            instrument.stop()
            for peer in (instrument.summary or {}).get("peers", []):
                self._take(peer)
        for host in self._only_sampled():
            self._ask(host)

    def _only_sampled(self) -> list[Host]:
        """Hosts whose server runs already on another machine: there is no link over which clocks could be compared."""
        return [host for host in self.workspace.network.hosts.values() if host.machine and not host.namespace]

    def _ask(self, host: Host) -> None:
        """Compare the clock by calls over the connection to the machine. Their errors are milliseconds, and samples are
        100 ms apart."""
        assert host.machine is not None
        asked = []
        for _ in range(CALLS):
            before_ns = time.monotonic_ns()
            monotonic_ns, realtime_ns = host.machine.call(host_calls.clocks)
            after_ns, apart_ns = time.monotonic_ns(), realtime_ns - time.time_ns()
            middle_ns = (before_ns + after_ns) // 2
            asked.append(((after_ns - before_ns) // 2 + 1, middle_ns, monotonic_ns - middle_ns, apart_ns))
        error_ns, at_ns, offset_ns, apart_ns = min(asked)
        name, drift_ppb = host.machine.name, 0.0
        if first := self.lines.get(name):
            drift_ppb = 1e9 * (offset_ns - first.offset_ns) / (at_ns - first.at_ns)
            at_ns, offset_ns, error_ns = first.at_ns, first.offset_ns, max(error_ns, first.error_ns)
        line = self.lines[name] = Line(at_ns, offset_ns, drift_ppb, error_ns)
        self.summaries[name] = {
            "line": asdict(line),
            "realtime_offset_ns": apart_ns,
            "realtime_error_ns": 2 * error_ns,
            "bursts": 2 if first else 1,
        }

    def _compare(self, here: str, peers: dict[str, Host]) -> None:
        name, rows = f"clocks-{here}", self.workspace.directory / clock.of(here).name
        words = ["clock", "compare", *(f"{machine}={there.address}:{PORT}" for machine, there in peers.items())]
        words += [f"--interval-s={INTERVAL_S:g}", f"--out={rows}", "--until-eof"]
        # In the network of the host that has the link, on the CPUs of the observer.
        own, observer = self.workspace.host(here), self.workspace.host(OBSERVER)
        spec = own.spec.model_copy(update={"cpus": observer.spec.cpus})
        errors = self.workspace.directory / "instruments" / f"{name}.stderr"
        host = replace(own, spec=spec, cgroups=observer.cgroups)
        started = self.instruments.started[name] = Instrument.start(name, host, words, errors)
        while peers.keys() - self.lines.keys():
            event = started.next_event(FIRST_LIMIT_S)
            if event["event"] == "lost":
                raise DnsrigError(f"the clock of the machine {event['peer']} cannot be read: {event['why']}")
            if event["event"] == "compared":
                self.lines[event["peer"]] = Line(event["at_ns"], event["offset_ns"], 0.0, event["error_ns"])

    def _take(self, peer: dict[str, Any]) -> None:
        if line := peer.get("line"):
            self.lines[peer["peer"]] = Line(line["at_ns"], line["offset_ns"], line["drift_ppb"], line["error_ns"])
            self.summaries[peer["peer"]] = peer

    def _joined(self) -> dict[str, dict[str, Host]]:
        """Host on this machine -> other machine -> a host there with a link to it; each machine once."""
        found: dict[str, dict[str, Host]] = {}
        seen = set()
        for link in self.workspace.spec.links:
            ends = [self.workspace.host(end) for end in link.ends]
            for here, there in (ends, reversed(ends)):
                machine = there.spec.machine
                if here.machine is None and machine is not None and machine not in seen:
                    seen.add(machine)
                    found.setdefault(here.name, {})[machine] = there
        return found
