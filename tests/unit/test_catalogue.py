"""What metrics, traps and checks declare about themselves: their order, units and weights are what they were."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from golden_files import same

from dnsrig import traps
from dnsrig.checks import all_checks
from dnsrig.metrics import all_metrics
from dnsrig.traps import all_traps

GOLDEN = Path(__file__).parent / "golden/catalogue"


def table(rows: Iterable[Iterable[object]]) -> str:
    return "".join(" | ".join(map(str, row)) + "\n" for row in rows)


def test_metrics_are_listed_in_their_order() -> None:
    """The last column names the functions that say when a value is a bound, or counts at the limit."""
    rows = [
        (
            metric.order,
            metric.name,
            metric.unit,
            metric.better,
            metric.title,
            " ".join(name for name in ("ceiling", "at_limit", "lower") if getattr(metric, name)),
        )
        for metric in all_metrics().values()
    ]
    assert same(GOLDEN / "metrics.txt", table(rows))


def test_traps_are_listed_in_their_order() -> None:
    rows = [
        (
            trap.order,
            trap.id,
            trap.weight,
            trap.group,
            trap.title,
            trap.chart,
            "of imported" if trap.of_imported else "",
            " ".join(getattr(trap.module, "OUTCOMES", ())),
            " ".join(name for name in ("before", "after", "across") if hasattr(trap.module, name)),
        )
        for trap in all_traps().values()
    ]
    assert same(GOLDEN / "traps.txt", table(rows))


def test_checks_are_listed_with_their_units() -> None:
    assert same(
        GOLDEN / "checks.txt", table(sorted((each.name, each.unit, each.title) for each in all_checks().values()))
    )


def test_a_trap_that_declares_little_has_defaults() -> None:
    module = ModuleType("little", "Two\n  lines.")
    module.__dict__.update(TITLE="a title", SOURCE="a source")
    trap = traps._trap("little", module)
    assert (trap.title, trap.source, trap.description) == ("a title", "a source", "Two lines.")
    assert (trap.group, trap.order, trap.weight, trap.chart, trap.of_imported) == ("other", 50, "distorts", "", False)
    module.__doc__ = None
    assert traps._trap("little", module).description == ""
