"""What ran in a run: servers with their versions, hosts with their settings, and the failures that were logged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from dnsrig.report import conditions
from dnsrig.rundir import ServerRecord, Variant
from dnsrig.runs.run import Run
from dnsrig.text import digits

OTHER = "RSA"
"""The algorithm of signed zones that have neither P-256 nor Ed25519."""


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
            # Of a resolver also what is by default equal for all.
            chosen = {**(host.resolving.model_dump() if host.resolving else {}), **host.settings}
            files = [f"{file.name} ({file.sha256[:12]})" for file in (host.config, host.include) if file]
            chosen |= {"own files": ", ".join(files)} if files else {}
            texts = (conditions.text(host.cpus), conditions.text(chosen), conditions.text(host.sysctls))
            where = f"{name} on {host.machine}" if host.machine else name
            rows.setdefault((where, *texts), []).append(variant.label)
    total = len(run.manifest.variants)
    return [
        {
            "host": host,
            "CPUs": cpus,
            "settings": said,
            "sysctls": sysctls,
            "variants": "all" if len(labels) == total else "; ".join(labels),
        }
        for (host, cpus, said, sysctls), labels in rows.items()
    ]


def signatures(run: Run) -> list[dict[str, str]]:
    """What is signed in the simulated Internets of a run, and by which algorithms: what validation costs follows from
    both. One entry for all variants alike."""
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for trial in run.trials:
        told = trial.record.instruments.get("signatures")
        if not told:
            continue
        raised = told.get("signed_share")
        zones = told["zones"] if raised is None else {**told["zones"], "signed": raised}
        texts = (_mix(told["tlds"]), _mix(zones), "no" if raised is None else "yes")
        variant = trial.record.spec.variant
        rows.setdefault(texts, {})[variant.id] = variant.label
    total = len(run.manifest.variants)
    return [
        {
            "TLDs": tlds,
            "second-level zones": zones,
            "the same share below all TLDs": same,
            "variants": "all" if len(labels) == total else "; ".join(labels.values()),
        }
        for (tlds, zones, same), labels in rows.items()
    ]


def _mix(shares: Mapping[str, float]) -> str:
    """
    >>> _mix({"signed": 0.05, "p256": 0.6, "ed25519": 0.02})
    '5 % signed: RSA 38 %, P-256 60 %, Ed25519 2 %'
    """
    others = max(0.0, 1 - shares["p256"] - shares["ed25519"])
    algorithms = {OTHER: others, "P-256": shares["p256"], "Ed25519": shares["ed25519"]}
    return f"{digits(100 * shares['signed'])} % signed: " + ", ".join(
        f"{name} {digits(100 * share)} %" for name, share in algorithms.items() if round(share, 6)
    )
