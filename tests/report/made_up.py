"""Findings that no trap has made, for tests of how findings are shown."""

from __future__ import annotations

from dnsrig.analysis.read import Run
from dnsrig.rundir import Finding


def made_up_findings(run: Run) -> list[Finding]:
    """One of each verdict, and one trap that says the same of every repeat of a variant."""
    variant = run.manifest.variants[1].id
    ports = [
        Finding(
            trap="ports-exhausted",
            verdict="found",
            variant=variant,
            repeat=repeat,
            summary=f"the ports ran out after {30 + repeat} s",
            evidence={"first_failure_s": 30 + repeat, "ports": 28_232},
            series=["secondary/sockets/tcp_time_wait"],
            metrics=["transfer_time_s"],
            remedy="Reuse connections.",
            source="S1",
        )
        for repeat in range(1, run.manifest.repeats + 1)
    ]
    unsure = Finding(trap="cold-cache", verdict="cannot-tell", variant=variant, repeat=1, summary="no io.pressure")
    clear = [Finding(trap="clock-step", verdict="clear", variant=v.id, summary="") for v in run.manifest.variants]
    return [*clear, unsure, *ports]
