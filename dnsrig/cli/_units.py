"""Quantities as people type them on the command line: ``250ms``, ``20mbit``, ``0.2%``, ``3MB``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from dnsrig.errors import UsageError

Reader = Callable[[str, str], float]
"""From what was typed and the option's name to a number; `UsageError` where it is none."""

_QUANTITY = re.compile(r"\s*(\d{1,15}(?:\.\d{1,9})?)\s*([A-Za-z%]*)\s*", re.ASCII)
_TIMES_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_RATES = {"kbit": 1e3 / 8, "mbit": 1e6 / 8, "gbit": 1e9 / 8}
"""In bytes a second: tc(8)'s names."""
_SIZES = {"b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9}
_PERCENT = {"%": 0.01}


def duration_s(text: str, option: str) -> float:
    """``250ms``, ``30min``."""
    return _read(text, option, _TIMES_S, "a time with its unit, e.g. 250ms, 30min")


def rate_bytes_per_s(text: str, option: str) -> float:
    """``20mbit``, ``1gbit``."""
    return _read(text, option, _RATES, "a rate with its unit, e.g. 20mbit, 1gbit")


def nbytes(text: str, option: str) -> float:
    """``3MB``: powers of ten."""
    return _read(text, option, _SIZES, "bytes with their unit, e.g. 512kB, 3MB")


def share(text: str, option: str) -> float:
    """``0.2%``, as 0.002."""
    return _read(text, option, _PERCENT, "a percentage, e.g. 0.2%")


def all_of(**asked: tuple[str | None, Reader]) -> dict[str, float | None]:
    """Each option read by its reader; None where it was not given. All that cannot be read are told at once."""
    found: dict[str, float | None] = {}
    wrong: list[UsageError] = []
    for name, (text, reader) in asked.items():
        try:
            found[name] = None if text is None else reader(text, f"--{name}")
        except UsageError as error:
            wrong.append(error)
    if wrong:
        hints = dict.fromkeys(str(error.hint) for error in wrong)
        raise UsageError(", ".join(map(str, wrong)), hint="; ".join(hints))
    return found


def _read(text: str, option: str, units: dict[str, float], hint: str) -> float:
    match = _QUANTITY.fullmatch(text)
    factor = units.get(match[2].lower()) if match else None
    value = float(match[1]) * factor if match and factor is not None else math.nan
    if not math.isfinite(value):
        raise UsageError(f"{option} {text!r}", hint=hint)
    return value
