"""The servers of a trial: they are configured, started, stopped and recorded here."""

from __future__ import annotations

import contextlib
import itertools
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from dnsrig import confinement
from dnsrig.errors import DnsrigError
from dnsrig.lab import host_calls, process
from dnsrig.lab.process import Process
from dnsrig.procedures.context import placing
from dnsrig.procedures.context.workspace import ServerFailed, Workspace
from dnsrig.procedures.instrument import last_words
from dnsrig.rundir import Privileges, ServerRecord
from dnsrig.servers import driver_of, sources
from dnsrig.servers.placement import Changes, Placement, Preparation

PREPARATION_LIMIT_S = 1800.0
PRINTED_MOST_BYTES = 1 << 26
"""Limit for printed settings; a server with 100,000 zones prints some ten MB."""
SHOWN_MAX = 300
"""Characters of a line of a log."""
LOG_MOST_BYTES = 1 << 30
"""Limit for the log of a server: a line for each of ten million queries."""
LINE_MOST_BYTES = 4096
"""Beginning of a line of a log that is read."""
LINES_MOST = 10_000
"""Lines that are read before the limits of the trial are looked at again."""


@dataclass
class Server:
    placement: Placement
    process: Process
    log: Path
    threads: int | None = None
    privileges: Privileges | None = None


@dataclass
class Servers:
    """The servers of a trial, by host."""

    workspace: Workspace
    placements: dict[str, Placement] = field(default_factory=dict)
    started: dict[str, Server] = field(default_factory=dict)
    own_changes: dict[str, Changes] = field(default_factory=dict)
    """Changes that primaries make by themselves; set before they start."""

    def prepare(self, name: str) -> None:
        """Configure the server of host ``name`` and run its preparations."""
        placement = replace(placing.place(self.workspace, name), changes=self.own_changes.get(name))
        self.placements[name] = placement
        kind = driver_of(placement.source)
        kind.configure(placement)
        placing.confinement(placement).give()
        if (machine := self.workspace.host(name).machine) is not None:
            for folder in (placement.directory, placement.state):
                machine.bring_folder(folder)
        for step in kind.preparations(placement):
            self.run(name, step)

    def start(self, name: str) -> None:
        """Start the configured server. Afterwards it is running, but may not be ready."""
        placement = self.placements[name]
        kind = driver_of(placement.source)
        log = placement.directory / "server.log"
        with log.open("wb") as output:
            started = process.start(
                placement.source.kind,
                self.workspace.host(name),
                sources.executable(placement.source, [*kind.command(placement), *kind.listen_arguments(placement)]),
                workdir=kind.workdir(placement),
                stamp_file=placement.directory / "exec.json",
                stdout=output,
                stderr=subprocess.STDOUT,
                confined=placing.confinement(placement),
            )
        started.stop_signal = kind.stop_signal
        self.started[name] = Server(placement, started, log)

    def stop(self, name: str, *, limit_s: float) -> None:
        """Stop the server of host ``name``. Its files stay, and `start` starts it again.

        Its log is kept as ``server-before.log``.
        """
        server = self.started[name]
        server.process.stop(limit_s=limit_s)
        if server.process.popen.returncode == -signal.SIGKILL:
            raise ServerFailed(f"{server.placement.source.label} on host {name} did not stop within {limit_s:g} s")
        server.log.rename(server.log.with_name("server-before.log"))
        # Otherwise the next start would seem to have this time until it has written its own.
        (server.placement.directory / "exec.json").unlink(missing_ok=True)

    def forget(self, name: str) -> Placement:
        """End the server of host ``name`` and remove it from the record. Return its placement, for the removal of its
        files."""
        self.started.pop(name).process.stop()
        return self.placements.pop(name)

    def signal(self, name: str, number: signal.Signals) -> None:
        self.started[name].process.popen.send_signal(number)

    def run(
        self,
        name: str,
        step: Preparation,
        *,
        limit_s: float = PREPARATION_LIMIT_S,
        output: IO[bytes] | None = None,
    ) -> None:
        """Run a program of the server of host ``name`` on that host, until it ends. ``output`` gets its output, unless
        the step names a file."""
        placement = self.placements[name]
        log = placement.directory / "prepare.log"
        with log.open("ab") as errors, _taking(placement, step) as out:
            started = process.start(
                step.command[0],
                self.workspace.host(name),
                sources.executable(placement.source, step.command),
                workdir=placement.seen_state,
                stdout=out or output or errors,
                stderr=errors,
                confined=placing.confinement(placement),
            )
            try:
                started.popen.wait(limit_s)
            finally:
                started.stop()
        if started.popen.returncode != 0:
            raise ServerFailed(f"{step.command[0]} on host {name} {started.how_it_ended()}{why_it_ended(log)}")

    def printed(self, name: str, command: Sequence[str], *, limit_s: float) -> str:
        """Output of a program of the server of host ``name`` on that host. Raises what `run` raises."""
        with tempfile.TemporaryFile() as output:
            self.run(name, Preparation([*command]), limit_s=limit_s, output=output)
            output.seek(0)
            return output.read(PRINTED_MOST_BYTES).decode(errors="replace")

    def take_rows(self, name: str) -> None:
        """Move the rows that the server of host ``name`` wrote to the rows of the trial."""
        self._fetch(name)
        for rows in self.placements[name].directory.glob("*.arrow"):
            rows.rename(self.workspace.directory / rows.name)

    def check(self) -> None:
        """Raise ``ServerFailed`` if a server has ended."""
        for name, server in self.started.items():
            if driver_of(server.placement.source).finishes and server.process.popen.poll() in (0, 1):
                continue  # it is an instrument, and done; status 1: zones are missing
            if server.log.exists() and server.log.stat().st_size > LOG_MOST_BYTES:
                raise ServerFailed(
                    f"{server.placement.source.label} on host {name} wrote more than {LOG_MOST_BYTES >> 20:,} MiB of log;"
                    " lower its log level"
                )
            if not server.process.running and not server.process.stopped_by_us:
                raise ServerFailed(
                    f"{server.placement.source.label} on host {name} {server.process.how_it_ended()}"
                    f"{why_it_ended(server.log)}"
                )

    def count_threads(self) -> None:
        """Record the number of threads and the privileges of each server."""
        for name, server in self.started.items():
            pids, machine = sorted(self.workspace.pids(name)), self.workspace.host(name).machine
            counted = machine.call(host_calls.threads, pids) if machine else sum(map(process.threads, pids))
            server.threads = counted or None
            pid = server.process.pid
            server.privileges = machine.call(process.privileges, pid) if machine else process.privileges(pid)

    def records(self) -> dict[str, ServerRecord]:
        records = {}
        for name, server in self.started.items():
            place, kind = server.placement, driver_of(server.placement.source)
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
                privileges=server.privileges,
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

    def close(self) -> None:
        """End all servers, the last started first, because a database waits at its end for replicas that are behind."""
        for name, server in reversed(self.started.items()):
            server.process.stop()
            self._fetch(name)

    def _fetch(self, name: str) -> None:
        """Fetch the files of a server from another machine."""
        if (machine := self.workspace.host(name).machine) is not None:
            with contextlib.suppress(DnsrigError):  # a machine that is gone has ended the trial already
                machine.fetch(self.placements[name].directory.resolve())


