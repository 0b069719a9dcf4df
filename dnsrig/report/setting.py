"""The setting in which a run was measured, in one line for tables and captions."""

from __future__ import annotations

from dnsrig.runs.run import Run


def setting(run: Run) -> str:
    """``scale standard; bind 9.20.1 (forky); 2 CPUs (…); Linux 6.1.0; dnsrig 0.1.0; 2026-01-01``."""
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
    """The machine; with several machines, what is the same on all."""
    told = run.manifest.measured_under
    several = f"{len(run.manifest.machines)} machines, each with" if run.manifest.machines else ""
    cpus = f"{told['cpus']} CPUs ({told.get('cpu_model') or 'model not known'})" if "cpus" in told else ""
    linux = f"Linux {told['kernel']}" if isinstance(told.get("kernel"), str) else ""
    return " ".join(part for part in (several, "; ".join(part for part in (cpus, linux) if part)) if part)
