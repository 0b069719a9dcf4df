"""Results of other tools on the page: what each counts from, how exact it is, and what it does not tell."""

from __future__ import annotations

from dnsrig.report.figures import count
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial

BASES = {"due": "due", "sending": "sent"}
NOT_TOLD = "not told"


def rows(run: Run) -> list[dict[str, str]]:
    """One a variant; empty of a run that was measured here."""
    return [
        _row(variant.label, run.of_variant(variant.id)) for variant in run.manifest.variants if _of(run, variant.id)
    ]


def _of(run: Run, variant: str) -> bool:
    return run.manifest.specs[variant].imported is not None and bool(run.of_variant(variant))


def _row(label: str, trials: list[Trial]) -> dict[str, str]:
    spec = trials[0].record.spec.imported
    assert spec is not None  # `_of` says so
    records = [record for trial in trials if (record := trial.record.imported) is not None]
    return {
        "result": label,
        "tool": f"{spec.tool} {spec.version}".strip(),
        "latencies count from": f"when a query was {BASES[spec.basis]}",
        "resolution": NOT_TOLD if spec.resolution_ns is None else _time(spec.resolution_ns),
        "files": f"{count(len(records), 'file')}: " + ", ".join(record.file for record in records),
        "command": next((record.command for record in records if record.command), NOT_TOLD),
        "what is missing": " ".join(dict.fromkeys(text for record in records for text in record.missing)),
    }


def _time(value_ns: int) -> str:
    for unit, size in (("ms", 1_000_000), ("µs", 1_000)):
        if value_ns >= size:
            return f"{value_ns / size:g} {unit}"
    return f"{value_ns} ns"
