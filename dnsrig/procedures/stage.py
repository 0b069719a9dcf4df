"""The stage on which a procedure measures: hosts, servers, instruments and phases of one trial."""

from __future__ import annotations

import queue
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from dnsrig.errors import DnsrigError
from dnsrig.lab import clock, process
from dnsrig.lab.host import Host
from dnsrig.lab.network import Network
from dnsrig.lab.process import Process
from dnsrig.lab.profile import Profiler
from dnsrig.procedures import _pulling, placing, procedure
from dnsrig.procedures.instrument import START_LIMIT_S, STOP_LIMIT_S, Instrument, Overdue, last_event, last_words
from dnsrig.rundir import Anchor, Outcome, Phase, ProfileRecord, Scalar, ServerRecord, TrialSpec
from dnsrig.servers import driver, keys, sources
from dnsrig.servers.driver import Changes, Placement
from dnsrig.servers.keys import TransferKeys

PREPARATION_LIMIT_S = 1800.0
PROBE_GRACE_S = 30.0
"""How long after its limit `probe` may take to say so."""
ANCHOR_EVERY_S = 10.0
OBSERVER = "observer"
"""The host of the instruments that stand in nobody's place; its own connections say nothing of the trial."""
NEXT = ".next"
"""Ending of a zone file that waits to take the place of the one without it."""
STORED_BYTES_PER_ZONE = 32_768
STORED_BYTES_PER_RECORD = 500
"""What a server stores at most, with zone file, journal or database, for the room that is wanted in memory; as measured."""

Report = Callable[[dict[str, Any]], None]
"""Takes events: phases and progress."""


class ServerFailed(Exception):
    """A server ended or never became ready: a result, not an error of ours."""


@dataclass(frozen=True)
class Result:
    """What a procedure concluded."""

    outcome: Outcome
    reason: str = ""


@dataclass
class Server:
    placement: Placement
    process: Process
    log: Path
    threads: int | None = None


