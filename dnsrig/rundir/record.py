"""The record of a trial: how it went."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from dnsrig.rundir.base import SCHEMA_VERSION, Name, Outcome, Record, Scalar
from dnsrig.rundir.spec import LinkSpec, ServerSource, TrialSpec


class Anchor(Record):
    """One reading of both clocks. Their difference is known to ±``error_ns``."""

    monotonic_ns: int
    realtime_ns: int
    error_ns: int


class Phase(Record):
    name: Literal["setup", "warmup", "measure", "drain"]
    start: Anchor
    end: Anchor


class ServerLimit(Record):
    """A limit that a server sets itself, with its value in this trial. Traps compare it with the measurement."""

    setting: str
    value: Scalar
    default: bool
    effect: Literal["rate", "silent-start", "timer", "connections"] = "rate"
    """``silent-start``: the server answers no query before it has all zones; ``timer``: it waits for a timer;
    ``connections``: it has no more TCP connections of clients at a time."""
    zones_per_s: float | None = None
    """Rate that a limit of the kind ``rate`` allows if nothing else limits the server."""
    timer_s: float | None = None
    connections: int | None = None
    """Connections that a limit of the kind ``connections`` permits, or permits each thread or process."""
    each_thread: bool = False
    remedy: str


class Privileges(Record):
    """Privileges of the first process of a server, from the kernel (proc_pid_status(5))."""

    user: int
    capabilities: list[str]
    """Effective capabilities."""
    no_new_privileges: bool
    own_pid_namespace: bool
    """Whether it sees only the processes of its host."""


class ServerRecord(Record):
    """A server that ran in a trial."""

    server: ServerSource
    role: str
    host: str
    command: list[str]
    pid: int
    exec_ns: int
    """Time immediately before execve."""
    settings: dict[str, Scalar]
    """Settings from the experiment."""
    threads: int | None
    """Number of threads while it served, from /proc."""
    privileges: Privileges | None = None
    """None: not known."""
    limits: list[ServerLimit] = Field(default_factory=list)
    log_clock_resolution_ns: int
    exit_status: int | None = None
    """None: it ran until the rig stopped it, as intended."""


class LogDrilldown(Record):
    """Completed transfers according to the secondary's log: for the drill-down, never for the result."""

    zones: int
    """Number of distinct zones with a line of completion."""
    first_realtime_ns: int | None
    last_realtime_ns: int | None
    resolution_ns: int
    failures: dict[str, int] = Field(default_factory=dict)
    """Failure lines by kind, e.g. ``no free port``."""
    first_failure_realtime_ns: dict[str, int] = Field(default_factory=dict)
    examples: dict[str, str] = Field(default_factory=dict)
    """One line as logged, by kind: untrusted text."""
    unread: str = ""
    """Why the log could not be read to its end. The other fields then describe the lines before."""


class ProfileRecord(Record):
    """Samples of a host's CPU stacks."""

    samples: int = 0
    """Number of samples in ``profile-<host>.folded``; 0 with a ``reason`` if the stacks could not be sampled."""
    rate_per_s: float = 0.0
    reason: str = ""


class ProcessCounts(Record):
    """The kernel's counts for a host's processes from just before `measure` to just after."""

    voluntary_switches: int
    """How often a thread left its CPU in order to wait."""
    involuntary_switches: int
    """How often a thread lost its CPU to another one."""
    minor_faults: int
    """Faults on pages that were in memory."""
    major_faults: int
    """Faults on pages that were read from a disk."""


class FileRecord(Record):
    """Size and checksums of a file when its trial ended. Readers compare the file with them."""

    bytes: int
    chunk_bytes: int = Field(1 << 16, ge=1)
    crc32: str
    """Checksums of the pieces of ``chunk_bytes``, eight hexadecimal digits each."""


