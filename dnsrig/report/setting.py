"""In what setting a run was measured, in one line that stands beside its figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dnsrig.analysis.read import Run


def setting(run: Run) -> str:
    """``scale standard; bind 9.20.1 (forky); 2 CPUs of …; Linux 6.1.0; dnsrig 0.1.0; 2026-01-01``."""
    manifest = run.manifest
    parts = [
        f"scale {manifest.scale}",
        ", ".join(server.label for server in manifest.servers.values()),
        _machines(run),
        f"dnsrig {manifest.dnsrig_version}",
        manifest.created[:10],
    ]
    return "; ".join(part for part in parts if part)


def _machines(run: Run) -> str:
    """Of several machines what is the same on all."""
    conditions = run.manifest.measured_under
    cpu, kernel = _table(conditions, "cpu"), _table(conditions, "kernel")
    several = f"{len(run.manifest.machines)} machines, each with" if run.manifest.machines else ""
    cpus = f"{cpu['count']} CPUs ({cpu.get('model', 'unknown')})" if "count" in cpu else ""
    linux = f"Linux {kernel['release']}" if "release" in kernel else ""
    return " ".join(part for part in (several, "; ".join(part for part in (cpus, linux) if part)) if part)


def _table(conditions: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = conditions.get(name)
    return found if isinstance(found, Mapping) else {}
