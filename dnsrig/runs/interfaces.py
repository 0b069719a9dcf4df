"""The physical interfaces that hosts of a run had: what their drivers said of them when the hosts were made."""

from __future__ import annotations

from typing import Any

from dnsrig.runs.run import Run

Facts = dict[str, Any]


def of_hosts(run: Run) -> dict[str, Facts]:
    """Host -> the facts of its interface, by the first trial that tells."""
    found: dict[str, Facts] = {}
    for trial in run.trials:
        for host, facts in trial.record.conditions.get("nics", {}).items():
            found.setdefault(host, facts)
    return found


def comparable(facts: Facts) -> Facts:
    """What the next boot leaves as it is: interrupts have other numbers then, and stay on their CPUs. A name is in the
    spec."""
    kept = {name: value for name, value in facts.items() if name != "name"}
    return {**kept, "irqs": sorted(facts["irqs"].values())} if "irqs" in facts else kept
