"""Two runs side by side, for a terminal of 80 columns and for other programs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from dnsrig.comparison import configurations
from dnsrig.comparison.compare import MOST_NAMED, Line, TwoRuns, Verdict
from dnsrig.comparison.configurations import ConfigurationDifference
from dnsrig.comparison.run_differences import Difference
from dnsrig.comparison.thresholds import Repeats
from dnsrig.metrics import Metric
from dnsrig.report import figures, wording
from dnsrig.report.figures import visible
from dnsrig.report.fitting import FittingTable
from dnsrig.rundir import Manifest, Variant
from dnsrig.stats import significance, statistics

SCHEMA_VERSION = 2
"""Version of the JSON; raised by one whenever a reader of the old form would misread the new one."""
COLUMNS = ("base", "new", "of base", "p", "change")
"""Columns of a metric's table, after the axes."""
_ONE_OF_MANY = re.compile(r"^(hosts|links)\.[^.]+\.")


def warnings(found: TwoRuns) -> list[str]:
    """What differs between the two runs besides what is compared, a sentence each."""
    if found.within:
        base = " ".join(f"{axis}={value}" for axis, value in found.within.items())
        return [f"not compared: {variant.label}: no variant beside it has {base}" for variant in found.only_in_new]
    alone = [(found.only_in_base, "base"), (found.only_in_new, "new run")]
    return [
        *(f"differs: {sentence}" for sentence in _differences(found)),
        *(f"only in the {where}: {variant.label}" for variants, where in alone for variant in variants),
    ]


def as_text(found: TwoRuns) -> RenderableType:
    """A table for each metric; then the verdict of each rule on each variant, the worst first; then the result."""
    tables: list[RenderableType] = []
    for metric, lines in groupby(found.lines, key=lambda line: line.metric):
        tables += [_table(found.new, metric, lines), Text()]
    for difference in configurations_of(found):
        tables += [Text(visible(difference.title)), *(Text(f"  {visible(line)}") for line in difference.lines), Text()]
    said = [Text(visible(sentence)) for sentence in sentences(found)]
    whole = [Text(visible(result), style="bold")] if (result := whole_in_a_line(found)) else []
    return Group(*tables, *said, *whole)


def configurations_of(found: TwoRuns) -> list[ConfigurationDifference]:
    """What differs between configurations of the user's own, for each pair that was compared."""
    pairs = {(line.pair.base.id, line.pair.new.id): line.pair for line in found.lines}
    return configurations.differing(found.base, found.new, pairs.values())


def _configurations(found: TwoRuns) -> dict[str, Any]:
    listed = [
        {**_pair(each.base, each.new), "host": each.host, "diff": each.lines} for each in configurations_of(found)
    ]
    return {"configurations": listed} if listed else {}


def sentences(found: TwoRuns) -> list[str]:
    """The sentences below the tables: machines, chance, and each rule's verdict on each variant, the worst first."""
    order = ("regression", "undecided", "pass")
    verdicts = [(verdict.judgement.decision, _said(verdict)) for verdict in found.verdicts]
    if found.decision:
        verdicts += [("undecided", _missing(variant)) for variant in found.only_in_base]
    verdicts.sort(key=lambda verdict: order.index(verdict[0]))
    return [*_machines(found), *_means(found), *_reach(found), *(sentence for _, sentence in verdicts)]


def as_json(found: TwoRuns) -> dict[str, Any]:
    """The whole comparison as plain data."""
    return {
        "schema_version": SCHEMA_VERSION,
        "base": run_as_json(found.base),
        "new": run_as_json(found.new),
        **({"within": found.within} if found.within else {}),
        "differences": [_difference(difference) for difference in found.differences],
        **_configurations(found),
        "only_in_base": [variant.parameters for variant in found.only_in_base],
        "only_in_new": [variant.parameters for variant in found.only_in_new],
        "comparisons": [_line(line) for line in found.lines],
        "chance": _reach(found),
        "verdicts": [_verdict(verdict) for verdict in found.verdicts],
        "result": found.decision,
    }


