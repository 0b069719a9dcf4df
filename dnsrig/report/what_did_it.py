"""What a version of a server does otherwise than another one: what it costs, beside the other, and the defaults that
changed."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from dnsrig.comparison.pairs import CostRatio, Defaults, PairCosts, VersionPair, costs_of, defaults, pairs
from dnsrig.report import figures
from dnsrig.runs.run import Run
from dnsrig.stats.statistics import Spread

LONGEST_VALUE = 80
"""Characters of a default that are shown."""


@dataclass(frozen=True)
class PairReport:
    """What the page shows of one pair."""

    pair: VersionPair
    costs: PairCosts
    defaults: Defaults

    @property
    def rows(self) -> list[list[str]]:
        """For each cost its name, its value in both versions, and their ratio."""
        return [_cells(line) for line in self.costs.lines]

    @property
    def changed(self) -> list[list[str]]:
        """For each changed default its name, its old and new value, and whether the trials set it themselves."""
        return [
            [each.name, _default(each.base), _default(each.new), "set by the trials" if each.configured else ""]
            for each in self.defaults.changed
        ]


def sections(run: Run) -> list[PairReport]:
    """One entry a pair of versions of which something was recorded."""
    found = [PairReport(pair, costs_of(run, pair), defaults(run, pair)) for pair in pairs(run)]
    return [report for report in found if report.costs.lines or report.defaults.changed]


def _cells(line: CostRatio) -> list[str]:
    measured = [figures.spread(each, line.cost.unit) for each in (line.base, line.new)]
    return [line.cost.title, *measured, figures.spread(_percent(line.ratio), "%")]


def _default(value: str | None) -> str:
    """The beginning of ``value``, as long as fits in a table."""
    if value is None:
        return "no such setting"
    return value if len(value) <= LONGEST_VALUE else f"{value[: LONGEST_VALUE - 1]}…"


def _percent(ratio: Spread | None) -> Spread | None:
    if ratio is None:
        return None
    scaled = {name: 100 * getattr(ratio, name) for name in ("median", "mean", "low", "high")}
    return replace(ratio, **scaled)


def as_json(run: Run) -> list[dict[str, Any]]:
    """The pairs for other programs: one entry each."""
    return [
        {
            "kind": report.pair.new_server.kind,
            "base": {"variant": report.pair.base.id, "version": report.pair.base_server.version},
            "new": {"variant": report.pair.new.id, "version": report.pair.new_server.version},
            "per": report.costs.per,
            "costs": [_cost(line) for line in report.costs.lines],
            "defaults": {
                "unknown": report.defaults.unknown,
                "changed": [asdict(each) for each in report.defaults.changed],
            },
        }
        for report in sections(run)
    ]


def _cost(line: CostRatio) -> dict[str, Any]:
    return {
        "cost": line.cost.name,
        "unit": line.cost.unit,
        "base": _spread(line.base),
        "new": _spread(line.new),
        "ratio": _spread(line.ratio),
    }


def _spread(spread: Spread | None) -> dict[str, float] | None:
    return None if spread is None else {"n": spread.n, "median": spread.median, "min": spread.low, "max": spread.high}
