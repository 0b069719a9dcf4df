"""Text from outside, such as names, logs, parameters and output of other programs, made safe to show; and numbers in
sentences."""

from __future__ import annotations

import math
import unicodedata

LONGEST_TEXT = 2000
"""Most characters that are shown of one text from outside."""


def visible(text: str) -> str:
    """``text`` with invisible characters written out, such as ``\\x1b`` or ``\\u202e``.

    These are control characters, marks that change the direction of writing, other invisible format characters, line
    separators and lone surrogates. Longer text is cut, with a remark.
    """
    cut = text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}… ({len(text):,} characters)"
    return "".join(_escaped(char) if _acts(char) else char for char in cut)


def digits(value: float, significant: int = 3) -> str:
    """``value`` with at least ``significant`` digits, as people write it: ``2,684``, ``0.0123``.

    There is never an exponent. Zeros at the end of a fraction are left out. A number below 10 to the power -9 is shown
    as 0.
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
