"""Reads the defaults that a server prints of itself, as setting -> value."""

from __future__ import annotations

import re
from collections.abc import Iterator

SECTION = re.compile(r"([\w-]+):$")
"""At the beginning of a line: what follows belongs to it."""
LINE = re.compile(r"[ \t]*#?[ \t]*(?P<name>\w[\w.-]*)[ \t]*[=:][ \t]*(?P<value>.*)")
ITEM = re.compile(r"[ \t]*#?[ \t]*- (?P<value>.*)")
"""One more value of the setting before it."""

TOKEN = re.compile(r'"[^"]*"|/\*.*?\*/|(?:#|//)[^\n]*|[{};]|(?:(?!//|/\*)[^\s{};"#])+', re.DOTALL)
COMMENTS = ("#", "//", "/*")
OPTIONS = "options"
"""The block of BIND whose settings need no other name."""
MOST_DEPTH = 20


def of_lines(text: str) -> dict[str, str]:
    """``name=value`` or ``name: value``, a line each, which may be commented out; below ``section:`` with that before
    their names.

    >>> of_lines("# cache-ttl=20\\n")
    {'cache-ttl': '20'}
    >>> of_lines("server:\\n\\tport: 53\\nincoming:\\n#   allow_from:\\n#   - ::1/128\\n#   - 10.0.0.0/8\\n")
    {'server.port': '53', 'incoming.allow_from': '::1/128 10.0.0.0/8'}
    """
    found: dict[str, str] = {}
    section = last = ""
    for line in text.splitlines():
        if head := SECTION.match(line):
            section = f"{head[1]}."
        elif match := LINE.fullmatch(line):
            last = section + match["name"]
            found[last] = match["value"].strip()
        elif last and (item := ITEM.fullmatch(line)):
            found[last] = f"{found[last]} {item['value'].strip()}".strip()
    return found


def of_blocks(text: str) -> dict[str, str]:
    """BIND's ``block { name value; };``: settings by block and name, those of ``options`` by name alone. Of a name that
    a block has several times all values.

    >>> of_blocks('options { # a comment\\n port 53; also { 1; 2; }; }; dnssec-policy "default" { keys { }; };')
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
"""Words, and blocks of statements in braces."""


def _text(parts: Statement) -> str:
    return " ".join(
        part if isinstance(part, str) else " ".join(["{", *(f"{_text(each)};" for each in part), "}"]) for part in parts
    )


def _statements(tokens: Iterator[str], depth: int = 0) -> list[Statement]:
    """Up to the brace that ends the block, or the end."""
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
