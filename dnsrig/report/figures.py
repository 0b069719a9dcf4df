"""Figures as people read them: rounded to what they can bear, always with their unit and spread.

All text that comes from outside (names, logs, parameters) passes through `visible`.
"""

from __future__ import annotations

import math

from dnsrig import text as _text
from dnsrig.rundir import Scalar
from dnsrig.stats.statistics import Comparison, PercentSpread, Spread
from dnsrig.text import digits

SIGNIFICANT = 3
"""Digits that are shown of a figure; repeats seldom agree on the third."""

NONE = "–"
"""Shown where there is no figure."""

TIMES_FROM_PERCENT = 900
"""From ten times on nobody thinks in percent."""

FLOOR = "transfer@engine"
STANDS_FOR: dict[Scalar, str] = {FLOOR: "protocol floor, not stored", "zones@engine": "synthetic primary"}
"""Parts of the engine that are compared with servers, and what they are, so that no reader takes one for a server that
keeps its zones."""

visible = _text.visible

_SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_TIMES = ((0.1, 1.0, "s"), (1e-4, 1e-3, "ms"), (0.0, 1e-6, "µs"))
"""Least number of seconds, the unit in seconds, the unit."""
_SUFFIXES = (
    ("_per_s", 1.0, "/s"),
    ("_ns", 1e-9, "s"),
    ("_us", 1e-6, "s"),
    ("_ms", 1e-3, "s"),
    ("_s", 1.0, "s"),
    ("_bytes", 1.0, "B"),
    ("_percent", 1.0, "%"),
)
_BYTES = {"bytes": "B", "B": "B", "bytes/s": "B/s", "B/s": "B/s"}


def figure(value: float | None, unit: str = "") -> str:
    """``value`` with its unit: ``2.54 s``, ``38.1 MB``, ``28,232``."""
    if value is None or not math.isfinite(value):
        return NONE
    factor, shown_unit = _scale(value, unit)
    return f"{_number(value / factor, _decimals(value / factor, unit))} {shown_unit}".rstrip()


def microseconds(value: float) -> str:
    """``38.2 µs``, ``2.54 ms``: in the unit that fits."""
    return figure(1e-6 * value, "s")


def slower(percent: float) -> str:
    """``14 %``, ``9.7 %``, ``62 times``: an estimate of by how much, of which two digits are known."""
    if percent >= TIMES_FROM_PERCENT:
        return f"{float(f'{1 + percent / 100:.2g}'):,.0f} times"
    return f"{percent:,.0f} %" if percent >= 10 else f"{digits(percent, 2)} %"


def spread(
    spread: Spread | None,
    unit: str = "",
    *,
    censored: bool = False,
    median_known: bool = False,
    lower: Spread | None = None,
) -> str:
    """``2.54 s [2.26..2.81]``: median and range in one."""
    both = median_and_range(spread, unit, censored=censored, median_known=median_known, lower=lower)
    return " ".join(part for part in both if part)


def median_and_range(
    spread: Spread | None,
    unit: str = "",
    *,
    censored: bool = False,
    median_known: bool = False,
    lower: Spread | None = None,
) -> tuple[str, str]:
    """``2.54 s`` and ``[2.26..2.81]``, both with the digits that the median bears; no range of a single value.

    ``[±0]``: exactly the same in every repeat. ``censored``: some trials hit their limit, so the largest value is a
    lower bound, and so is the median unless it is ``median_known`` (fewer than half hit the limit); if all values are
    at the limit, there is no range. ``lower``: the spread of the lower ends, if values are known between two ends; if
    the difference is visible, the median is ``0.20..0.31 ms``, and the range is from the lowest lower end to the
    highest upper end.
    """
    if spread is None:
        return NONE, ""
    lower = lower or spread
    factor, shown_unit = _scale(spread.median, unit)
    decimals = _decimals(spread.median / factor, unit)
    # A far larger maximum needs no more digits than it would have alone.
    most = min(decimals, _decimals(spread.high / factor, unit))
    low, median = _number(lower.low / factor, decimals), _number(spread.median / factor, decimals)
    least = _number(lower.median / factor, decimals)
    high = _number(spread.high / factor, most)
    bound = "≥" if censored else ""
    of_median = "" if median_known else bound
    between = f"{least}.." if least != median else ""
    middle = f"{between}{of_median}{'' if between else ' '}{median} {shown_unit}".strip()
    if spread.n == 1 or (censored and low == high):
        return middle, ""
    return middle, "[±0]" if lower.low == spread.high else f"[{low}..{bound}{high}]"


