"""Makes a run directory of what other tools measured, which `report`, `compare` and `export` read as any other.

A file is a repeat; all files of one ``--as NAME`` are a variant. Nothing is known of the machine, the network and the
server, and nothing is made up for them.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl
from hdrh.histogram import HdrHistogram

import dnsrig
from dnsrig import checksums, foreign
from dnsrig.comparison.compare import RESULT
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.importers import LONGEST_NS, TAGS, Asked, Counted, Result, S, importer
from dnsrig.rundir import (
    DNSRIG_LOAD,
    Anchor,
    DatasetSpec,
    HostSpec,
    ImportedRecord,
    ImportedSpec,
    Manifest,
    Phase,
    Scalar,
    TrialKey,
    TrialRecord,
    TrialSpec,
    Variant,
    check_ours,
    read_json,
    trial_dir,
    write_json,
)
from dnsrig.runs.latency import Histogram, Latency
from dnsrig.runs.load_result import Figures
from dnsrig.runs.row_files import load
from dnsrig.runs.trial import Trial

EXPERIMENT = PROCEDURE = "imported"
AXIS = RESULT
"""The axis of the names that the user gave. The values of other axes come from the files or from `--axis`."""
LATENCIES = ("p99_ms", "sent_p99_ms")
MAIN = ("capacity_qps", "answered_qps")
"""The main metric of a run is the one of `LATENCIES` that most variants have; if fewer than half have it, the first of
`MAIN`."""
NOT_TOLD = "not told"
"""Value on an axis that other results of the run have, and this one lacks."""
LONGEST_S = foreign.LONGEST_S
MOST_QUERIES = 10**15
"""A million a second, for thirty years."""
MOST_RCODES = 5_000
"""More than a message has numbers for (RFC 6895, 2.3)."""
LONGEST_NAME = 100
"""Characters of an rcode, and of a value on an axis."""
PERCENTS = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p99_9": 99.9, "p99_99": 99.99}
UNREADABLE = (ValueError, KeyError, TypeError, IndexError, OverflowError, AttributeError, RecursionError)
"""What an importer raises of a file that is not as it should be."""
UNKNOWN = DatasetSpec(kind="unknown", key="", zones=0, records=0, serial=0)


@dataclass(frozen=True)
class Source:
    """A file that was read, and what is in it."""

    record: ImportedRecord
    result: Result


def read(tool: str, paths: Sequence[Path], asked: Asked) -> list[Source]:
    """Each of ``paths``, as ``tool`` writes it."""
    found = importer(tool)
    sources = []
    for path in paths:
        try:
            data = foreign.content(path)
            result: Result = found.read(data, asked)
            check(result)
        except OSError as error:
            raise DnsrigError(f"{path} cannot be read: {error.strerror}") from error
        except UNREADABLE as error:
            why = str(error) if type(error) in (ValueError, foreign.Refused) else f"{type(error).__name__}: {error}"
            raise UsageError(f"{path} is not what {tool} writes: {why[:200]}", hint=f"{tool}: {found.FILES}") from error
        told = ImportedRecord(
            file=os.fsencode(path.name).decode(errors="replace")[:200],
            sha256=sha256(data).hexdigest(),
            command=result.command[:2000],
            missing=[*result.missing, *_outside(result)],
        )
        sources.append(Source(told, result))
    return sources


def check(result: Result) -> None:
    """Refuse impossible times, counts and names: a damaged file can have any."""
    times = [result.duration_s, *(time for part in result.stretches for time in (part.start_s, part.duration_s))]
    if not all(0 <= time <= LONGEST_S for time in times):
        raise ValueError(f"a time that is below zero or above {LONGEST_S:,} s")
    if not 0 <= result.started_ns < foreign.LARGEST or not 0 <= (result.timeout_ns or 0) <= LONGEST_NS:
        raise ValueError("a moment or a timeout that is impossible")
    if not all(_is_possible(counts) for counts in _counts(result)):
        raise ValueError(f"counts below zero, or together above {MOST_QUERIES:,}")
    told = [
        result.asked_qps,
        result.capacity_qps,
        *(v for f in (result.told, *result.figures.values()) for v in f.values()),
    ]
    if not all(value is None or 0 <= value < foreign.LARGEST for value in told):
        raise ValueError("a rate or a latency that is impossible")
    names = [*result.rcodes, *(str(value) for value in result.axes.values())]
    if len(names) > MOST_RCODES or any(len(name) > LONGEST_NAME for name in names):
        raise ValueError("more response codes than there are, or one that is no name")


def _counts(result: Result) -> Iterator[Collection[int]]:
    yield [result.sent]
    yield [result.answered]
    yield [result.timeouts]
    yield result.rcodes.values()
    for name in ("sent", "answered", "timeouts"):
        yield [getattr(part, name) for part in result.stretches]
    for tag in {tag for part in result.stretches for tag in part.tags}:
        yield [sum(part.tags.get(tag, {}).values()) for part in result.stretches]


def _is_possible(counts: Collection[int]) -> bool:
    return all(0 <= count <= MOST_QUERIES for count in counts) and sum(counts) <= MOST_QUERIES


def _outside(result: Result) -> list[str]:
    """How many queries a distribution lacks, or has more than were sent; an importer that adds queries without an
    answer leaves none."""
    tag = TAGS[result.basis][0]
    counted = sum(sum(part.tags[tag].values()) for part in result.stretches if tag in part.tags)
    if not counted or not result.sent or counted == result.sent:
        return []
    return [f"Its distribution has {counted:,} latencies, where {result.sent:,} queries were sent."]


def write(
    tool: str, name: str, sources: Sequence[Source], directory: Path, axes: Mapping[str, Scalar] | None = None
) -> Manifest:
    """Make the run at ``directory``, or add a variant to the one that is there. ``axes``: values that
    the user gave; they override the values in the files."""
    known = read_json(directory / "manifest.json", Manifest) if directory.exists() else None
    if known is not None:
        check_ours(directory)
    if known is not None and known.procedure != PROCEDURE:
        raise UsageError(f"{directory} is a run that dnsrig measured", hint="name another directory with --to")
    parameters = {AXIS: name, **_axes(sources), **(axes or {})}
    variants = list(known.variants) if known else []
    if any(_filled(other.parameters, parameters) == _filled(parameters, other.parameters) for other in variants):
        raise UsageError(f"{directory} has a result called {name!r}", hint="choose another name with --as")
    directory.mkdir(parents=True, exist_ok=True)
    variant = Variant(id=_identifier(name, len(variants) + 1), parameters=parameters)
    try:
        for repeat, source in enumerate(sources, 1):
            _write_trial(directory, _spec(tool, variant, directory, source.result), repeat, source)
        manifest = _manifest(known, directory, variant, sources, tool)
        write_json(directory / "manifest.json", manifest)
    except BaseException:
        shutil.rmtree(directory / "trials" / variant.id, ignore_errors=True)
        if known is None:
            shutil.rmtree(directory, ignore_errors=True)
        raise
    return manifest


def _axes(sources: Sequence[Source]) -> dict[str, Scalar]:
    """What the files say; repeats were asked for the same."""
    said = [dict(source.result.axes) for source in sources]
    if any(other != said[0] for other in said[1:]):
        raise UsageError("the files have different settings", hint="import only files that are repeats of each other")
    return said[0] if said else {}


def _filled(parameters: Mapping[str, Scalar], other: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """``parameters`` with a value for each axis that ``other`` has."""
    return {**dict.fromkeys(other, NOT_TOLD), **parameters}


def _identifier(name: str, number: int) -> str:
    """A part of a path."""
    return f"v{number:02d}-{re.sub(r'[^A-Za-z0-9._-]+', '-', name).strip('.-')[:60] or 'result'}"


def _spec(tool: str, variant: Variant, directory: Path, result: Result) -> TrialSpec:
    imported = ImportedSpec(
        tool=result.tool or tool, version=result.version[:100], basis=result.basis, resolution_ns=result.resolution_ns
    )
    return TrialSpec(
        run=_run(directory),
        experiment=EXPERIMENT,
        procedure=PROCEDURE,
        variant=variant,
        repeat=0,
        link="unknown",
        kernel="unknown",
        hosts={"server": HostSpec(address="unknown", cpus=[], under_test=True)},
        links=[],
        dataset=UNKNOWN,
        limit_s=0.0,
        main_metric=MAIN[-1],
        imported=imported,
    )


def _run(directory: Path) -> str:
    return f"{EXPERIMENT}/{directory.resolve().name}"


def _manifest(
    known: Manifest | None, directory: Path, variant: Variant, sources: Sequence[Source], tool: str
) -> Manifest:
    repeats = len(sources)
    spec = _spec(tool, variant, directory, sources[0].result)
    specs = (known.specs if known else {}) | {variant.id: spec}
    metric = _main_metric(directory, specs)
    axes = list(dict.fromkeys([*(known.axes if known else ()), *variant.parameters]))
    variants = [_with_axes(each, axes) for each in (*(known.variants if known else ()), variant)]
    specs = {v.id: specs[v.id].model_copy(update={"main_metric": metric, "variant": v}) for v in variants}
    order = [*(known.order if known else ()), *(TrialKey(variant=variant.id, repeat=n + 1) for n in range(repeats))]
    for key in order:
        _rewrite(directory, key, specs[key.variant])
    title, question = _title(specs.values())
    return Manifest(
        run=_run(directory),
        dnsrig_version=dnsrig.__version__,
        created=known.created if known else f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        experiment=EXPERIMENT,
        title=title,
        question=question,
        sources=[],
        scale=EXPERIMENT,
        document={},
        procedure=PROCEDURE,
        axes={axis: list(dict.fromkeys(v.parameters[axis] for v in variants)) for axis in axes},
        variants=variants,
        order=order,
        order_seed=0,
        repeats=max(repeats, known.repeats if known else 0),
        servers={},
        specs=specs,
        conditions={},
    )


def _with_axes(variant: Variant, axes: Sequence[str]) -> Variant:
    return variant.model_copy(update={"parameters": {axis: variant.parameters.get(axis, NOT_TOLD) for axis in axes}})


def _title(specs: Iterable[TrialSpec]) -> tuple[str, str]:
    """Title and question. They distinguish our own results from the results of other tools."""
    tools = {spec.imported.tool for spec in specs if spec.imported is not None}
    if tools == {DNSRIG_LOAD}:
        return f"Results of {DNSRIG_LOAD}", f"What did {DNSRIG_LOAD} measure by hand?"
    if DNSRIG_LOAD in tools:
        return f"Results of {DNSRIG_LOAD} and other tools", f"What did {DNSRIG_LOAD} and other tools measure?"
    return "Results of other tools", "What did other tools measure?"


def _main_metric(directory: Path, specs: Iterable[str]) -> str:
    """By the first repeat of each variant."""
    folders = [trial_dir(directory, variant, 1) for variant in specs]
    records = [read_json(folder / "trial.json", TrialRecord, inside=directory) for folder in folders]
    trials = [Trial(folder, record, run_dir=directory) for folder, record in zip(folders, records)]
    known = {name: sum(trial.value(name) is not None for trial in trials) for name in (*LATENCIES, *MAIN)}
    of_most = max(LATENCIES, key=lambda name: known[name])
    return next((name for name in (of_most, *MAIN) if 2 * known[name] >= len(trials)), MAIN[-1])


def _rewrite(directory: Path, key: TrialKey, spec: TrialSpec) -> None:
    """Another result may have brought another main metric, or another axis."""
    path = trial_dir(directory, key.variant, key.repeat) / "trial.json"
    record = read_json(path, TrialRecord)
    wanted = {"main_metric": spec.main_metric, "variant": spec.variant}
    if any(getattr(record.spec, name) != value for name, value in wanted.items()):
        record.spec = record.spec.model_copy(update=wanted)
        write_json(path, record)


def _write_trial(directory: Path, spec: TrialSpec, repeat: int, source: Source) -> None:
    folder = trial_dir(directory, spec.variant.id, repeat)
    folder.mkdir(parents=True)
    result = source.result
    _write_latencies(folder / "latency.hlog", result)
    _intervals(result).write_ipc_stream(folder / load.INTERVALS.name)
    end_ns = round(result.duration_s * S)
    phase = Phase(name="measure", start=_anchor(result, 0), end=_anchor(result, end_ns))
    record = TrialRecord(
        spec=spec.model_copy(update={"repeat": repeat}),
        outcome="done",
        phases=[phase],
        servers={},
        instruments={"load": _summary(folder / "latency.hlog", result, end_ns)},
        imported=source.record,
        files=checksums.of_trial(folder),
    )
    write_json(folder / "trial.json", record)


def _anchor(result: Result, at_ns: int) -> Anchor:
    """Times begin where the result does."""
    return Anchor(monotonic_ns=at_ns, realtime_ns=result.started_ns + at_ns, error_ns=0)


def _write_latencies(path: Path, result: Result) -> None:
    """Nothing where there is no distribution."""
    found = [
        f"Tag={tag},{part.start_s:.9f},{part.duration_s:.9f},{_encoded(counted)}"
        for part in result.stretches
        for tag, counted in part.tags.items()
        if counted
    ]
    if found:
        path.write_text("\n".join(["#dnsrig import", *found]) + "\n", encoding="utf-8")


def _encoded(counted: Counted) -> str:
    """The largest value in ns, and the payload."""
    largest = min(LONGEST_NS, max(counted))
    histogram = HdrHistogram(1, max(2, largest), 3)
    for value, count in counted.items():
        histogram.record_value(min(value, largest), count)
    return f"{float(largest):.3f},{histogram.encode().decode('ascii')}"


def _intervals(result: Result) -> pl.DataFrame:
    schema, parts = load.INTERVALS.schema, result.stretches
    known = {
        "start_ns": [round(part.start_s * S) for part in parts],
        "duration_ns": [round(part.duration_s * S) for part in parts],
        "due": [part.sent for part in parts],
        "sent": [part.sent for part in parts],
        "answered": [part.answered for part in parts],
        "timeouts": [part.timeouts for part in parts],
    }
    return pl.DataFrame({name: known.get(name, [0] * len(parts)) for name in schema}, schema=schema)


def _summary(path: Path, result: Result, end_ns: int) -> dict[str, Any]:
    """As `dnsrig.runs.load_result` reads it."""
    known = {
        "model": result.model,
        "end_ns": end_ns,
        "sending_ns": end_ns,
        "asked_qps": result.asked_qps,
        "due": result.sent,
        "sent": result.sent,
        "answered": result.answered,
        "timeouts": result.timeouts,
        "rcodes": dict(result.rcodes),
        "timeout_ns": result.timeout_ns,
        "capacity_qps": result.capacity_qps,
    }
    return known | dict(_latencies(path, result))


def _latencies(path: Path, result: Result) -> Iterator[tuple[str, Figures]]:
    """Figures of each series in the file. The tool's own figures for the whole count at both ends."""
    yield from result.figures.items()
    log = Latency(path, result.timeout_ns) if path.exists() else None
    for tag, name in SERIES.items():
        figures = _figures(log.total(tag)) if log and tag in log.tags else {}
        if tag in TAGS[result.basis] and (figures or tag == TAGS[result.basis][0]):
            figures = figures | {key: value for key, value in result.told.items() if value is not None}
        if figures:
            yield name, figures


SERIES = {
    "due": "latency_ns",
    "lower": "lower_latency_ns",
    "sent": "sent_latency_ns",
    "sent-lower": "lower_sent_latency_ns",
    "lag": "lag_ns",
}


def _figures(histogram: Histogram) -> Figures:
    values = histogram.percentiles(PERCENTS.values())
    found: Figures = {"mean": histogram.mean_ns, "min": histogram.min_ns, "max": histogram.max_ns}
    return found | dict(zip(PERCENTS, map(float, values)))
