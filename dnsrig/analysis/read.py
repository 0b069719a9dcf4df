"""Reads a run directory: lazily, and without trusting that it is complete."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from dnsrig.errors import DnsrigError
from dnsrig.rundir import Manifest, Phase, TrialRecord, read_json, trial_dir


@dataclass
class Trial:
    """A finished trial: its record and, when asked for, its rows."""

    directory: Path
    record: TrialRecord

    @cached_property
    def samples(self) -> pl.DataFrame:
        """What `watch` saw. Columns: host, source, metric (str), time_ns, value (i64)."""
        return _read_rows(
            self.directory / "samples.arrow",
            {"host": pl.String, "source": pl.String, "metric": pl.String, "time_ns": pl.Int64, "value": pl.Int64},
        )

    @cached_property
    def zones(self) -> pl.DataFrame:
        """What `probe` saw, one row a zone.

        Columns: zone, last_unseen_ns, seen_ns (null: never), polls, serial, outcome.
        """
        return _read_rows(
            self.directory / "zones.arrow",
            {
                "zone": pl.String,
                "last_unseen_ns": pl.Int64,
                "seen_ns": pl.Int64,
                "polls": pl.UInt32,
                "serial": pl.UInt32,
                "outcome": pl.String,
            },
        )

    @property
    def measure(self) -> Phase | None:
        return self.record.phase("measure")

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

    def peak(self, host: str, source: str, name: str) -> float | None:
        """The largest value of a gauge during `measure`; None without samples."""
        value = self.during_measure(host, source, name)["value"].max()
        return float(value) if isinstance(value, int | float) else None


@dataclass
class Run:
    """A run directory, with those of its trials that are finished."""

    directory: Path
    manifest: Manifest

    @classmethod
    def open(cls, directory: Path) -> Run:
        if not directory.is_dir():
            raise DnsrigError(f"there is no run at {directory}", hint="`ls runs/*/` shows the runs made from here")
        return cls(directory, read_json(directory / "manifest.json", Manifest))

    @cached_property
    def trials(self) -> list[Trial]:
        """The finished trials, in the order in which they were measured."""
        found = []
        for key in self.manifest.order:
            path = trial_dir(self.directory, key.variant, key.repeat)
            if (path / "trial.json").exists():
                found.append(Trial(path, read_json(path / "trial.json", TrialRecord)))
        return found

    def of_variant(self, variant: str) -> list[Trial]:
        return sorted(
            (t for t in self.trials if t.record.spec.variant.id == variant), key=lambda t: t.record.spec.repeat
        )


def _read_rows(path: Path, schema: dict[str, type[pl.DataType]]) -> pl.DataFrame:
    """Rows of an Arrow IPC stream; empty where the file is missing."""
    if not path.exists() or path.stat().st_size == 0:
        return pl.DataFrame(schema=schema)
    frame = pl.read_ipc_stream(path)
    missing = set(schema) - set(frame.columns)
    if missing:
        raise DnsrigError(f"{path} lacks the column {sorted(missing)[0]}", hint="was it written by another version?")
    return frame.select([pl.col(name).cast(dtype) for name, dtype in schema.items()])
