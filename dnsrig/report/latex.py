"""Text for LaTeX, with everything that acts there written out: captions hold names that servers and users chose."""

from __future__ import annotations

import re

from dnsrig.text import visible

_ACTS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\char34{}",
    "`": r"\textasciigrave{}",
    **{char: f"\\{char}" for char in "{}$&#_%"},
}
_SIGNS = {
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "×": r"$\times$",
    "±": r"$\pm$",
    "∞": r"$\infty$",
    "−": "$-$",
    "→": r"$\rightarrow$",
    "←": r"$\leftarrow$",
    "µ": r"$\mu$",
    "μ": r"$\mu$",
    "½": "1/2",
    "°": r"$^\circ$",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
    "“": "``",
    "”": "''",
    "‘": "`",
    "’": "'",
    "\N{NO-BREAK SPACE}": "~",
}
_CODE = re.compile(r"`([^`]+)`")
LETTERS_BELOW = 0x180
"""Latin letters up to here are known to every LaTeX; others need a font that we cannot choose."""


def latex(text: str) -> str:
    """``text`` on one line, fit for the body of a document; words in backticks are set as code."""
    # A character at a time, because a caption may be longer than one text from outside.
    parts = _CODE.split("".join(map(visible, text)))
    return "".join(rf"\texttt{{{_plain(part)}}}" if number % 2 else _plain(part) for number, part in enumerate(parts))


def _plain(text: str) -> str:
    return "".join(_ACTS.get(char) or _SIGNS.get(char) or _letter(char) for char in text)


def _letter(char: str) -> str:
    known = ord(char) < 0x80 or (char.isalpha() and ord(char) < LETTERS_BELOW)
    return char if known else f"[U+{ord(char):04X}]"