@dataclass
class LogLines:
    """The lines that a program appends to its log, and whether one matched. Of each line the beginning is read."""

    log: IO[bytes]
    pattern: re.Pattern[str]
    _cut: bool = False
    """Whether the line that is read now was longer than its beginning."""
    _begun: bytes = b""

    def found(self) -> bool:
        """Whether one of the next lines matches; a line without an end is read when it ends, or is too long."""
        for piece in itertools.islice(iter(lambda: self.log.readline(LINE_MOST_BYTES), b""), LINES_MOST):
            ended = piece.endswith(b"\n")
            line = b"" if self._cut else (self._begun + piece)[:LINE_MOST_BYTES]
            self._cut = not ended and (self._cut or len(line) == LINE_MOST_BYTES)
            self._begun = b"" if ended or self._cut else line
            if (ended or self._cut) and line and self.pattern.search(line.decode(errors="replace").rstrip()):
                return True
        return False


@contextlib.contextmanager
def _taking(placement: Placement, step: Preparation) -> Iterator[IO[bytes] | None]:
    """The file for the output of a step, if the step names one."""
    if step.stdout is None:
        yield None
        return
    with contextlib.ExitStack() as opened:
        with confinement.as_user(placement.state) as state:
            file = opened.enter_context((state / step.stdout).open("wb"))
        yield file


def why_it_ended(log: Path) -> str:
    """The last line of a server's log, for a sentence.

    A server that refuses its configuration often logs the cause earlier. So the first line of the log that names a line
    of a configuration file comes before the last line.
    """
    names = "|".join(re.escape(path.name) for path in sorted(log.parent.iterdir()) if path != log)
    place = re.compile(rf"(?:{names}):\d+|(?:{names})\W.*\bline \d+|\bline \d+.*/(?:{names})\b")
    with log.open(errors="replace") as lines:
        read = iter(lambda: lines.readline(LINE_MOST_BYTES), "")
        found = next(((n, line) for n, line in enumerate(read, start=1) if names and place.search(line)), None)
    if found is None:
        return last_words(log)
    number, line = found
    shown, last = line.strip()[:SHOWN_MAX], last_words(log).removeprefix(": ")
    where = "/".join(log.parts[-3:])
    return f": {shown} (line {number} of {where})" + (f"; last: {last}" if last not in line else "")
