"""The record of a trial: how it went."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from dnsrig.rundir.base import SCHEMA_VERSION, Name, Outcome, Record, Scalar
from dnsrig.rundir.spec import LinkSpec, ServerSource, TrialSpec


class Anchor(Record):
    """One reading of both clocks; the mapping between them is known to ±``error_ns``."""

    monotonic_ns: int
    realtime_ns: int
    error_ns: int


class Phase(Record):
    name: Literal["setup", "warmup", "measure", "drain"]
    start: Anchor
    end: Anchor


class ServerLimit(Record):
    """A limit that a server sets itself, as in force in this trial, for traps to hold what was measured against."""

    setting: str
    value: Scalar
    default: bool
    effect: Literal["rate", "silent-start", "timer"] = "rate"
    """``silent-start``: it answers nothing before all zones are there; ``timer``: it waits for one."""
    zones_per_s: float | None = None
    """What a ``rate`` allows when nothing else binds."""
    timer_s: float | None = None
    remedy: str


class Privileges(Record):
    """What a server may do, as the kernel states it of the server's first process (proc_pid_status(5))."""

    user: int
    capabilities: list[str]
    """The effective ones."""
    no_new_privileges: bool
    own_pid_namespace: bool
    """Whether it sees only the processes of its host."""


class ServerRecord(Record):
    """What is known of a server that ran in a trial."""

    server: ServerSource
    role: str
    host: str
    command: list[str]
    pid: int
    exec_ns: int
    """Taken immediately before execve."""
    settings: dict[str, Scalar]
    """As asked for by the experiment."""
    threads: int | None
    """Counted while it served, from /proc."""
    privileges: Privileges | None = None
    """None: not known."""
    limits: list[ServerLimit] = Field(default_factory=list)
    log_clock_resolution_ns: int
    exit_status: int | None = None
    """None when it was still running and was stopped by the rig as intended."""


class LogDrilldown(Record):
    """Per-zone completions as the secondary's log tells them: for the drill-down, never for the result."""

    zones: int
    """Distinct zones with a completion line."""
    first_realtime_ns: int | None
    last_realtime_ns: int | None
    resolution_ns: int
    failures: dict[str, int] = Field(default_factory=dict)
    """Failure lines by kind, e.g. ``no free port``."""
    first_failure_realtime_ns: dict[str, int] = Field(default_factory=dict)
    examples: dict[str, str] = Field(default_factory=dict)
    """One line as logged, by kind: untrusted text."""
    unread: str = ""
    """Why the log could not be read to its end; what is above is then of the lines before."""


class ProfileRecord(Record):
    """Of a host whose CPU stacks were to be sampled."""

    samples: int = 0
    """All in ``profile-<host>.folded``; 0 with a reason where it could not be done."""
    rate_per_s: float = 0.0
    reason: str = ""


class ProcessCounts(Record):
    """What the kernel counted of a host's processes from just before `measure` to just after."""

    voluntary_switches: int
    """How often a thread left its CPU to wait."""
    involuntary_switches: int
    """How often it lost it to another one."""
    minor_faults: int
    """Of pages that were in memory."""
    major_faults: int
    """Of pages that were read from a disk."""


class FileRecord(Record):
    """A file of a trial as it was when the trial ended: what is read later is held against it."""

    bytes: int
    chunk_bytes: int = Field(1 << 16, ge=1)
    crc32: str
    """Of each ``chunk_bytes``, eight hexadecimal digits a piece."""


class Check(Record):
    """A manipulation check: one thing that had to be so, on the hosts of a trial while it measured, for its variant to
    be what its name says."""

    name: str
    title: str
    verdict: Literal["passed", "failed", "cannot-tell"]
    asked: Scalar | None = None
    seen: Scalar | None = None
    """None: nothing tells."""
    unit: str = ""
    least: float | None = None
    most: float | None = None
    """Within which ``seen`` must be; without both it must be what was ``asked``."""
    reason: str = ""
    """A sentence, for every verdict but ``passed``."""
    series: list[str] = Field(default_factory=list)
    """Which rows or samples show it."""


class ClockRecord(Record):
    """The clock of another machine (CLOCK_MONOTONIC), as exchanges with it told: theirs = ours + ``offset_ns`` +
    ``drift_ppb`` × (ours - ``at_ns``)."""

    at_ns: int
    offset_ns: int
    drift_ppb: float
    error_ns: int
    """Within which that held at each comparison."""
    realtime_offset_ns: int
    """Their wall time less ours."""
    realtime_error_ns: int
    comparisons: int


class MachineRecord(Record):
    """Another machine that hosts of a trial were on."""

    conditions: dict[str, Any]
    """What may differ from one trial to the next."""
    clock: ClockRecord | None = None
    """By which its times were moved to this machine's in the trial's rows."""


class ImportedRecord(Record):
    """Of the file that a trial was read from."""

    file: str
    """Its name: untrusted text."""
    sha256: str
    command: str = ""
    """Of the tool, as it tells: untrusted text."""
    missing: list[str] = Field(default_factory=list)
    """What it does not tell, a sentence each."""


class TrialRecord(Record):
    """trial.json: how a trial went."""

    schema_version: int = SCHEMA_VERSION
    spec: TrialSpec
    outcome: Outcome
    reason: str = ""
    """One sentence for every outcome but ``done``."""
    phases: list[Phase]
    anchors: list[Anchor] = Field(default_factory=list)
    """Readings of both clocks during the trial, for the trap of clock steps."""
    servers: dict[Name, ServerRecord]
    instruments: dict[str, dict[str, Any]]
    """The final summary event of each instrument, e.g. ``probe``, ``watch``."""
    logs: dict[str, LogDrilldown] = Field(default_factory=dict)
    profiles: dict[str, ProfileRecord] = Field(default_factory=dict)
    """By host, where `HostSpec.profile` asked for it."""
    counts: dict[Name, ProcessCounts] = Field(default_factory=dict)
    """Counts of the processes of each host with a server; empty if nothing was measured."""
    checks: list[Check] = Field(default_factory=list)
    """The manipulation checks that its procedure declares; empty if nothing was measured."""
    link_checks: list[dict[str, Any]] = Field(default_factory=list)
    """The links as measured before the start."""
    conditions: dict[str, Any] = Field(default_factory=dict)
    """The machine around this trial: what may differ from one trial to the next."""
    machines: dict[Name, MachineRecord] = Field(default_factory=dict)
    """Those that hosts were on, beside this one."""
    imported: ImportedRecord | None = None
    """Of results of another tool."""
    files: dict[Name, FileRecord] = Field(default_factory=dict)
    """The files of rows, latencies and profiles by name."""
    metrics: dict[str, float | None] = Field(default_factory=dict)
    """Of earlier versions, which computed them when the trial ended. Now they are derived
    (`dnsrig.runs.trial.Trial.value`), and what stands here counts only where that yields nothing any more."""

    def phase(self, name: str) -> Phase | None:
        return next((p for p in self.phases if p.name == name), None)

    def link_summary(self, link: LinkSpec) -> dict[str, Any]:
        """What an emulated link said of itself at its end, among ``instruments``: as `link` where it is the only one.
        Empty where it said nothing."""
        return self.instruments.get(f"link-{link.name}") or self.instruments.get("link", {})