@dataclass
class Stage:
    """One trial in progress. The caller owns ``network``; `close` ends every process started here."""

    spec: TrialSpec
    directory: Path
    network: Network
    report: Report
    phases: list[Phase] = field(default_factory=list)
    anchors: list[Anchor] = field(default_factory=list)
    servers: dict[str, Server] = field(default_factory=dict)
    instruments: dict[str, Instrument] = field(default_factory=dict)
    placements: dict[str, Placement] = field(default_factory=dict)
    profiles: dict[str, ProfileRecord] = field(default_factory=dict)
    keys: TransferKeys = field(default_factory=keys.make)
    told: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The summaries of instruments that stand in a server's place, which end by themselves, and what a primary changed by itself."""
    own_changes: dict[str, Changes] = field(default_factory=dict)
    """What primaries change by themselves, by host; before they are started."""
    _last_anchor_s: float = 0.0
    _profiled_pids: dict[str, set[int]] = field(default_factory=dict)

    @cached_property
    def state(self) -> Path:
        """What servers store lies below it; removed after the trial."""
        if self.spec.storage == "disk":
            return self.directory / "state"
        servers = sum(host.server is not None for host in self.spec.hosts.values())
        data = self.spec.dataset
        wanted = servers * (data.zones * STORED_BYTES_PER_ZONE + data.records * STORED_BYTES_PER_RECORD)
        return self.network.folder_in_memory(wanted)

    @cached_property
    def _no_profiler(self) -> str | None:
        """Why stacks cannot be sampled. Trying it takes a second, so `start_watch` asks, long before `measure`."""
        return Profiler.unavailable()

    # Phases

    @contextmanager
    def phase(self, name: Literal["setup", "warmup", "measure", "drain"]) -> Iterator[None]:
        """Everything inside belongs to this phase, also when it ends by an exception."""
        self.report({"event": "phase", "phase": name})
        start = clock.anchor()
        try:
            yield
        finally:
            self.phases.append(Phase(name=name, start=start, end=clock.anchor()))

    def option(self, name: str) -> Any:
        return self.spec.options[name]

    def host(self, name: str) -> Host:
        return self.network.hosts[name]

    @contextmanager
    def profiled(self) -> Iterator[None]:
        """Sample the CPU stacks of the hosts that the experiment wants profiled, from before to after what is inside."""
        profilers = {}
        for name in (name for name, spec in self.spec.hosts.items() if spec.profile):
            if why := self._no_profiler:
                self.profiles[name] = ProfileRecord(reason=why)
                continue
            self._profiled_pids[name] = set()
            data = self.directory / f"profile-{name}.data"
            profilers[name] = Profiler.start(name, self.spec.hosts[name].cpus, data)
        try:
            yield
        finally:
            self._note_pids()
            for name, profiler in profilers.items():
                out = self.directory / f"profile-{name}.folded"
                self.profiles[name] = profiler.stop(self._profiled_pids.pop(name), out)

    def _note_pids(self) -> None:
        """Processes come and go; only those of a host count in its profile."""
        for name in self._profiled_pids:
            self._profiled_pids[name] |= self._pids(name)

    # Servers

    def start_ready(self, name: str, *, limit_s: float) -> None:
        """Configure and start the server of host ``name`` and wait until it answers all zones; anything if it has none."""
        self.prepare_server(name)
        self.start_server(name)
        ready = self.start_probe(f"probe-{name}", name, limit_s=limit_s)
        if not driver(self.placements[name].source.kind).answers_zones:
            answered = self.wait(ready, limit_s=limit_s + 10, until="first-answer")["event"] == "first-answer"
            self.stop_instrument(ready.name)
            if not answered:
                raise ServerFailed(f"{name} answered nothing within {limit_s:g} s")
        elif self.wait(ready, limit_s=limit_s + 10)["outcome"] != "done":
            raise ServerFailed(f"{name} did not answer all its zones within {limit_s:g} s")

    def prepare_server(self, name: str) -> None:
        """Configure the server of host ``name`` and run its preparations."""
        placement = placing.place(self.spec, name, directory=self.directory, state=self.state, keys=self.keys)
        placement = replace(placement, changes=self.own_changes.get(name))
        self.placements[name] = placement
        kind = driver(placement.source.kind)
        kind.configure(placement)
        for step in kind.preparations(placement):
            self._prepare(name, placement, step.command, step.stdout)

    def start_server(self, name: str) -> None:
        """Start the configured server; it is running, not necessarily ready, afterwards."""
        placement = self.placements[name]
        kind = driver(placement.source.kind)
        log = placement.directory / "server.log"
        with log.open("wb") as output:
            started = process.start(
                placement.source.kind,
                self.host(name),
                sources.executable(placement.source, kind.command(placement)),
                workdir=kind.workdir(placement),
                stamp_file=placement.directory / "exec.json",
                stdout=output,
                stderr=subprocess.STDOUT,
                **placing.view(self.spec, placement),
            )
        started.stop_signal = kind.stop_signal
        self.servers[name] = Server(placement, started, log)

    def finish_server(self, name: str, *, limit_s: float) -> dict[str, Any]:
        """Wait until the server of host ``name``, which is an instrument, is done, or stop it after ``limit_s``: its summary.

        Its log is the events of the engine, and its rows join the trial's.
        """
        server = self.servers[name]
        deadline = time.monotonic() + limit_s
        while server.process.running and time.monotonic() < deadline:
            self._take_anchor()
            self._note_pids()
            time.sleep(0.02)
        server.process.stop(limit_s=STOP_LIMIT_S)
        self.check_servers()
        kind, summary = server.placement.source.kind, last_event(server.log)
        if summary is None:
            raise ServerFailed(
                f"{server.placement.source.label} on host {name} said no summary{last_words(server.log)}"
            )
        self.told[kind] = summary
        for rows in server.placement.directory.glob("*.arrow"):
            rows.rename(self.directory / rows.name)
        return summary

    def stop_server(self, name: str, *, limit_s: float) -> None:
        """Stop the server of host ``name`` in order; what it stored stays, and `start_server` starts it again.

        Its log so far is kept as ``server-before.log``.
        """
        server = self.servers[name]
        server.process.stop(limit_s=limit_s)
        if server.process.popen.returncode == -signal.SIGKILL:
            raise ServerFailed(f"{server.placement.source.label} on host {name} did not stop within {limit_s:g} s")
        server.log.rename(server.log.with_name("server-before.log"))
        # Else its next start would seem to have this moment until it has written its own.
        (server.placement.directory / "exec.json").unlink(missing_ok=True)

    def lay_out_change(self, name: str) -> None:
        """Copy the next version of the zones beside those of the primary of host ``name``, without a change yet."""
        assert self.spec.next_dataset is not None
        source, target = Path(self.spec.next_dataset.path), self.placements[name].dataset
        for path in (path for path in source.rglob("*") if path.is_file()):
            made = target / path.relative_to(source)
            shutil.copyfile(path, made.with_name(made.name + NEXT))

    def change_zones(self, name: str) -> None:
        """Put what was laid out in the place of the old version, by renaming, and tell the primary to load it."""
        server, placement = self.servers[name], self.placements[name]
        kind = driver(placement.source.kind)
        for path in placement.dataset.rglob(f"*{NEXT}"):
            path.replace(path.with_name(path.name.removesuffix(NEXT)))
        steps = kind.load_changes(placement)
        for step in steps:
            self._prepare(name, placement, step.command, step.stdout)
        if not steps:
            server.process.popen.send_signal(signal.SIGHUP)

    def begin_changes(self, name: str) -> int:
        """Have the primary of host ``name`` begin what it changes by itself, and return from when on it does."""
        server = self.servers[name]
        server.process.popen.send_signal(signal.SIGUSR1)
        deadline = time.monotonic() + START_LIMIT_S
        while (begun := last_event(server.log, "changes-begun")) is None:
            self.check_servers()
            if time.monotonic() > deadline:
                raise DnsrigError(f"the primary did not begin its changes in {START_LIMIT_S:g} s")
            time.sleep(0.01)
        return int(begun["begin_ns"])

    def end_changes(self, name: str) -> None:
        """Have it end them. What it made, and what its secondaries asked for meanwhile, is known when the trial ends."""
        self.servers[name].process.popen.send_signal(signal.SIGUSR2)

    def _take_changes(self) -> None:
        """What primaries changed by themselves, as their last words and rows say."""
        for name in self.own_changes.keys() & self.servers.keys():
            server = self.servers[name]
            if (summary := last_event(server.log)) and (made := summary["changes"]):
                self.told["change"] = {**made, **{part: summary[part] for part in ("notify", "secondaries")}}
            for rows in server.placement.directory.glob("*.arrow"):
                rows.rename(self.directory / rows.name)

    def check_servers(self) -> None:
        """Raise ``ServerFailed`` if a server has ended."""
        for name, server in self.servers.items():
            if driver(server.placement.source.kind).finishes and server.process.popen.poll() in (0, 1):
                continue  # it is an instrument, and done: 1 says that zones are missing
            if not server.process.running and not server.process.stopped_by_us:
                raise ServerFailed(
                    f"{server.placement.source.label} on host {name} {server.process.how_it_ended()}"
                    f"{last_words(server.log)}"
                )

    def server_records(self) -> dict[str, ServerRecord]:
        records = {}
        for name, server in self.servers.items():
            place, kind = server.placement, driver(server.placement.source.kind)
            by_us = server.process.stopped_by_us or server.process.running
            records[name] = ServerRecord(
                server=place.source,
                role=place.role,
                host=name,
                command=server.process.command,
                pid=server.process.pid,
                exec_ns=self._exec_ns(server),
                settings=dict(place.settings),
                threads=server.threads,
                limits=kind.limits(place.role, place.settings),
                log_clock_resolution_ns=kind.log_clock_resolution_ns,
                exit_status=None if by_us else server.process.popen.poll(),
            )
        return records

    def _exec_ns(self, server: Server) -> int:
        when = server.process.exec_ns()
        if when is None:
            raise DnsrigError(
                f"{server.process.name} on host {server.process.host} did not start{last_words(server.log)}"
            )
        return when

    def count_threads(self) -> None:
        """Note how many threads each server runs now."""
        for name, server in self.servers.items():
            server.threads = sum(_threads(pid) for pid in self._pids(name)) or None

    # Instruments

    def start_watch(self) -> None:
        """Sample every host until the trial ends; the first thing to be done in `setup`."""
        if any(host.profile for host in self.spec.hosts.values()):
            _ = self._no_profiler
        arguments = ["watch", "--out", str(self.directory / "samples.arrow"), "--until-eof"]
        emulated = any(link.emulated for link in self.spec.links)
        lists_sockets = emulated or bool(getattr(procedure(self.spec.procedure), "SOCKETS", False))
        if lists_sockets:
            arguments += ["--sockets-out", str(self.directory / "sockets.arrow")]
        for host in self.network.hosts.values():
            parts = "".join(f",cgroup={folder}" for folder in host.cgroups)
            if lists_sockets and host.name != OBSERVER:
                parts += ",sockets"
            arguments += ["--host", f"{host.name},netns={host.namespace_path}{parts}"]
        self._start_instrument("watch", arguments)

    def start_probe(
        self,
        name: str,
        target: str,
        *,
        limit_s: float,
        out: Path | None = None,
        next_version: bool = False,
        serial: int | None = None,
    ) -> Instrument:
        """Watch for the serial of the dataset, of its next version, or this ``serial`` to become visible on host ``target``."""
        dataset = self.spec.next_dataset if next_version else self.spec.dataset
        assert dataset is not None
        arguments = [
            "probe",
            str(self.host(target).address),
            f"--zones={Path(dataset.path) / 'zones.list'}",
            f"--serial={dataset.serial if serial is None else serial}",
            f"--rate={self.option('probe_rate_per_s')}",
            f"--limit-s={limit_s}",
            "--until-eof",
        ]
        if out is not None:
            arguments.append(f"--out={out}")
        return self._start_instrument(name, arguments)

    def start_load(self, name: str, target: str, arguments: list[str]) -> Instrument:
        """Put queries on the server of host ``target``, as the ``arguments`` of `load` say."""
        if watch := self.instruments.get("watch"):
            watch.process.go_first()  # in real time, a load leaves others little time on a CPU that they share
        words = ["load", str(self.host(target).address), *arguments, "--until-eof"]
        return self._start_instrument(name, words)

    def start_change(self, name: str, target: str, arguments: list[str]) -> Instrument:
        """Change zones of the primary of host ``target`` by dynamic updates, as the ``arguments`` of `change` say."""
        return self._start_instrument(name, ["change", str(self.host(target).address), *arguments, "--until-eof"])

    def start_follow(self, target: str, zones: Path, *, rate_per_s: int) -> Instrument:
        """See when the server of host ``target`` answers otherwise than before for one of ``zones``; rows go to ``followed.arrow``."""
        words = ["probe", "follow", str(self.host(target).address), f"--zones={zones}", f"--rate={rate_per_s}"]
        return self._start_instrument("follow", [*words, f"--out={self.directory / 'followed.arrow'}", "--until-eof"])

    def start_transfer(
        self,
        name: str,
        host: str,
        target: str,
        arguments: list[str],
        *,
        options: Mapping[str, Scalar] | None = None,
        out: Path | None = None,
    ) -> Instrument:
        """Take all zones of the primary of host ``target``, from ``host``, as the ``arguments`` of `transfer` say.

        ``options``: where the procedure's own are not those of `_pulling`. The rows go to ``transfers.arrow``, ``connections.arrow``
        and ``tcp-info.arrow`` in ``out``, by default the trial's directory.
        """
        if watch := self.instruments.get("watch"):
            watch.process.go_first()  # what decides a trial must not cost the samples that tell why
        spec, chosen = self.spec, options if options is not None else self.spec.options
        certificate = self.placements[target].state.resolve() / keys.CERTIFICATE_FILE if spec.transfer.tls else None
        words = ["transfer", str(self.host(target).address), f"--zones={Path(spec.dataset.path) / 'zones.list'}"]
        words += _pulling.transport(chosen, spec.transfer, self.keys, certificate)
        words += _pulling.sources(chosen, spec.hosts[host])
        return self._start_instrument(name, [*words, f"--out={out or self.directory}", "--until-eof", *arguments], host)

    def start_interrogation(self, name: str, host: str, target: str) -> Instrument:
        """Ask the primary of host ``target``, from ``host``, what it supports; the answers are in the summary."""
        words = ["transfer", str(self.host(target).address), "--interrogate"]
        words += [f"--zones={Path(self.spec.dataset.path) / 'zones.list'}", f"--xot-port={keys.XOT_PORT}"]
        return self._start_instrument(name, [*words, *self.signed()], host)

    def start_propagation(self, arguments: list[str]) -> Instrument:
        """Watch changes of the primary arrive on all secondaries, and make them unless it does; rows go to ``propagation.arrow``."""
        hosts = self.spec.hosts.items()
        command = ["probe", "propagation", f"--primary={self.host('primary').address}"]
        command += [f"--secondary={self.host(name).address}" for name, host in hosts if host.role == "secondary"]
        command += [f"--zones={Path(self.spec.dataset.path) / 'zones.list'}"]
        command += [f"--out={self.directory / 'propagation.arrow'}", "--until-eof"]
        signed = [] if "primary" in self.own_changes else self.signed()
        return self._start_instrument("propagation", [*command, *signed, *arguments])

    def signed(self) -> list[str]:
        """What tells an instrument to sign updates: they are where transfers are, with the same key."""
        key = f"{keys.TSIG_ALGORITHM}:{keys.TSIG_NAME}:{self.keys.tsig_secret}"
        return [f"--tsig={key}"] if self.spec.transfer.tsig else []

    def wait(self, instrument: Instrument, *, limit_s: float, until: str = "summary") -> dict[str, Any]:
        """Wait for the event ``until`` of ``instrument``, or its summary, while the servers live; passes its progress on."""
        deadline = time.monotonic() + limit_s
        while True:
            self._take_anchor()
            self._note_pids()
            try:
                event = instrument.events.get(timeout=0.1)
            except queue.Empty:
                self.check_servers()
                if time.monotonic() > deadline:
                    raise Overdue(f"the instrument {instrument.name} did not end in {limit_s:g} s") from None
                continue
            if instrument.take(event) or event["event"] == until:
                return event
            if event["event"] == "progress":
                self.report({**event, "instrument": instrument.name})

    def rest(self, seconds: float) -> None:
        """Let time go by while the servers live; nothing where ``seconds`` are negative."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._take_anchor()
            self._note_pids()
            self.check_servers()
            time.sleep(min(left, 0.1))

    def time_zones(self, probe: Instrument, begin: Callable[[], None]) -> Result:
        """The phases `measure`, from ``begin`` to the last zone that ``probe`` waits for, and `drain`."""
        limit_s = self.spec.limit_s
        with self.profiled(), self.phase("measure"):
            begin()
            seen = self.wait(probe, limit_s=limit_s + PROBE_GRACE_S)
            self.count_threads()
        with self.phase("drain"):
            time.sleep(float(self.option("drain_s")))
            self.check_servers()
        if seen["outcome"] == "limit":
            return Result("limit", f"{seen['seen']:,} of {seen['zones']:,} zones after {limit_s:g} s")
        return Result("done")

    def stop_instrument(self, name: str) -> None:
        """End an instrument that runs until told, and take its summary."""
        self.instruments[name].stop()

    def close(self) -> None:
        """End everything, servers first; then forget what they stored.

        The last started ends first: a database that stops would wait for a replica that has not followed yet.
        """
        for server in reversed(self.servers.values()):
            server.process.stop()
        for instrument in self.instruments.values():
            instrument.process.stop(limit_s=STOP_LIMIT_S)
        self._take_changes()
        if self.placements:
            shutil.rmtree(self.state, ignore_errors=True)

    # Inner workings

    def _prepare(self, name: str, placement: Placement, command: list[str], stdout: str | None) -> None:
        log = placement.directory / "prepare.log"
        output = placement.state / stdout if stdout else log
        with output.open("wb" if stdout else "ab") as out, log.open("ab") as errors:
            started = process.start(
                command[0],
                self.host(name),
                sources.executable(placement.source, command),
                workdir=placement.seen_state,
                stdout=out,
                stderr=errors,
                **placing.view(self.spec, placement),
            )
            try:
                started.popen.wait(PREPARATION_LIMIT_S)
            finally:
                started.stop()
        if started.popen.returncode != 0:
            raise ServerFailed(f"{command[0]} on host {name} {started.how_it_ended()}{last_words(log)}")

    def _start_instrument(self, name: str, arguments: list[str], host: str = OBSERVER) -> Instrument:
        errors = self.directory / "instruments" / f"{name}.stderr"
        self.instruments[name] = Instrument.start(name, self.host(host), arguments, errors)
        return self.instruments[name]

    def _take_anchor(self) -> None:
        if time.monotonic() - self._last_anchor_s >= ANCHOR_EVERY_S:
            self._last_anchor_s = time.monotonic()
            self.anchors.append(clock.anchor())

    def _pids(self, host: str) -> set[int]:
        found: set[int] = set()
        for folder in self.host(host).cgroups:
            found |= {int(pid) for pid in (folder / "cgroup.procs").read_text().split()}
        return found


def _threads(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("Threads:")), 0)
