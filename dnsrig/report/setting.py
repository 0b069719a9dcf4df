"""The setting in which a run was measured, in one line for tables and captions."""

from __future__ import annotations

from dnsrig.rundir import QueriesSpec
from dnsrig.runs.run import Run

TYPES_SHOWN = 3
"""Number of types whose shares are shown."""


def setting(run: Run) -> str:
    """``scale standard; bind 9.20.1 (forky); 2 CPUs (…); Linux 6.1.0; dnsrig 0.1.0; 2026-01-01``."""
    manifest = run.manifest
    parts = [
        f"scale {manifest.scale}",
        ", ".join(server.label for server in manifest.servers.values()),
        queries(run),
        _machines(run),
        f"dnsrig {manifest.dnsrig_version}",
        manifest.created[:10],
    ]
    return "; ".join(part for part in parts if part)


def queries(run: Run) -> str:
    """The files of queries: name, hash, number of queries, shares of the most frequent types."""
    found = {q.sha256: q for spec in run.manifest.specs.values() if (q := spec.queries) is not None and q.name}
    return ", ".join(_file_of_queries(queries) for queries in found.values())


def _file_of_queries(queries: QueriesSpec) -> str:
    ranked = sorted(queries.types.items(), key=lambda item: -item[1])
    shares = [f"{count / queries.queries:.0%} {name}" for name, count in ranked[:TYPES_SHOWN]]
    skipped = f", {queries.skipped:,} bad lines left out" if queries.skipped else ""
    more = ["others"] if len(ranked) > TYPES_SHOWN else []
    return f"queries of {queries.name} (sha256 {queries.sha256[:12]}, {queries.queries:,}: {', '.join([*shares, *more])}{skipped})"


def _machines(run: Run) -> str:
    """The machine; with several machines, what is the same on all."""
    told = run.manifest.measured_under
    several = f"{len(run.manifest.machines)} machines, each with" if run.manifest.machines else ""
    cpus = f"{told['cpus']} CPUs ({told.get('cpu_model') or 'model not known'})" if "cpus" in told else ""
    linux = f"Linux {told['kernel']}" if isinstance(told.get("kernel"), str) else ""
    return " ".join(part for part in (several, "; ".join(part for part in (cpus, linux) if part)) if part)
