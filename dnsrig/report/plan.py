"""A prediction as text, its answer first, and as JSON. Every figure is the model's, and none was measured unless the
text states it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from dnsrig.prediction import fit, held_out
from dnsrig.prediction.combine import Alternative, Prediction
from dnsrig.prediction.held_out import Coverage, Row
from dnsrig.prediction.law import Limit
from dnsrig.report import figures

SAID = (
    "This is a prediction; nothing was run. `between` is how far off each law was when it was compared with measurements (of a fit: its interval). For "
    "buffers, limits of servers and sharing it is an assumption. It is no confidence interval. Another policy is judged by the path alone, without a server's work. See docs/explanation/model.md."
)
VERDICTS = {
    0: "yes, the whole interval",
    1: "no, not even the shortest time of the interval",
    3: "undecided, because the interval contains it",
}
"""Exit status of `dnsrig plan` -> words."""
SHOWN = 5
"""Largest number of alternatives in a table."""
LEAST_S = 1e-3
"""Shorter times are not distinguished."""
_UNITS = ((2 * 86_400.0, 86_400.0, "d"), (2 * 3600.0, 3600.0, "h"), (120.0, 60.0, "min"))
"""Smallest time in seconds for a unit, seconds of the unit, and the unit."""


@dataclass(frozen=True)
class Answer:
    """A prediction, and changes that would make it shorter."""

    title: str
    prediction: Prediction
    alternatives: Sequence[Alternative]
    notes: Sequence[str] = ()


def duration(time_s: float) -> str:
    """Two or three digits and a unit a person thinks in: ``21 min``, ``3.4 h``."""
    for least_s, unit_s, unit in _UNITS:
        if time_s >= least_s:
            return f"{_digits(time_s / unit_s)} {unit}"
    if 0 < time_s < LEAST_S:
        return "< 1 ms"
    return figures.figure(time_s, "s") if time_s > 0 else "0 s"


def _digits(value: float) -> str:
    return f"{value:,.{max(0, 1 - math.floor(math.log10(value)))}f}"


def answer_text(answer: Answer, *, named: bool) -> RenderableType:
    """The time, the limit that binds and what lifts it, a line each; ``named``: below the name of the variant."""
    head = [Text(figures.visible(answer.title), style="bold")] if named else []
    return Group(*head, *map(Text, sentences(answer.prediction)))


def explanation(answer: Answer) -> RenderableType:
    """The table of limits, changes that lift the limit that binds, notes, and sources.

    Changes that need another secondary have a table of their own.
    """
    parts: list[RenderableType] = [_limits(answer)]
    for elsewhere, title in ((False, "what would lift it"), (True, "what another secondary could do")):
        if found := [other for other in answer.alternatives if other.another_secondary is elsewhere][:SHOWN]:
            parts.append(_alternatives(title, found))
    if answer.notes:
        parts += [Text(""), *(Text(f"note: {figures.visible(note)}") for note in answer.notes)]
    return Group(*parts, Text("\n" + sources(answer.prediction)))


def within_sentence(within_s: float, status: int) -> str:
    """``Within 30 min: yes, …``; ``status`` is the exit status."""
    return f"Within {duration(within_s)}: {VERDICTS[status]}."


def sources(prediction: Prediction) -> str:
    """The source of each law; limits with the same source together."""
    found: dict[str, list[str]] = {}
    for limit in prediction.limits:
        found.setdefault(limit.source, []).append(limit.name)
    return "sources: " + "; ".join(f"{', '.join(names)}: {source}" for source, names in found.items())


def sentences(prediction: Prediction) -> list[str]:
    """``100,000 zones of 3 records: about 21 min (between 16 min and 27 min).``, its limit, and what lifts it."""
    scenario, binding = prediction.scenario, prediction.binding
    what = f"{figures.count(scenario.zones, 'zone')} of {figures.figure(scenario.records)} records"
    sites = f" to each of {scenario.sites:,} sites" if scenario.sites > 1 else ""
    reach = (
        f"about {duration(prediction.time_s)} (between {duration(prediction.low_s)} and {duration(prediction.high_s)})"
    )
    if prediction.at_least:
        reach = f"at least {duration(prediction.low_s)}; how much more is not known"
    if prediction.at_most:
        reach = f"at most {duration(prediction.high_s)}; how much less is not known, but not below {duration(prediction.low_s)}"
    return [
        f"{what}{sites}: {reach}.",
        f"Limited by {binding.name}: {binding.says}.{_besides(prediction)}",
        f"To lift it: {binding.remedy}.",
    ]


def _besides(prediction: Prediction) -> str:
    more = prediction.besides
    if more is None:
        return ""
    return f" {more.name.capitalize()} adds {duration(more.time_s)}, because a worker waits for one after the other."


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _limits(answer: Answer) -> Table:
    table = _table(figures.visible(answer.title), "limit", "time", "between", "", "from")
    binding = answer.prediction.binding
    for limit in answer.prediction.limits:
        table.add_row(
            limit.name,
            _bounded(limit, limit.time_s),
            _between(limit),
            "binds" if limit is binding else "",
            figures.visible(limit.says),
            style="bold" if limit is binding else "",
        )
    return table


def _bounded(limit: Limit, time_s: float) -> str:
    sign = "≥ " if limit.at_least else "≤ " if limit.at_most else ""
    return sign + duration(time_s)


def _between(limit: Limit) -> str:
    return "" if limit.at_least or limit.at_most else f"{duration(limit.low_s)} .. {duration(limit.high_s)}"


def _alternatives(title: str, alternatives: Sequence[Alternative]) -> Table:
    table = _table(f"\n{title}", "change", "time", "then binds")
    for other in alternatives:
        binding = other.prediction.binding
        table.add_row(other.change, _bounded(binding, other.prediction.time_s), binding.name)
    return table


def held_out_text(run: str, rows: Sequence[Row], coverage: Coverage) -> RenderableType:
    """The prediction of a run's largest size from its smaller sizes, and what was measured there."""
    table = _table(
        f"fitted to the smaller sizes of {run}, compared with the largest",
        "variant",
        "start",
        "each",
        "largest",
        f"predicted ({fit.CONFIDENCE:.0%} interval)",
        "measured, median",
        "inside",
    )
    for row in rows:
        table.add_row(*_held_out_row(row))
    return Group(table, Text("\n" + coverage_sentence(coverage)))


