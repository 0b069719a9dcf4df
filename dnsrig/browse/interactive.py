"""Makes a chart of the report one that answers: values under the pointer, zoom, a legend that switches lines.

It works on the Vega-Lite specification of any chart of the report, so a chart needs to know nothing of it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

from dnsrig.browse import rescale
from dnsrig.browse.spec import Rows, Spec, hand_down, mark_of, marked, panels, units

SILENT = ("text", "rule", "tick")
"""Marks without a value of their own under the pointer."""
MOST_HOVER_ROWS = 4_000
"""Points that can be pointed at in one panel: with more, a browser is slow."""
HOVER_PX2 = 90
OFF_OPACITY = 0.06
"""Opacity of marks that the legend switched off: a trace of them stays, as the axis does."""
TELLING = ("color", "shape", "strokeDash")
ZOOM = {"zoom": "wheel![event.ctrlKey]"}
"""Dragging moves, Ctrl and the wheel zoom, so that a page still scrolls; a double click brings all back."""
TRIAL = "trial"
"""The column of a row that belongs to one trial: ``VARIANT/REPEAT``, below the address of the run."""


def interactive(spec: Spec, *, scale: str = "", trials_at: str = "") -> Spec:
    """A copy of ``spec`` that answers. ``scale``: ``linear`` or ``log``, empty as drawn; ``trials_at``: the address
    below which marks of single trials lead."""
    found = copy.deepcopy(spec)
    hand_down(found)
    rows = Rows(found)
    if scale:
        rescale.apply(found, scale, rows.values)
    found_panels = list(panels(found))
    for number, panel in enumerate(found_panels):
        for each, unit in enumerate(units(panel)):
            unit["name"] = f"unit_{number}_{each}"
            _tell(unit)
            if trials_at:
                _lead(unit, rows, trials_at)
    params = [*_zooms(found_panels), *_switches(found_panels)]
    for panel in found_panels:
        _point_at_lines(panel, rows)
    found["config"] = {**found.get("config", {}), "background": "transparent"}  # the page is light or dark
    found["params"] = [*found.get("params", []), *params]
    return found


def _tell(unit: Spec) -> None:
    if mark_of(unit) not in SILENT:
        marked(unit).setdefault("tooltip", {"content": "encoding"})


def _lead(unit: Spec, rows: Rows, below: str) -> None:
    """Marks of single trials lead to them."""
    found = rows.of(unit)
    if mark_of(unit) not in ("point", "circle", "square") or not found or TRIAL not in found[0]:
        return
    told = [_told(each) for name, each in unit["encoding"].items() if "field" in each and name not in ("x2", "y2")]
    repeat = [{"field": "repeat", "type": "nominal"}] if "repeat" in found[0] else []
    unit["encoding"]["tooltip"] = list({each["field"]: each for each in [*told, *repeat]}.values())
    where = f"{below}/"
    unit.setdefault("transform", []).append({"calculate": f"{where!r} + datum.{TRIAL}", "as": "href"})
    unit["encoding"]["href"] = {"field": "href", "type": "nominal"}
    marked(unit)["cursor"] = "pointer"
    marked(unit)["size"] = max(60, marked(unit).get("size", 0))


def _zooms(panels: list[Spec]) -> Iterator[Spec]:
    """Panels with one axis in common (the same column within the same ends) move and zoom together along it."""
    groups: dict[str, list[tuple[str, list[str]]]] = {}
    for number, panel in enumerate(panels):
        unit = next((unit for unit in units(panel) if mark_of(unit) != "text" and _continuous(unit)), None)
        if unit is not None:
            x = unit["encoding"].get("x", {})
            key = (
                f"{x.get('field')} {x.get('scale', {}).get('domain')}"
                if "x" in _continuous(unit)
                else f"panel {number}"
            )
            groups.setdefault(key, []).append((unit["name"], _continuous(unit)))
    for number, group in enumerate(groups.values()):
        channels = ["x"] if len(group) > 1 else group[0][1]
        select = {"type": "interval", "encodings": channels, **ZOOM}
        yield {"name": f"zoom_{number}", "select": select, "bind": "scales", "views": [name for name, _ in group]}


def _continuous(unit: Spec) -> list[str]:
    """The channels along which a unit can be zoomed."""
    encoding = unit.get("encoding", {})
    wanted = [name for name in ("x", "y") if name in encoding]
    return [
        name
        for name in wanted
        if encoding[name].get("type") in ("quantitative", "temporal")
        and encoding[name].get("scale", {}) is not None
        and not encoding[name].get("bin")
        and "field" in encoding[name]
    ]


def _switches(panels: list[Spec]) -> Iterator[Spec]:
    """A click on an entry of a legend leaves that alone, further clicks add others."""
    all_units = [unit for panel in panels for unit in units(panel)]
    legends = dict.fromkeys(field for unit in all_units for field in _in_legend(unit))
    for number, field in enumerate(legends):
        name = f"shown_{number}"
        shown = [unit for unit in all_units if field in _told_apart(unit) and "opacity" not in unit["encoding"]]
        for unit in shown:
            on = marked(unit).get("opacity", 1)
            unit["encoding"]["opacity"] = {"condition": {"param": name, "value": on}, "value": OFF_OPACITY * on}
        if shown:
            # One view listens to the legend, and marks of all follow it: bound in several, its signals would clash.
            listens = next(unit["name"] for unit in all_units if field in _in_legend(unit))
            select = {"type": "point", "fields": [field], "toggle": "true"}
            yield {"name": name, "select": select, "bind": "legend", "views": [listens]}


def _told_apart(unit: Spec) -> list[str]:
    """Columns that decide colours and shapes."""
    encoding = unit.get("encoding", {})
    return [encoding[name]["field"] for name in TELLING if "field" in encoding.get(name, {})]


def _in_legend(unit: Spec) -> list[str]:
    encoding = unit.get("encoding", {})
    return [
        encoding[name]["field"]
        for name in TELLING
        if "field" in encoding.get(name, {})
        and encoding[name].get("legend", {}) is not None
        and encoding[name].get("type") == "nominal"
    ]


def _point_at_lines(panel: Spec, rows: Rows) -> None:
    """A line is one mark: over it lie points without ink, which have the values."""
    lines = [unit for unit in units(panel) if mark_of(unit) in ("line", "trail")]
    if not lines or sum(len(rows.of(unit)) for unit in lines) > MOST_HOVER_ROWS:
        return
    points = [_points(unit) for unit in lines]
    if "layer" not in panel:
        own = ("mark", "encoding", "data", "transform", "params", "name")
        panel["layer"] = [{name: panel.pop(name) for name in own if name in panel}]
    panel["layer"] += points


def _points(line: Spec) -> Spec:
    encoding = line.get("encoding", {})
    told = [encoding[name] for name in (*TELLING, "detail", "x", "y") if "field" in encoding.get(name, {})]
    tooltip = {each["field"]: _told(each) for each in told}
    kept = {name: {k: v for k, v in encoding[name].items() if k != "axis"} for name in ("x", "y") if name in encoding}
    if "detail" in encoding:
        kept["detail"] = encoding["detail"]
    point = {"type": "point", "filled": True, "size": HOVER_PX2, "opacity": 0}
    found = {"mark": point, "encoding": {**kept, "tooltip": list(tooltip.values())}}
    return found | {name: line[name] for name in ("data", "transform") if name in line}


def _told(channel: Spec) -> Spec:
    """A channel as a line of what is shown under the pointer."""
    title = channel.get("title") or channel["field"]
    told = {"field": channel["field"], "type": channel.get("type", "nominal"), "title": title}
    if told["type"] == "quantitative":
        told["format"] = ",.5~g"
    return told
