"""named.conf as named prints its defaults."""

from __future__ import annotations

import re
from collections.abc import Iterator

TOKEN = re.compile(r'"[^"]*"|/\*.*?\*/|(?:#|//)[^\n]*|[{};]|(?:(?!//|/\*)[^\s{};"#])+', re.DOTALL)
COMMENTS = ("#", "//", "/*")
OPTIONS = "options"
"""The block whose settings are named without it."""
MOST_DEPTH = 20


def printed_defaults(text: str) -> dict[str, str]:
    """Settings from BIND's ``block { name value; };`` by block and name, and settings of ``options`` by name alone. If
    a block has a name several times, the value contains all values.

    >>> printed_defaults('options { # a comment\\n port 53; also { 1; 2; }; }; dnssec-policy "default" { keys { }; };')
    {'port': '53', 'also': '{ 1; 2; }', 'dnssec-policy "default" keys': '{ }'}
    """
    words = (token for token in TOKEN.findall(text) if not token.startswith(COMMENTS))
    found: dict[str, str] = {}
    for block in _statements(" ".join(word.split()) for word in words):
        inner = next((part for part in block if not isinstance(part, str)), [])
        head = " ".join(part for part in block if isinstance(part, str))
        if inner and all(len(entry) == 1 for entry in inner):
            found[head] = _text([inner])
            continue
        for first, *rest in inner:
            name = _text([first]) if head == OPTIONS else f"{head} {_text([first])}"
            found[name] = f"{found[name]}; {_text(rest)}" if name in found else _text(rest)
    return found


Statement = list["str | list[Statement]"]
"""A statement: words, and blocks of statements in braces."""


def _text(parts: Statement) -> str:
    return " ".join(
        part if isinstance(part, str) else " ".join(["{", *(f"{_text(each)};" for each in part), "}"]) for part in parts
    )


def _statements(tokens: Iterator[str], depth: int = 0) -> list[Statement]:
    """The statements up to the brace that ends the block, or to the end."""
    found: list[Statement] = []
    parts: Statement = []
    for token in tokens:
        if token == "{" and depth < MOST_DEPTH:
            parts.append(_statements(tokens, depth + 1))
        elif token in (";", "}"):
            found += [parts] if parts else []
            parts = []
            if token == "}":
                break
        else:
            parts.append(token)
    return found
