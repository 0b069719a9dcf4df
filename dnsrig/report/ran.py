"""What ran in a run: servers with their versions, hosts with their settings, and the failures that were logged."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from dnsrig.analysis.read import Run
from dnsrig.report import conditions
from dnsrig.rundir import ServerRecord, Variant


@dataclass(frozen=True)
class LoggedFailure:
    """A kind of failure that a server logged, over the trials of a variant."""

    host: str
    variant: Variant
    kind: str
    lines: Counter[int]
    """Repeat -> lines."""
    example: str

    @property
    def range(self) -> str:
        low, high = min(self.lines.values()), max(self.lines.values())
        return f"{low:,}" if low == high else f"{low:,}..{high:,}"


def logged(run: Run) -> list[LoggedFailure]:
    """What servers logged as failures, one entry a host, variant and kind."""
    found: dict[tuple[str, str, str], LoggedFailure] = {}
    for trial in run.trials:
        variant = trial.record.spec.variant
        for host, drilldown in trial.record.logs.items():
            for kind, lines in drilldown.failures.items():
                example = drilldown.examples.get(kind, "")
                entry = LoggedFailure(host, variant, kind, Counter(), example)
                found.setdefault((host, variant.id, kind), entry).lines[trial.record.spec.repeat] += lines
    return list(found.values())


def servers(run: Run) -> list[dict[str, str]]:
    """One entry a role and server that ran: what it was, and how it ran."""
    found: dict[tuple[str, str], list[ServerRecord]] = {}
    for trial in run.trials:
        for record in trial.record.servers.values():
            found.setdefault((record.role, record.server.name), []).append(record)
    return [
        {
            "role": role,
            "server": name,
            "version": "; ".join(dict.fromkeys(r.server.version for r in records)),
            "packages": conditions.text(records[0].server.packages),
            "threads": conditions.value_range("threads", [r.threads for r in records])[1],
            "command": " ".join(records[0].command),
            "log clock": f"{records[0].log_clock_resolution_ns / 1e9:g} s",
        }
        for (role, name), records in found.items()
    ]


def settings(run: Run) -> list[dict[str, str]]:
    """One entry a host of a variant: its CPUs, settings and sysctls as asked for, those alike said once."""
    rows: dict[tuple[str, str, str, str], list[str]] = {}
    for variant in run.manifest.variants:
        for name, host in run.manifest.specs[variant.id].hosts.items():
            texts = (conditions.text(host.cpus), conditions.text(host.settings), conditions.text(host.sysctls))
            rows.setdefault((name, *texts), []).append(variant.label)
    total = len(run.manifest.variants)
    return [
        {
            "host": host,
            "CPUs": cpus,
            "settings": chosen,
            "sysctls": sysctls,
            "variants": "all" if len(labels) == total else "; ".join(labels),
        }
        for (host, cpus, chosen, sysctls), labels in rows.items()
    ]