def _machines(found: TwoRuns) -> list[str]:
    """How runs over several machines are compared; nothing of other runs."""
    if found.machines:
        names = ", ".join(found.machines)
        return [f"machines: {names}; each repeat is compared with the repeats of the base on the same machine"]
    if found.base.machines or found.new.machines:
        return ["machines: the runs have no machine in common, so the machines may be the cause of a difference"]
    return []


def _reach(found: TwoRuns) -> list[str]:
    """The least p of the main metric's comparisons; of all others together, and of the rules, where it can tell
    nothing."""
    main = found.lines[0].metric
    of_main = [line for line in found.lines if line.metric == main]
    of_others = [line for line in found.lines if line.metric != main]
    machines, one_run = max(1, len(found.machines)), bool(found.within)
    of_rules = [] if not found.verdicts else found.lines
    families = [
        (main.name, _least_p(of_main, len(of_main), machines, one_run=one_run)),
        ("the other metrics together", _least_p(of_others, len(of_others), machines, one_run=one_run)),
        ("the rules", _least_p(of_rules, len(found.verdicts), machines, one_run=one_run)),
    ]
    return [f"chance, {name}: {said}" for name, said in families if said and (name == main.name or "needed" in said)]


def _least_p(lines: list[Line], comparisons: int, machines: int, *, one_run: bool) -> str:
    measured = [(len(line.base.samples), len(line.new.samples)) for line in lines]
    measured = [both for both in measured if min(both) > 0]
    if not measured:
        return ""
    most = max(measured, key=lambda both: (min(both), max(both)))
    return significance.reach(*most, comparisons, one_run=one_run, machines=machines)


def whole_in_a_line(found: TwoRuns) -> str:
    """The result, and what it is a result of: nothing tells apart what differs at the same time. Empty without a
    rule."""
    if not found.decision:
        return ""
    names = list(dict.fromkeys(difference.what for difference in found.differences))
    if not names or found.decision == "undecided":
        return f"result: {found.decision}"
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"result: {found.decision} (of all that differs together: {', '.join(names[:MOST_NAMED])}{more})"


def _differences(found: TwoRuns) -> list[str]:
    """A sentence each; what is the same on many hosts or links is reported once."""
    alike: dict[tuple[str, str, str, int], list[Difference]] = {}
    for difference in found.differences:
        kind = _ONE_OF_MANY.sub(r"\1.*.", difference.what)
        alike.setdefault((kind, difference.base, difference.new, len(difference.pairs)), []).append(difference)
    told = []
    all_pairs = len({id(line.pair) for line in found.lines})
    for (kind, base, new, pairs), group in alike.items():
        where = f" (in {pairs} of {figures.count(all_pairs, 'variant')})" if 0 < pairs < all_pairs else ""
        if len(group) > MOST_NAMED:
            told.append(f"{kind}, {len(group)} of them: {base} in the base, {new} in the new run{where}")
        else:
            told += [f"{difference}{where}" for difference in group]
    return told


def _table(manifest: Manifest, metric: Metric, lines: Iterable[Line]) -> FittingTable:
    return FittingTable(
        title=visible(f"{metric.title} ({metric.name}){better(metric)}"),
        title_style="bold",
        columns=[*map(visible, manifest.axes), *COLUMNS],
        axes=len(manifest.axes),
        rows=[["\n".join(map(visible, cell)) for cell in cells(manifest, metric, line)] for line in lines],
    )


def better(metric: Metric) -> str:
    """``; lower is better``, where that can be said."""
    return "" if metric.better == "neither" else f"; {metric.better} is better"


def cells(manifest: Manifest, metric: Metric, line: Line) -> list[list[str]]:
    """The lines of each cell, in the order of the axes and `COLUMNS`."""
    parameters, p = line.pair.new.parameters, figures.p_value(line.comparison.p_corrected)
    axes = [figures.parameter(parameters[axis]) if axis in parameters else figures.NONE for axis in manifest.axes]
    figured = [_measured(line.base, metric), _measured(line.new, metric), _percent(line)]
    return [*([axis] for axis in axes), *figured, [p], [_change(line)]]


def _measured(repeats: Repeats, metric: Metric) -> list[str]:
    """Median, range, and how many repeats are done or not, a line each."""
    median, range_ = wording.median_and_range(repeats.samples, metric.unit)
    return [part for part in (median, range_, *f"n {wording.outcomes(repeats.outcomes)}".split(", ")) if part]


