"""Text from outside, made fit to be shown (names, logs, parameters, what other programs say), and numbers in
sentences."""

from __future__ import annotations

import math
import unicodedata

LONGEST_TEXT = 2000
"""Characters shown of any one text from outside: a log line has no end that we could trust."""


def visible(text: str) -> str:
    """``text`` with everything that acts instead of being seen written out, as ``\\x1b`` or ``\\u202e``.

    That is: control characters, marks that turn the direction of writing, other invisible format characters,
    line separators and lone surrogates. Longer text is cut, and says so.
    """
    cut = text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}… ({len(text):,} characters)"
    return "".join(_escaped(char) if _acts(char) else char for char in cut)


def digits(value: float, significant: int = 3) -> str:
    """``value`` with at least so many significant digits, as people write it: ``2,684``, ``0.0123``.

    There is never an exponent. Zeros at the end of a fraction are left out. What is smaller than 10 to the power -9 is
    shown as 0.
    """
    if not value or not math.isfinite(value):
        return f"{value:g}"
    places = max(0, significant - 1 - math.floor(math.log10(abs(value))))
    shown = f"{value:,.{min(places, 9)}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def _acts(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