class Check(Record):
    """A manipulation check: one thing that had to be so, on the hosts of a trial while it measured, for its variant to
    be what its name says."""

    name: str
    title: str
    verdict: Literal["passed", "failed", "cannot-tell"]
    asked: Scalar | None = None
    seen: Scalar | None = None
    """The value that was seen; None: not known."""
    unit: str = ""
    least: float | None = None
    most: float | None = None
    """Range of ``seen``; without ``least`` and ``most``, ``seen`` must be equal to ``asked``."""
    reason: str = ""
    """Reason of every verdict but ``passed``, one sentence."""
    series: list[str] = Field(default_factory=list)
    """Rows or samples that show it."""


class ClockRecord(Record):
    """The clock of another machine (CLOCK_MONOTONIC), from exchanges with it: theirs = ours + ``offset_ns`` +
    ``drift_ppb`` × (ours - ``at_ns``)."""

    at_ns: int
    offset_ns: int
    drift_ppb: float
    error_ns: int
    """Largest error of that formula at any comparison."""
    realtime_offset_ns: int
    """Their wall-clock time minus ours."""
    realtime_error_ns: int
    comparisons: int


class MachineRecord(Record):
    """Another machine with hosts of a trial."""

    read_back: dict[str, Any]
    """State of the machine around the trial, as the system reports it."""
    clock: ClockRecord | None = None
    """The clock by which its times were converted in the trial's rows."""


class ImportedRecord(Record):
    """File from which an imported trial was read."""

    file: str
    """Name of the file: untrusted text."""
    sha256: str
    command: str = ""
    """Command line of the tool, as it reports it: untrusted text."""
    missing: list[str] = Field(default_factory=list)
    """Facts that the file does not contain, one sentence each."""


class TrialRecord(Record):
    """trial.json: the record of a trial."""

    schema_version: int = SCHEMA_VERSION
    spec: TrialSpec
    outcome: Outcome
    reason: str = ""
    """Reason of every outcome but ``done``, one sentence."""
    phases: list[Phase]
    anchors: list[Anchor] = Field(default_factory=list)
    """Readings of both clocks during the trial, for the trap of clock steps."""
    servers: dict[Name, ServerRecord]
    instruments: dict[str, dict[str, Any]]
    """The final summary event of each instrument, e.g. ``probe``, ``watch``."""
    logs: dict[str, LogDrilldown] = Field(default_factory=dict)
    profiles: dict[str, ProfileRecord] = Field(default_factory=dict)
    """Profiles by host, for hosts with `HostSpec.profile`."""
    counts: dict[Name, ProcessCounts] = Field(default_factory=dict)
    """Counts of the processes of each host with a server; empty if nothing was measured."""
    checks: list[Check] = Field(default_factory=list)
    """The manipulation checks that its procedure declares; empty if nothing was measured."""
    link_tests: list[dict[str, Any]] = Field(default_factory=list)
    """Self-tests of the links, before the start."""
    read_back: dict[str, Any] = Field(default_factory=dict)
    """State of this machine, its kernel and the hosts, as the system reports it: before, during and after the trial.
    The conditions in the manifest do not change during a run."""
    machines: dict[Name, MachineRecord] = Field(default_factory=dict)
    """Other machines with hosts of the trial, by name."""
    imported: ImportedRecord | None = None
    """File with the results, if another tool measured them."""
    files: dict[Name, FileRecord] = Field(default_factory=dict)
    """The files of rows, latencies and profiles by name."""
    metrics: dict[str, float | None] = Field(default_factory=dict)
    """Values for metrics that cannot be computed from the record (`dnsrig.runs.trial.Trial.value`)."""

    def phase(self, name: str) -> Phase | None:
        return next((p for p in self.phases if p.name == name), None)

    def link_summary(self, link: LinkSpec) -> dict[str, Any]:
        """Final report of an emulated link; empty if there is none. A single link reports under the name `link`."""
        return self.instruments.get(f"link-{link.name}") or self.instruments.get("link", {})