def percent_spread(found: PercentSpread | None) -> str:
    """``111 ±3 %``, with the digits that the spread leaves standing; of a single repeat without it."""
    if found is None:
        return NONE
    if found.n == 1:
        return f"{_number(found.mean, _decimals(found.mean, '%'))} %"
    # One digit of the spread is enough to know how far to trust the mean.
    decimals = 0 if found.half_range == 0 else min(3, max(0, -math.floor(math.log10(found.half_range))))
    return f"{_number(found.mean, decimals)} ±{_number(found.half_range, decimals)} %"


def interval(comparison: Comparison | None) -> str:
    """``[86.0..91.1]``, in percent; empty without an interval."""
    if comparison is None or comparison.percent is None or comparison.interval is None:
        return ""
    decimals = _decimals(comparison.percent, "%")
    high = "∞" if math.isinf(comparison.interval.high) else _number(comparison.interval.high, decimals)
    low = _number(comparison.interval.low, decimals) if comparison.interval.low else "0"
    return f"[{low}..{high}]"


def percent(comparison: Comparison | None) -> str:
    """``88.5 %``, ``≤ 88.5 %``, or ``90..120 %`` of what is known between two ends, where that is to be seen. What
    belongs to it is `interval`."""
    if comparison is None or comparison.percent is None:
        return NONE
    least, most = comparison.between or (comparison.percent, comparison.percent)
    shown = [_number(end, _decimals(most, "%")) for end in (least, most)]
    if comparison.between and shown[0] != shown[1]:
        return f"{shown[0]}..{shown[1]} %"
    return f"{comparison.bound} {_number(comparison.percent, _decimals(comparison.percent, '%'))} %".lstrip()


def of_before(comparison: Comparison) -> str:
    """``88.5 % of before``; far from it ``1/49 of before``, ``12 times before``: nobody thinks of these in percent, and
    “2 %, better” reads as a change of 2 %."""
    found = comparison.percent
    if found is None:
        return NONE
    if 0 < found <= 10:
        return f"1/{_number(100 / found, _decimals(round(100 / found), ''))} of before"
    if found >= 100 + TIMES_FROM_PERCENT:
        return f"{digits(found / 100, 2)} times before"
    return f"{_number(found, _decimals(found, '%'))} % of before"


def p_value(p: float | None) -> str:
    """``0.008``; what is smaller than a thousandth is only said to be so."""
    if p is None:
        return NONE
    return "< 0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def capital(text: str) -> str:
    """``text`` with a capital at its beginning; the rest is unchanged."""
    return text[:1].upper() + text[1:]


def count(number: int, noun: str) -> str:
    """``1 repeat``, ``10 repeats``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def quantity(name: str, value: float) -> tuple[str, str]:
    """A number whose name ends in its unit, as name and figure: ``cpu_ns`` 33327359 is ``cpu``, ``33.3 ms``.

    Any other number keeps its name and, if whole, all its digits.
    """
    for suffix, factor, unit in _SUFFIXES:
        if name.endswith(suffix):
            return name.removesuffix(suffix), figure(value * factor, unit)
    return name, f"{value:,}" if isinstance(value, int) else digits(value, 4)


def parameter(value: Scalar) -> str:
    """A value of the matrix for people: numbers in groups of three, yes or no, and the title of a part of ours."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value in STANDS_FOR:
        return f"{value} ({STANDS_FOR[value]})"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.10g}" if isinstance(value, float) else str(value)


def _scale(value: float, unit: str) -> tuple[float, str]:
    """What to divide by, and the unit that then stands: SI prefixes for bytes, smaller units for short times."""
    if unit == "s":
        return next((factor, name) for least, factor, name in _TIMES if abs(value) >= least) if value else (1.0, "s")
    if unit not in _BYTES:
        return 1.0, "" if unit == "1" else unit
    factor, prefix = next(((f, p) for f, p in _SCALES if abs(value) >= f), (1.0, ""))
    return factor, prefix + _BYTES[unit]


def _decimals(value: float, unit: str) -> int:
    """Places after the point that leave ``SIGNIFICANT`` digits; none for whole counts."""
    if value == 0 or (value == int(value) and unit not in ("s", "ms", "%") and unit not in _BYTES):
        return 0
    return max(0, SIGNIFICANT - 1 - math.floor(math.log10(abs(value))))


def _number(value: float, decimals: int) -> str:
    return f"{value:,.{min(decimals, 9)}f}"
