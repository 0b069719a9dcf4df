"""Names of variants for sentences: ``Knot DNS``, ``100 zones``, ``carrier replica``."""

from __future__ import annotations

from collections.abc import Sequence

from dnsrig.report import figures, phrases
from dnsrig.report.figures import visible
from dnsrig.rundir import Scalar, Variant
from dnsrig.runs.run import Run
from dnsrig.servers import all_drivers

VAGUE = ("all", "none", "no", "yes", "on", "off", "default", "defaults", "small", "large", "few", "many")
"""Values that say nothing without the name of their axis."""
ENGINE = "engine"
"""Source of the servers that are parts of dnsrig."""
PREPOSITIONS = ("as", "at", "in", "on", "while", "with", "without")
"""First words of phrases that need no "with" before them."""


def varying_axes(run: Run) -> list[str]:
    """The axes with more than one value."""
    return [axis for axis, values in run.manifest.axes.items() if len(values) > 1]


def is_servers(run: Run, axis: str) -> bool:
    """Whether every value of ``axis`` is a server."""
    return all(str(value) in run.manifest.servers for value in run.manifest.axes.get(axis, [None]))


def name(run: Run, variant: Variant, axes: Sequence[str], *, short: bool = False) -> str:
    """The values of ``variant`` on ``axes``; ``short``: without the name of an axis if its values need none."""
    return ", ".join(_on_axis(run, variant, axis, short) for axis in axes if axis in variant.parameters)


def circumstances(run: Run, variant: Variant, axes: Sequence[str]) -> str:
    """What follows the name of a server: ``while the catalog changes``, ``with level validating``."""
    told = [
        phrases.PHRASES.get((axis, figures.parameter(variant.parameters[axis]))) or _on_axis(run, variant, axis, False)
        for axis in axes
        if axis in variant.parameters
    ]
    joined = ", ".join(told)
    return joined if joined.partition(" ")[0] in PREPOSITIONS else f"with {joined}"


def _on_axis(run: Run, variant: Variant, axis: str, short: bool) -> str:
    value = variant.parameters[axis]
    if short and all(map(_speaks, run.manifest.axes.get(axis, []))):
        return visible(str(value))
    return _server(run, axis, value) or _value(axis, value)


def _speaks(value: Scalar) -> bool:
    """Whether ``value`` is understood without its axis: ``one-large-zone`` is, ``none`` and ``90 %`` are not."""
    words = str(value).replace("-", "").replace(" ", "")
    return isinstance(value, str) and words.isalpha() and value not in VAGUE


def _server(run: Run, axis: str, value: Scalar) -> str:
    """The title of a server; with its version, or else the source, where ``axis`` has several of that kind."""
    if not is_servers(run, axis):
        return ""
    server = run.manifest.servers[str(value)]
    title = _title(server.kind, server.source)
    same = [other for other in run.manifest.axes[axis] if run.manifest.servers[str(other)].kind == server.kind]
    if len(same) == 1:
        return title
    versions = {run.manifest.servers[str(other)].version for other in same}
    return f"{title} {visible(server.version)}" if len(versions) == len(same) else figures.parameter(value)


def _title(kind: str, source: str) -> str:
    """``Knot DNS``; for a part of dnsrig, its purpose: ``the protocol floor``."""
    known = all_drivers().get(kind)
    title, _, stands_for = known.title.partition(" (") if known else (visible(kind), "", "")
    if source != ENGINE or not stands_for:
        return title
    short = stands_for.rstrip(")").partition(",")[0]
    return short if short.startswith(("a ", "the ")) else f"the {short}"


def _value(axis: str, value: Scalar) -> str:
    """``100 zones``, ``rate 5,000 queries/s``, ``carrier replica``; an axis that is on or off is named alone."""
    if measured := phrases.with_unit(axis, value):
        return measured
    words, shown = visible(axis.replace("_", " ")), visible(figures.parameter(value))
    if isinstance(value, bool):
        return words if value else f"no {words}"
    plural = words.endswith("s") and words.isalpha()
    return f"{shown} {words}" if plural and isinstance(value, int | float) else f"{words} {shown}"