def _percent(line: Line) -> list[str]:
    """Ratio of medians, and its interval on a line of its own."""
    return [part for part in (figures.percent(line.comparison), figures.interval(line.comparison)) if part]


def _change(line: Line) -> str:
    """As `statistics.Comparison.change`; ``not compared`` if repeats did not finish, no repeat has a figure, or the
    medians of both sides reached the ceiling."""
    without = not (line.base.samples and line.new.samples) or line.base.unfinished or line.new.unfinished
    at_ceiling = not (line.base.samples.has_median or line.new.samples.has_median)
    return "not compared" if without or at_ceiling else line.comparison.change


def _means(found: TwoRuns) -> list[str]:
    """Where the means say something else than the percentage."""
    return [
        f"{line.metric.name}, {line.pair.label}: {said}"
        for line in found.lines
        if (said := wording.disagreement(line.comparison))
    ]


def _said(verdict: Verdict) -> str:
    judgement, interval = verdict.judgement, verdict.judgement.interval
    ends = f"[{figures.figure(interval.low)}..{figures.figure(interval.high)}] %, " if interval else ""
    return f"{judgement.decision}: {verdict.rule}, {verdict.pair.label}: {ends}{judgement.reason}"


def _missing(variant: Variant) -> str:
    return f"undecided: {variant.label}: only in the base, so there is nothing to compare it with"


def run_as_json(manifest: Manifest) -> dict[str, Any]:
    """Which run it is, and of what."""
    return {
        "run": manifest.run,
        "experiment": manifest.experiment,
        "scale": manifest.scale,
        "created": manifest.created,
        "dnsrig_version": manifest.dnsrig_version,
        "servers": {name: server.version for name, server in manifest.servers.items()},
        **({"machines": [machine.name for machine in manifest.machines]} if manifest.machines else {}),
    }


def _difference(difference: Difference) -> dict[str, Any]:
    return {
        "what": difference.what,
        "base": difference.base,
        "new": difference.new,
        "asked_for": difference.asked_for,
        "variants": [pair.new.parameters for pair in difference.pairs],
    }


def _pair(base: Variant, new: Variant) -> dict[str, Any]:
    return {"parameters": new.parameters, "base_variant": base.id, "new_variant": new.id}


def _line(line: Line) -> dict[str, Any]:
    comparison = line.comparison
    return _pair(line.pair.base, line.pair.new) | {
        "metric": line.metric.name,
        "unit": line.metric.unit,
        "better": line.metric.better,
        "base": _repeats(line.base),
        "new": _repeats(line.new),
        "percent": comparison.percent,
        "bound": comparison.bound,
        "percent_of_means": comparison.of_mean.mean if comparison.of_mean else None,
        "interval": interval_as_json(comparison.interval),
        "p": comparison.p,
        "p_corrected": comparison.p_corrected,
        "change": comparison.change,
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    judgement = verdict.judgement
    return _pair(verdict.pair.base, verdict.pair.new) | {
        "rule": str(verdict.rule),
        "metric": verdict.rule.metric,
        "decision": judgement.decision,
        "reason": judgement.reason,
        "interval": interval_as_json(judgement.interval),
        "p": judgement.p,
        "p_corrected": judgement.p_corrected,
    }


def _repeats(repeats: Repeats) -> dict[str, Any]:
    samples, found = repeats.samples, repeats.samples.spread
    numbers = {"median": found.median, "mean": found.mean, "min": found.low, "max": found.high} if found else {}
    known = {"outcomes": dict(repeats.outcomes), "values": samples.numbers, "at_least": len(samples.bounds)}
    if any(samples.machines):
        known["machines"] = samples.machines
    if samples.low != samples.numbers:
        known["lower"] = samples.low
    return known | numbers


def interval_as_json(interval: statistics.Interval | None) -> dict[str, float | None] | None:
    """Its ends; without ``high`` where it has no upper end."""
    if interval is None:
        return None
    # JSON has no infinity.
    high = interval.high if math.isfinite(interval.high) else None
    return {"low": interval.low, "high": high, "confidence": interval.confidence}
