"""Switches the axis of the figures between linear and logarithmic."""

from __future__ import annotations

from collections.abc import Callable

from dnsrig.browse.spec import Spec, all_units, mark_of

Values = Callable[[Spec, str], list[float]]
ROOM = 1.05
"""Length of an axis, as a multiple of its largest value; as in the report."""
SAYS_LOG = " (log scale)"


def apply(spec: Spec, kind: str, values: Values) -> None:
    """Make each axis of figures in ``spec`` ``linear`` or ``log``. An axis of time stays, and so does one that begins
    at zero or below, of which there is no logarithm."""
    for unit in all_units(spec):
        for channel in _figures(unit):
            low, high = _extent(unit, channel, values)
            scale = channel.setdefault("scale", {})
            if kind == "log" and low > 0:
                channel["scale"] = {**scale, "type": "log", "domain": [low / ROOM, high * ROOM], "nice": False}
                _titled(channel, True)
            elif kind == "linear" and scale.get("type") == "log":
                channel["scale"] = {**scale, "type": "linear", "domain": [0, high * ROOM], "nice": False}
                channel.get("axis", {}).pop("values", None)
                _titled(channel, False)


def switchable(spec: Spec, values: Values) -> bool:
    """Whether there is an axis to switch."""
    return any(
        channel.get("scale", {}).get("type") == "log" or _extent(unit, channel, values)[0] > 0
        for unit in all_units(spec)
        for channel in _figures(unit)
    )


def is_logarithmic(spec: Spec) -> bool:
    """Whether an axis of figures is: one of sizes may be all the same."""
    return any(channel.get("scale", {}).get("type") == "log" for unit in all_units(spec) for channel in _figures(unit))


def _figures(unit: Spec) -> list[Spec]:
    """The channels of the axis that has the figures: y, or x where y has names. Bars and areas begin at zero."""
    mark = mark_of(unit)
    encoding = unit.get("encoding", {})
    axis = next((name for name in ("y", "x") if encoding.get(name, {}).get("type") == "quantitative"), None)
    if axis is None or (mark in ("bar", "area", "rect") and f"{axis}2" not in encoding):
        return []
    channel = encoding[axis]
    field = str(channel.get("field", ""))
    return [] if not field or field.startswith("time_s") or "percent" in field else [channel]


def _extent(unit: Spec, channel: Spec, values: Values) -> tuple[float, float]:
    """The ends of the axis as drawn, or of the figures: layers of a panel share them."""
    domain = channel.get("scale", {}).get("domain")
    found = values(unit, str(channel["field"]))
    low = min(found, default=0.0)
    high = float(domain[1]) / ROOM if isinstance(domain, list) and len(domain) == 2 else max(found, default=0.0)
    if isinstance(domain, list) and len(domain) == 2 and domain[0] > 0:
        low = float(domain[0])
    return low, high


def _titled(channel: Spec, log: bool) -> None:
    title = channel.get("title")
    if isinstance(title, str):
        channel["title"] = title.removesuffix(SAYS_LOG) + (SAYS_LOG if log else "")
