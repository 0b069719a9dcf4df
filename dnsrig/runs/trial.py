"""Reads a finished trial: its record, its rows and its metrics, each when it is first asked for.

A trial's metrics are derived: computed from what it recorded. What an older dnsrig
wrote into trial.json as ``metrics`` replaces what can no longer be computed: rows that were deleted, a metric
that is no longer known.

A file that was cut or damaged raises `DamagedFile` when it is asked for, so that nothing is derived from half of it;
charts look at `Run.as_far_as_whole`, which has what lies before the damage.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from dnsrig import checksums
from dnsrig.rundir import Anchor, LogDrilldown, Phase, ServerRecord, TrialKey, TrialRecord
from dnsrig.runs import rows
from dnsrig.runs.failures import RAISED, Failures
from dnsrig.runs.latency import Latency
from dnsrig.runs.load_result import LoadResult
from dnsrig.runs.metric import all_metrics
from dnsrig.runs.row_files import RowFile, change, link, load, probe, transfer, watch
from dnsrig.runs.rows import DamagedFile


@dataclass
class Trial:
    """A finished trial: its record and, when asked for, its rows and metrics."""

    directory: Path
    record: TrialRecord
    failures: Failures = field(default_factory=Failures, repr=False, compare=False)
    """Where it is noted that a metric could not be computed."""
    strict: Trial | None = field(default=None, repr=False, compare=False)
    """For a trial that is read as far as its files are whole: the strict one, from which metrics are computed."""
    machine: str = ""
    """Where it ran, of a run that names its machines."""
    run_dir: Path | None = None
    """The run that it is part of, below which no link is followed; None of a trial alone, which is its own folder."""
    _values: dict[str, float | None] = field(default_factory=dict, repr=False, compare=False)

    def value(self, metric: str) -> float | None:
        """Its figure under the metric of this name; None where it has none."""
        if self.strict is not None:
            return self.strict.value(metric)
        if metric not in self._values:
            self._values[metric] = self._computed(metric)
        return self._values[metric]

    @property
    def metrics(self) -> dict[str, float | None]:
        """Every metric by name; None for a metric of which this trial has no figure."""
        return {name: self.value(name) for name in dict.fromkeys([*all_metrics(), *self.record.metrics])}

    def _computed(self, name: str) -> float | None:
        metric, recorded = all_metrics().get(name), self.record.metrics.get(name)
        if metric is None:
            return recorded
        try:
            value = metric.of(self)
        except DamagedFile as error:
            self.failures.damaged[error.message] = None
            value = None
        except RAISED as error:
            self.failures.add("metric", name, error, self.key)
            value = None
        return recorded if value is None else value

    @property
    def key(self) -> TrialKey:
        return TrialKey(variant=self.record.spec.variant.id, repeat=self.record.spec.repeat)

    def as_far_as_whole(self) -> Trial:
        """The same, but of a damaged file it has what lies before the damage."""
        found = copy.copy(self)
        found.strict = self.strict or self
        return found

    @cached_property
    def damage(self) -> dict[str, str]:
        """What is wrong with its files, by name; empty where all are whole."""
        names = dict.fromkeys([*self.record.files, *checksums.names(self.directory)])
        found = {name: self._damage_of(name) for name in names}
        return {name: what for name, what in found.items() if what}

    def _damage_of(self, name: str) -> str:
        path, recorded = self.directory / name, self.record.files.get(name)
        if path.suffix == ".arrow":
            return rows.read(path, recorded, {}, inside=self.run_dir).damage
        if path.suffix == ".hlog":
            return Latency(path, None, recorded, self.run_dir).damage
        return self._folded(name)[1] if path.suffix == ".folded" else rows.content(path, recorded, self.run_dir).damage

    def rows(self, file: RowFile) -> pl.DataFrame:
        """What an instrument left in ``file``; nothing where there is no such file. Raises `DamagedFile`."""
        recorded = self.record.files.get(file.name)
        found = rows.read(self.directory / file.name, recorded, file.schema, file.later, self.run_dir)
        self._refuse(found.damage)
        return found.frame

    def _refuse(self, damage: str) -> None:
        if damage and self.strict is None:
            raise DamagedFile(
                f"{self.directory / damage}", hint="`dnsrig report` says how to measure this repeat again"
            )

    @cached_property
    def samples(self) -> pl.DataFrame:
        """What `watch` saw."""
        return self.rows(watch.SAMPLES)

    @cached_property
    def zones(self) -> pl.DataFrame:
        """What `probe` saw, one row a zone."""
        return self.rows(probe.ZONES)

    @cached_property
    def propagation(self) -> pl.DataFrame:
        """What `propagation` saw, one row a change and secondary."""
        return self.rows(probe.PROPAGATION)

    @cached_property
    def changes(self) -> pl.DataFrame:
        """What changed on the primary while others measured, one row a change."""
        return self.rows(change.CHANGES)

    @cached_property
    def followed(self) -> pl.DataFrame:
        """What `probe follow` saw of zones of the server under test, one row each time that its answer became
        another."""
        return self.rows(probe.FOLLOWED)

    @property
    def load(self) -> LoadResult:
        """What the load generator summed up at its end; nothing where it did not run or did not end."""
        return LoadResult.model_validate(self.record.instruments.get("load", {}))

    @property
    def loads(self) -> dict[str, LoadResult]:
        """The summary of each host that asks. Where it is not the only one, or on another machine, `load` is what they
        saw together, and moments here are of its own machine's clock."""
        generators, told = self.record.spec.generators, self.record.instruments
        found = {host: LoadResult.model_validate(told.get(f"load-{host}", {})) for host in generators}
        return {generators[0]: self.load} if len(generators) == 1 and not found[generators[0]].ran else found

    @property
    def ramp(self) -> LoadResult:
        """Summary of the procedure's ramp, or else of the short ramp before `measure`; empty without."""
        if self.load.model == "ramp":
            return self.load
        return LoadResult.model_validate(self.record.instruments.get("ramp", {}))

    @cached_property
    def latency(self) -> Latency | None:
        """The distributions of latency that `load` counted; None where it counted none."""
        path, recorded = self.directory / "latency.hlog", self.record.files.get("latency.hlog")
        if recorded is None and not path.exists():
            return None
        found = Latency(path, self.load.timeout_ns, recorded, self.run_dir)
        if self.strict is None:
            self._refuse(found.damage)
        return found

    @cached_property
    def load_intervals(self) -> pl.DataFrame:
        """What became of the queries that were due in each interval of `load`, one row an interval."""
        return self.rows(load.INTERVALS)

    @cached_property
    def clients(self) -> pl.DataFrame:
        """What each client of `load` saw, one row an interval and client."""
        return self.rows(load.CLIENTS)

    @cached_property
    def answers(self) -> pl.DataFrame:
        """When `load` sent queries and when answers came, of all clients, one row a bin of 10 ms in which anything
        did."""
        return self.rows(load.ANSWERS)

    @cached_property
    def log_events(self) -> pl.DataFrame:
        """What the log of the server under test tells of what it does beside answering. Columns: kind, realtime_ns."""
        return self.rows(RowFile(f"events-{self.subject}.arrow", {"kind": pl.String, "realtime_ns": pl.Int64}))

    @cached_property
    def timed_stacks(self) -> pl.DataFrame:
        """The CPU stacks sampled on the subject, one row a sample. Columns: time_ns, stack (as in `stacks`)."""
        rows = self.rows(RowFile(f"profile-{self.subject}.arrow", {"time_ns": pl.Int64, "stack": pl.UInt32}))
        lines = pl.DataFrame({"stack": pl.Series(range(len(self.stacks)), dtype=pl.UInt32), "text": list(self.stacks)})
        return rows.join(lines, on="stack", maintain_order="left").select(
            "time_ns", stack=pl.col("text").cast(pl.String)
        )

    @property
    def transfer(self) -> dict[str, Any]:
        """What `transfer` summed up at its end; empty where it did not run or did not end."""
        return self.record.instruments.get("transfer", {})

    @cached_property
    def transfers(self) -> pl.DataFrame:
        """What `transfer` saw, one row an attempt to transfer a zone."""
        return self.rows(transfer.TRANSFERS)

    @cached_property
    def connections(self) -> pl.DataFrame:
        """The connections of `transfer`, one row each."""
        return self.rows(transfer.CONNECTIONS)

    @cached_property
    def tcp_info(self) -> pl.DataFrame:
        """What the kernel reported of the connections of `transfer`, one row a connection and interval."""
        return self.rows(transfer.TCP_INFO)

    @cached_property
    def sockets(self) -> pl.DataFrame:
        """What the kernel reported of TCP connections of hosts, one row a socket and interval, of procedures that want
        it."""
        return self.rows(watch.SOCKETS)

    def links(self) -> dict[str, pl.DataFrame]:
        """What went over each link that `link` emulated, by its ends (`LinkSpec.name`); a row a direction and
        interval."""
        return self._links

    @cached_property
    def _links(self) -> dict[str, pl.DataFrame]:
        return {each.name: self.rows(link.of(each)) for each in self.record.spec.links if each.writes_rows}

    @property
    def subject(self) -> str:
        """The host whose server is under test."""
        return self.record.spec.subject

    @property
    def server(self) -> ServerRecord | None:
        """The server under test; None where it never started."""
        return self.record.servers.get(self.subject)

    @property
    def log(self) -> LogDrilldown | None:
        """What the log of the server under test tells of its transfers."""
        return self.record.logs.get(self.subject)

    def hosts_as(self, *roles: str) -> list[str]:
        """The hosts whose servers have one of ``roles``."""
        return [name for name, host in self.record.spec.hosts.items() if host.role in roles]

    @property
    def started_in_measure(self) -> bool:
        """Whether the server under test was executed during `measure`: its start is part of the result then."""
        return bool(self.server and self.measure and self.server.exec_ns >= self.measure.start.monotonic_ns)

    @property
    def exec_ns(self) -> int | None:
        """Exec of the server under test; of several under test, as a secondary with a replica beside it, of the
        first."""
        spec, servers = self.record.spec, self.record.servers
        under_test = [
            record.exec_ns for name, record in servers.items() if name in spec.hosts and spec.hosts[name].under_test
        ]
        return min(under_test, default=self.server.exec_ns if self.server else None)

    @property
    def is_cold_start(self) -> bool:
        """Whether a secondary that had nothing started and fetched its zones."""
        restarted = self.record.spec.main_metric == "startup_time_s"
        return self.started_in_measure and bool(self.record.spec.primaries) and not restarted

    @property
    def zero_ns(self) -> int | None:
        """Where the time of the result begins: exec of the server under test, or `measure` where it ran before."""
        if self.server is not None and (self.started_in_measure or self.measure is None):
            return self.exec_ns
        return self.measure.start.monotonic_ns if self.measure else None

    @property
    def result(self) -> float | None:
        """The trial's value of its procedure's main metric, in that metric's unit."""
        return self.value(self.record.spec.main_metric)

    @property
    def time_s(self) -> float | None:
        """`result` where it is a time in seconds; None where the procedure asks for something else."""
        name = self.record.spec.main_metric
        return self.result if name.endswith("_s") and not name.endswith("_per_s") else None

    @property
    def stacks(self) -> dict[str, int]:
        """The CPU stacks sampled on the subject during `measure`: ``outermost;…;innermost`` -> samples. Empty
        without."""
        stacks, damage = self._profile
        self._refuse(damage)
        return stacks

    def stacks_of(self, host: str) -> dict[str, int]:
        """The CPU stacks of any host whose profile was taken."""
        stacks, damage = self._folded(f"profile-{host}.folded")
        self._refuse(damage)
        return stacks

    @property
    def _profile_name(self) -> str:
        return f"profile-{self.subject}.folded"

    @cached_property
    def _profile(self) -> tuple[dict[str, int], str]:
        return self._folded(self._profile_name)

    def _folded(self, name: str) -> tuple[dict[str, int], str]:
        """The stacks in a file, and what is wrong with it."""
        found = rows.content(self.directory / name, self.record.files.get(name), self.run_dir)
        split = (line.rpartition(" ") for line in found.data.decode(errors="replace").splitlines())
        stacks = {stack: int(count) for stack, _, count in split if stack and count.isascii() and count.isdecimal()}
        cut = found.data and not found.data.endswith(b"\n")
        return stacks, found.damage or (f"{name} is cut within its last line" if cut else "")

    @property
    def measure(self) -> Phase | None:
        return self.record.phase("measure")

    @property
    def anchors(self) -> list[Anchor]:
        """Every reading of both clocks, in the order in which they were taken."""
        taken = [*self.record.anchors, *(end for phase in self.record.phases for end in (phase.start, phase.end))]
        return sorted(taken, key=lambda anchor: anchor.monotonic_ns)

    def since_exec_s(self, realtime_ns: int | None) -> float | None:
        """Seconds from exec of the server under test to a time in its log, whose clock is the machine's realtime.

        By the anchor nearest to it; known no better than to the log's resolution.
        """
        if realtime_ns is None or self.server is None or not self.anchors:
            return None
        return (self.monotonic_ns(realtime_ns) - self.server.exec_ns) / 1e9

    def monotonic_ns(self, realtime_ns: int) -> int:
        """A reading of the wall clock as monotonic ns, by the anchor nearest to it; there must be one."""
        nearest = min(self.anchors, key=lambda anchor: abs(anchor.realtime_ns - realtime_ns))
        return realtime_ns - nearest.realtime_ns + nearest.monotonic_ns

    def series(self, host: str, source: str, name: str) -> pl.DataFrame:
        """One series of ``samples``: columns time_ns, value, sorted by time."""
        return (
            self.samples.filter((pl.col("host") == host) & (pl.col("source") == source) & (pl.col("metric") == name))
            .select("time_ns", "value")
            .sort("time_ns")
        )

    def during_measure(self, host: str, source: str, name: str) -> pl.DataFrame:
        """A series from the last sample before `measure` to the first after it: at most two intervals more."""
        rows = self.series(host, source, name)
        phase = self.measure
        if phase is None or rows.is_empty():
            return rows.clear()
        before = rows.filter(pl.col("time_ns") <= phase.start.monotonic_ns).tail(1)
        inside = rows.filter(
            (pl.col("time_ns") > phase.start.monotonic_ns) & (pl.col("time_ns") <= phase.end.monotonic_ns)
        )
        after = rows.filter(pl.col("time_ns") > phase.end.monotonic_ns).head(1)
        return pl.concat([before, inside, after])

    def growth(self, host: str, source: str, name: str) -> float | None:
        """How much a counter grew during `measure`; None without samples around it."""
        rows = self.during_measure(host, source, name)
        return None if rows.height < 2 else float(rows["value"][-1] - rows["value"][0])

    def udp_growth(self, host: str, name: str) -> float | None:
        """Growth of a counter of UDP, over both families; earlier versions sampled none of IPv6, and had no
        traffic."""
        found = self.growth(host, "udp", name)
        return None if found is None else found + (self.growth(host, "udp6", name) or 0.0)

    def links_growth(self, others: Iterable[str], *names: str) -> float | None:
        """Growth of these counters of the subject's interfaces towards other hosts, together; None without others. An
        interface that leads to several counts once."""
        interfaces = dict.fromkeys(self.record.spec.interface(self.subject, other) for other in others)
        return total(self.growth(self.subject, interface, name) for interface in interfaces for name in names)

    def peak(self, host: str, source: str, name: str) -> float | None:
        """The largest value of a gauge during `measure`; None without samples."""
        value = self.during_measure(host, source, name)["value"].max()
        return float(value) if isinstance(value, int | float) else None


def total(parts: Iterable[float | None]) -> float | None:
    """The sum; None if a part is missing, or without parts."""
    known: list[float] = []
    for part in parts:
        if part is None:
            return None
        known.append(part)
    return sum(known) if known else None