def _held_out_row(row: Row) -> tuple[str, ...]:
    found, size = row.forecast, f"{row.unseen[0].size:,} {row.unit}"
    if found is None:
        return figures.visible(row.label), "", "", size, "too few trials to fit", duration(row.measured_s), ""
    predicted = f"{duration(found.time_s)} [{duration(found.low_s)} .. {duration(found.high_s)}]"
    if row.behind_wall:
        predicted = f"≥ {duration(row.wall_s)}: ports run out (the line alone: {duration(found.time_s)})"
    elif not found.is_narrow:
        predicted += f", wider than ±{fit.WIDEST:.0%}"
    line = found.line
    inside = f"{sum(row.held)} of {len(row.held)}"
    start, each = duration(line.start_s), figures.figure(line.each_s, "s")
    return figures.visible(row.label), start, each, size, predicted, duration(row.measured_s), inside


def coverage_sentence(coverage: Coverage) -> str:
    left_out = "".join(
        f" Not counted: {number} {what}."
        for number, what in (
            (coverage.unfinished, "that did not finish, of any size"),
            (coverage.behind_wall, "behind the port wall, where the law has only a smallest time"),
            (coverage.unfitted, "of a largest size with too few trials below it"),
        )
        if number
    )
    if not coverage.trials:
        return f"Coverage: no trial of a largest size can be compared with an interval.{left_out}"
    return (
        f"Coverage: {coverage.held} of {coverage.trials} trials that the fit had not seen lie in their {fit.CONFIDENCE:.0%} interval; "
        f"{coverage.narrow} of {coverage.rows} intervals are within ±{fit.WIDEST:.0%}.{left_out}"
    )


def as_json(answers: Sequence[Answer], rows: Sequence[Row] = ()) -> dict[str, Any]:
    """All predictions for other programs; times in seconds."""
    found: dict[str, Any] = {"predictions": [_answer(answer) for answer in answers]}
    if rows:
        covered = held_out.coverage(list(rows))
        found["held_out"] = {
            "rows": [_row(row) for row in rows],
            "confidence": fit.CONFIDENCE,
            "trials": covered.trials,
            "trials_inside": covered.held,
            "intervals": covered.rows,
            "intervals_narrow": covered.narrow,
            "trials_unfinished": covered.unfinished,
            "trials_behind_ports": covered.behind_wall,
            "trials_without_interval": covered.unfitted,
        }
    return found


def _answer(answer: Answer) -> dict[str, Any]:
    prediction = answer.prediction
    return {
        "title": answer.title,
        **_times(prediction),
        "limits": [
            {
                "name": limit.name,
                "time_s": limit.time_s,
                "low_s": limit.low_s,
                "high_s": None if limit.at_least else limit.high_s,
                "at_least": limit.at_least,
                "at_most": limit.at_most,
                "binds": limit is prediction.binding,
                "says": limit.says,
                "remedy": limit.remedy,
                "source": limit.source,
            }
            for limit in prediction.limits
        ],
        "alternatives": [
            {"change": other.change, "another_secondary": other.another_secondary, **_times(other.prediction)}
            for other in answer.alternatives
        ],
        "notes": list(answer.notes),
    }


def _times(prediction: Prediction) -> dict[str, Any]:
    return {
        "time_s": prediction.time_s,
        "low_s": prediction.low_s,
        "high_s": None if prediction.at_least else prediction.high_s,
        "binds": prediction.binding.name,
        "besides_s": prediction.besides.time_s if prediction.besides else None,
    }


def _row(row: Row) -> dict[str, Any]:
    found = row.forecast
    return {
        "variant": row.parameters,
        "unit": row.unit,
        "largest": row.unseen[0].size,
        "trials_fitted": len(row.fitted),
        "trials_unfinished": row.unfinished,
        "start_s": found and found.line.start_s,
        "each_s": found and found.line.each_s,
        "predicted_s": found and found.time_s,
        "low_s": found and found.low_s,
        "high_s": found and found.high_s,
        "ports_at_least_s": row.wall_s or None,
        "measured_s": [trial.time_s for trial in row.unseen],
        "inside": row.held,
    }
