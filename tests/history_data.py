"""Histories out of thin air, for tests: synthetic runs of several versions of BIND, with a change where wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from synthetic import Plan, build

from dnsrig.rundir import Outcome
from dnsrig.runs.run import Run


def measured(
    directory: Path,
    factors: Mapping[str, float],
    *,
    repeats: int = 5,
    name: str = "a",
    outcomes: Mapping[tuple[str, int], Outcome] | None = None,
    zones: Sequence[int] = (50,),
    drift: float = 1.0,
) -> Run:
    """A run of the versions of ``factors``, each so many times as slow as they are made up to be. ``outcomes``: by
    version and repeat. ``drift``: the factor by which each round takes longer than the round before."""
    plan = Plan(
        servers=[f"bind@{version}" for version in factors],
        zones=zones,
        repeats=repeats,
        baseline={},
        samples=False,
        run=f"synthetic/{name}",
        seed=len(name) + ord(name[0]),
        slow={
            (f"bind@{version}", size, repeat): factor * drift**repeat
            for version, factor in factors.items()
            for size in zones
            for repeat in range(1, repeats + 1)
        },
        outcomes={
            (f"bind@{version}", size, repeat): outcome
            for (version, repeat), outcome in (outcomes or {}).items()
            for size in zones
        },
    )
    return Run.open(build(directory / "runs/synthetic" / name, plan))
