"""Quantities as people type them on the command line: ``250ms``, ``20mbit``, ``0.2%``, ``3MB``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from dnsrig.errors import UsageError

Reader = Callable[[str, str], float]
"""Makes a number of what was typed after an option; raises `UsageError` if that is not possible."""

_QUANTITY = re.compile(r"\s*(\d{1,15}(?:\.\d{1,9})?)\s*([A-Za-z%]*)\s*", re.ASCII)
_TIMES_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_RATES = {"kbit": 1e3 / 8, "mbit": 1e6 / 8, "gbit": 1e9 / 8}
"""Bytes a second, by the names of tc(8)."""
_COUNTS = {"": 1.0, "k": 1e3, "m": 1e6}
_SIZES = {"b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9}
_PERCENT = {"%": 0.01}


def duration_s(text: str, option: str, least_s: float = 0.0, most_s: float = math.inf) -> float:
    """Seconds from ``250ms``, ``5s``, ``2m``."""
    if re.fullmatch(r"\s*\d+(\.\d+)?\s*", text, re.ASCII):
        number = text.strip()
        raise UsageError(f"{option} {number}: the unit is missing", hint=f"write {number}s or {number}ms")
    found = _read(text, option, _TIMES_S, "a time with its unit, e.g. 250ms, 5s, 2m, 1h")
    if not least_s <= found <= most_s:
        raise UsageError(f"{option} {text}", hint=f"a time from {least_s:g}s to {most_s:g}s")
    return found


def rate_bytes_per_s(text: str, option: str) -> float:
    """Bytes a second from ``20mbit``, ``1gbit``."""
    return _read(text, option, _RATES, "a rate with its unit, e.g. 20mbit, 1gbit")


def nbytes(text: str, option: str) -> float:
    """Bytes from ``3MB``; units are powers of ten."""
    return _read(text, option, _SIZES, "a number of bytes with its unit, e.g. 512kB, 3MB")


def count(text: str, option: str) -> float:
    """20000 from ``20k`` or ``20000``."""
    return _read(text, option, _COUNTS, "a number, e.g. 500, 20k, 1.5M")


def share(text: str, option: str) -> float:
    """0.002 from ``0.2%``."""
    return _read(text, option, _PERCENT, "a percentage, e.g. 0.2%")


def all_of(**asked: tuple[str | None, Reader]) -> dict[str, float | None]:
    """Option -> its value, None if it was not given. All options that cannot be read are reported at once."""
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
