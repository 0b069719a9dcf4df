"""Markdown to paste into an issue or a pull request (GitHub Flavored Markdown, https://github.github.com/gfm/).

What comes from a run is untrusted: a server, a zone or an error may be called anything. It is in a code span unless
it is words and figures only. In a code span nothing is a link, a mention of somebody, HTML or an emoji.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from dnsrig.report import figures
from dnsrig.text import visible

_WORDS = re.compile(r"(?:[^\W_]|(?<=[^\W_])_(?=[^\W_])|[ .,;?'%±≥≤∞–−×/()\[\]-]|:(?= ))*")
_ACTS = re.compile(r"www\.|\]\(|\]\[|\bgh-\d", re.IGNORECASE)
"""What is made a link although it consists of words."""
_TICKS = re.compile(r"`+")
_PIPE = re.compile(r"(\\*)\|")


def text(value: str) -> str:
    """``value`` as it is, or in a code span where it has anything that could act."""
    shown = visible(value).strip()
    return shown if _WORDS.fullmatch(shown) and not _ACTS.search(shown) else code(shown)


def code(value: str) -> str:
    """``value`` in a code span: between more backticks than it has in a row."""
    shown = visible(value).strip()
    if not shown:
        return figures.NONE
    fence = "`" * (1 + max((len(ticks) for ticks in _TICKS.findall(shown)), default=0))
    space = " " if "`" in (shown[0], shown[-1]) else ""
    return f"{fence}{space}{shown}{space}{fence}"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], numbers_from: int) -> list[str]:
    """Lines of a table; columns from ``numbers_from`` on are set to the right. All cells are Markdown already."""
    rules = [":---" if number < numbers_from else "---:" for number in range(len(columns))]
    return [_row(columns), _row(rules), *(_row(row) for row in rows)]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(_PIPE.sub(_escaped, cell) for cell in cells)} |"


def _escaped(pipe: re.Match[str]) -> str:
    """A pipe behind an odd number of backslashes ends no cell, also in a code span: readers of tables differ in whether
    one backslash takes the next one's meaning."""
    return "\\" * (len(pipe[1]) + 1 + len(pipe[1]) % 2) + "|"
