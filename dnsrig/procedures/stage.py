"""The stage on which a procedure measures: hosts, servers, instruments and phases of one trial."""

from __future__ import annotations

import itertools
import json
import queue
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import ip_address
from pathlib import Path
from typing import IO, Any, Literal

from dnsrig import datasets, paths
from dnsrig.errors import DnsrigError
from dnsrig.lab import clock, process
from dnsrig.lab.network import Host, Network
from dnsrig.lab.process import Bind, Process
from dnsrig.lab.profile import Profiler
from dnsrig.rundir import Anchor, HostSpec, Outcome, Phase, ProfileRecord, ServerRecord, TrialSpec
from dnsrig.servers import driver, keys, sources
from dnsrig.servers.driver import Address, Placement, Route, Zone
from dnsrig.servers.keys import TransferKeys

AWKWARD = re.compile(r"[\s:#\"';{}]")
"""Characters in a path that mean something in a configuration or a mount."""
INSTRUMENT_START_S = 10.0
INSTRUMENT_STOP_S = 10.0
PREPARATION_LIMIT_S = 1800.0
PROBE_GRACE_S = 30.0
"""How long after its limit `probe` may take to say so."""
ANCHOR_EVERY_S = 10.0
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
class Instrument:
    """An engine process whose events we read."""

    name: str
    process: Process
    events: queue.Queue[dict[str, Any]]
    summary: dict[str, Any] | None = None


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
        """Configure and start the server of host ``name`` and wait until it answers all zones."""
        self.prepare_server(name)
        self.start_server(name)
        ready = self.start_probe(f"probe-{name}", name, limit_s=limit_s)
        if self.wait(ready, limit_s=limit_s + 10)["outcome"] != "done":
            raise ServerFailed(f"{name} did not answer all its zones within {limit_s:g} s")

    def prepare_server(self, name: str) -> None:
        """Configure the server of host ``name`` and run its preparations."""
        placement = self._place(name)
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
                **self._view(placement),
            )
        self.servers[name] = Server(placement, started, log)

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

    def check_servers(self) -> None:
        """Raise ``ServerFailed`` if a server has ended."""
        for name, server in self.servers.items():
            if not server.process.running and not server.process.stopped_by_us:
                raise ServerFailed(
                    f"{server.placement.source.label} on host {name} {server.process.how_it_ended()}"
                    f"{_last_words(server.log)}"
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
                f"{server.process.name} on host {server.process.host} did not start{_last_words(server.log)}"
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
        for host in self.network.hosts.values():
            folders = "".join(f",cgroup={folder}" for folder in host.cgroups)
            arguments += ["--host", f"{host.name},netns={host.namespace_path}{folders}"]
        self._start_instrument("watch", arguments)

    def start_probe(
        self, name: str, target: str, *, limit_s: float, out: Path | None = None, next_version: bool = False
    ) -> Instrument:
        """Watch for the serial of the dataset, or of its next version, to become visible on host ``target``."""
        dataset = self.spec.next_dataset if next_version else self.spec.dataset
        assert dataset is not None
        arguments = [
            "probe",
            str(self.host(target).address),
            f"--zones={Path(dataset.path) / 'zones.list'}",
            f"--serial={dataset.serial}",
            f"--rate={self.option('probe_rate_per_s')}",
            f"--limit-s={limit_s}",
            "--until-eof",
        ]
        if out is not None:
            arguments.append(f"--out={out}")
        return self._start_instrument(name, arguments)

    def start_propagation(self, arguments: list[str]) -> Instrument:
        """Make changes on the primary and watch them arrive on all secondaries; rows go to ``propagation.arrow``."""
        hosts = self.spec.hosts.items()
        command = ["probe", "propagation", f"--primary={self.host('primary').address}"]
        command += [f"--secondary={self.host(name).address}" for name, host in hosts if host.role == "secondary"]
        command += [f"--zones={Path(self.spec.dataset.path) / 'zones.list'}"]
        command += [f"--out={self.directory / 'propagation.arrow'}", "--until-eof"]
        return self._start_instrument("propagation", [*command, *self._signed(), *arguments])

    def _signed(self) -> list[str]:
        """Updates are signed where transfers are, with the same key."""
        key = f"{keys.TSIG_ALGORITHM}:{keys.TSIG_NAME}:{self.keys.tsig_secret}"
        return [f"--tsig={key}"] if self.spec.transfer.tsig else []

    def wait(self, instrument: Instrument, *, limit_s: float) -> dict[str, Any]:
        """Wait for the summary of ``instrument`` while the servers live; passes its progress on."""
        deadline = time.monotonic() + limit_s
        while True:
            self._take_anchor()
            self._note_pids()
            try:
                event = instrument.events.get(timeout=0.1)
            except queue.Empty:
                self.check_servers()
                if time.monotonic() > deadline:
                    raise DnsrigError(f"the instrument {instrument.name} did not end in {limit_s:g} s") from None
                continue
            if event["event"] == "summary":
                instrument.summary = event
                instrument.process.stop(limit_s=INSTRUMENT_STOP_S)
                return event
            if event["event"] == "ended":
                raise DnsrigError(
                    f"the instrument {instrument.name} {instrument.process.how_it_ended()}"
                    f"{_last_words(self._errors(instrument.name))}"
                )
            if event["event"] == "progress":
                self.report({**event, "instrument": instrument.name})

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
        instrument = self.instruments[name]
        instrument.process.popen.terminate()
        try:
            instrument.process.popen.wait(INSTRUMENT_STOP_S)
        except subprocess.TimeoutExpired:
            instrument.process.stop(limit_s=0)
        while instrument.summary is None:
            try:
                event = instrument.events.get(timeout=INSTRUMENT_STOP_S)
            except queue.Empty:
                return
            if event["event"] == "summary":
                instrument.summary = event
            if event["event"] == "ended":
                return

    def close(self) -> None:
        """End everything, servers first; then forget what they stored."""
        for server in self.servers.values():
            server.process.stop()
        for instrument in self.instruments.values():
            instrument.process.stop(limit_s=INSTRUMENT_STOP_S)
        if self.placements:
            shutil.rmtree(self.state, ignore_errors=True)

    # Inner workings

    def _place(self, name: str) -> Placement:
        spec = self.spec.hosts[name]
        if spec.server is None or spec.role is None:
            raise DnsrigError(f"host {name} has no server")
        folder, state = self.directory / "servers" / name, self.state / name
        for path in (folder.resolve(), Path(self.spec.dataset.path)):
            if AWKWARD.search(str(path)):
                raise DnsrigError(
                    f"servers cannot be given the path {path}", hint="use one without spaces, colons, quotes or #"
                )
        folder.mkdir(parents=True)
        state.mkdir(parents=True)
        if self.spec.transfer.tls:
            self.keys.write(state, private=spec.role == "primary")
        in_root = spec.server.root is not None
        dataset = Path(self.spec.dataset.path)
        if self._changes(spec.role):
            dataset = shutil.copytree(dataset, state.resolve() / "dataset")
        secondaries = [h for h in self.spec.hosts.values() if h.role == "secondary"]
        catalog = Zone(*datasets.catalog_of(dataset)) if self.spec.transfer.provisioning == "catalog" else None
        return Placement(
            source=spec.server,
            role=spec.role,
            address=ip_address(spec.address),
            cpus=tuple(spec.cpus),
            settings=spec.settings,
            zones=read_zones(dataset / "zones.list"),
            routes=self._routes(spec) if spec.role == "secondary" else [],
            secondaries=[ip_address(h.address) for h in secondaries] if spec.role == "primary" else [],
            transfer=self.spec.transfer,
            keys=self.keys,
            catalog=catalog,
            directory=folder,
            seen_directory="/mnt/server" if in_root else str(folder.resolve()),
            state=state,
            seen_state="/mnt/state" if in_root else str(state.resolve()),
            dataset=dataset,
            seen_dataset="/mnt/dataset" if in_root else str(dataset),
        )

    def _changes(self, role: str) -> bool:
        """Whether the server works on a copy of the dataset that is its own, because the zones are going to change: some
        servers write updated zones back to their files."""
        return (self.spec.next_dataset is not None or self.spec.transfer.updates) and role == "primary"

    def _routes(self, spec: HostSpec) -> list[Route]:
        """Every primary, asked from every address of the host in turn."""
        primaries = [ip_address(self.spec.hosts[name].address) for name in self.spec.primaries]
        own = [ip_address(address) for address in (spec.address, *spec.source_addresses)]
        sources: list[Address | None] = [*own] if spec.source_addresses else [None]
        pairs = itertools.product(sources, primaries)
        return [Route(number, primary, source) for number, (source, primary) in enumerate(pairs, start=1)]

    def _view(self, placement: Placement) -> dict[str, Any]:
        """Root file system and binds of a server's programs."""
        if placement.source.root is None:
            return {}
        return {
            "root": Path(placement.source.root),
            "binds": [
                Bind(placement.directory.resolve(), placement.seen_directory, read_only=True),
                Bind(placement.state.resolve(), placement.seen_state),
                Bind(placement.dataset, placement.seen_dataset, read_only=not self._changes(placement.role)),
            ],
        }

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
                **self._view(placement),
            )
            try:
                started.popen.wait(PREPARATION_LIMIT_S)
            finally:
                started.stop()
        if started.popen.returncode != 0:
            raise ServerFailed(f"{command[0]} on host {name} {started.how_it_ended()}{_last_words(log)}")

    def _start_instrument(self, name: str, arguments: list[str]) -> Instrument:
        self._errors(name).parent.mkdir(exist_ok=True)
        with self._errors(name).open("wb") as errors:
            started = process.start(
                name,
                self.host("observer"),
                [str(paths.engine()), *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        instrument = Instrument(name, started, queue.Queue())
        assert started.popen.stdout is not None
        threading.Thread(target=_read_events, args=(started.popen.stdout, instrument.events), daemon=True).start()
        self.instruments[name] = instrument
        self._await_start(instrument)
        return instrument

    def _await_start(self, instrument: Instrument) -> None:
        """An instrument that does not start is an error of ours, never a trial without its data."""
        try:
            first = instrument.events.get(timeout=INSTRUMENT_START_S)
        except queue.Empty:
            raise DnsrigError(f"the instrument {instrument.name} did not start in {INSTRUMENT_START_S:g} s") from None
        if first["event"] == "ended":
            words = _last_words(self._errors(instrument.name))
            raise DnsrigError(f"the instrument {instrument.name} did not start{words}")

    def _errors(self, instrument: str) -> Path:
        return self.directory / "instruments" / f"{instrument}.stderr"

    def _take_anchor(self) -> None:
        if time.monotonic() - self._last_anchor_s >= ANCHOR_EVERY_S:
            self._last_anchor_s = time.monotonic()
            self.anchors.append(clock.anchor())

    def _pids(self, host: str) -> set[int]:
        found: set[int] = set()
        for folder in self.host(host).cgroups:
            found |= {int(pid) for pid in (folder / "cgroup.procs").read_text().split()}
        return found


def read_zones(path: Path) -> list[Zone]:
    """``zones.list``: a line a zone, its name and its file, separated by a tab."""
    with path.open() as lines:
        return [Zone(*line.rstrip("\n").split("\t")) for line in lines]


def _read_events(stream: IO[str], events: queue.Queue[dict[str, Any]]) -> None:
    """Runs in a thread until the instrument closes its output; then says `ended`."""
    try:
        for line in stream:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict) and "event" in event:
                events.put(event)
    except ValueError:
        pass  # closed under us while the trial ends
    events.put({"event": "ended"})


def _last_words(log: Path, limit: int = 300) -> str:
    """The last line of a log, for a sentence."""
    try:
        lines = log.read_text(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return f": {lines[-1][-limit:]}" if lines else ""


def _threads(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("Threads:")), 0)
