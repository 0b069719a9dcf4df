"""The table of published figures and what was measured here."""

from __future__ import annotations

from dataclasses import dataclass

from dnsrig.comparison.published import Figure, Measured, Source, held_against
from dnsrig.report import conditions, figures
from dnsrig.runs.run import Run
from dnsrig.stats.statistics import Spread
from dnsrig.text import digits


@dataclass(frozen=True)
class Row:
    """What was measured of one server, for a published figure."""

    subject: str
    measured: str
    repeats: str
    sentence: str


@dataclass(frozen=True)
class Held:
    """One published figure, and what this run measured for it."""

    source: Source
    what: str
    published: str
    rows: list[Row]


def held(run: Run) -> list[Held]:
    by_figure: dict[Figure, list[Measured]] = {}
    for measured in held_against(run):
        by_figure.setdefault(measured.figure, []).append(measured)
    return [
        Held(
            source=figure.source,
            what=f"{figure.metric.replace('_', ' ')}, {figure.variant}",
            published=published(figure),
            rows=[_row(measured) for measured in found],
        )
        for figure, found in by_figure.items()
    ]


def _row(measured: Measured) -> Row:
    said = [lies(measured), *measured.differs]
    repeats = figures.count(measured.values.n if measured.values else 0, "repeat")
    return Row(measured.subject, shown(measured), repeats, " ".join(sentence for sentence in said if sentence))


def published(figure: Figure) -> str:
    """The figure as its source has it: ``66..181 s``, ``111 ±3 % of tcp``."""
    unit = figure.unit.replace("percent", "%")
    low, high = _plain(figure.low), _plain(figure.high)
    if figure.kind == "range":
        return f"{low}..{high} {unit}"
    if figure.kind == "at-most":
        return f"at most {high} {unit}"
    if figure.kind == "at-least":
        return f"at least {low} {unit}"
    if figure.kind == "about" or figure.low is None or figure.high is None:
        return f"about {_plain(figure.value)} {unit}"
    if "%" in unit:
        return f"{_plain(figure.value)} ±{_plain((figure.high - figure.low) / 2)} {unit}"
    return f"{_plain(figure.value)} {unit} [{low}..{high}]"


def shown(measured: Measured) -> str:
    """What was measured, as everywhere on the page; with the sign of a bound where it is one."""
    if measured.values is None:
        return figures.NONE
    if isinstance(measured.values, Spread):
        unit = measured.figure.unit.replace("percent", "%")
        return f"{measured.bound} {figures.spread(measured.values, unit)}".strip()
    return f"{measured.bound} {figures.percent_spread(measured.values)}".strip()


def lies(measured: Measured) -> str:
    """Where the measured lies with respect to the published, in one sentence; never that they agree."""
    if measured.values is None:
        return "There is no measured figure to compare with it."
    figure = measured.figure
    name, middle = measured.middle
    if not measured.comparable:
        return "Not compared with the published figure, which is for another size or other conditions."
    if figure.kind == "about":
        told = figure.value is not None and min(figure.value, middle) > 0 and not measured.bound
        return (
            f"The {name} is {digits(middle / figure.value, 2)} times the published figure."
            if told and figure.value
            else ""
        )
    where = "bound" if figure.kind in ("at-most", "at-least") else "range"
    if figure.high is not None and middle > figure.high and measured.bound != "≤":
        return f"The {name} lies above the published {where}."
    if figure.low is not None and middle < figure.low and measured.bound != "≥":
        return f"The {name} lies below the published {where}."
    if measured.bound:
        return "A bound only: repeats that hit their limit would have taken longer."
    return f"The {name} lies within the published {where}."


def here(run: Run) -> str:
    """The machine in a few words, for comparison with the machine of a source."""
    known = run.manifest.measured_under
    shapes = (
        ("kernel", "kernel {}"),
        ("cpu_model", "{}"),
        ("cpus", "{} CPUs"),
        ("virtualisation", "virtualised: {}"),
    )
    return ", ".join(
        shape.format(conditions.text(known[name])) for name, shape in shapes if known.get(name) is not None
    )


def _plain(value: float | None) -> str:
    """With the source's own digits."""
    return figures.NONE if value is None else digits(value, 6)
