"""The settings in force on the server under test: what it shows of those that its variant names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from subprocess import TimeoutExpired

from dnsrig.procedures.context import TrialContext
from dnsrig.procedures.context.workspace import ServerFailed
from dnsrig.servers import driver

SHOW_LIMIT_S = 60.0
"""A configuration of 100,000 zones is read in seconds."""
LINE = re.compile(r"(?:^|[{};])\s*([\w.-]+)(?:\[default\])?([\w.-]*)[ \t]*[ \t:=][ \t]*([^{};\n]*)", re.MULTILINE)


def look(context: TrialContext) -> dict[str, str]:
    """Setting -> value, of those that the experiment names for the server under test; empty where nothing shows
    them."""
    name = context.spec.subject
    placement = context.servers.placements[name]
    command = driver(placement.source.kind).settings_command
    if not command or not placement.settings:
        return {}
    words = [word.format(directory=placement.seen_directory, state=placement.seen_state) for word in command]
    try:
        return shown(context.servers.printed(name, words, limit_s=SHOW_LIMIT_S), placement.settings)
    except (ServerFailed, TimeoutExpired, OSError):
        return {}


def shown(text: str, names: Iterable[str]) -> dict[str, str]:
    """The first value of each of ``names`` in ``text``, in which servers write a setting in several ways.

    >>> shown("a = 1\\nb: 2\\nt[default].c = 3\\nzone x { d 4; };\\ne { f 5; };", ["a", "b", "t.c", "d", "e"])
    {'a': '1', 'b': '2', 't.c': '3', 'd': '4'}
    """
    found: dict[str, str] = {}
    for match in LINE.finditer(text):
        if value := match[3].strip():  # a block has none
            found.setdefault(match[1] + match[2], value)
    # NSD has no word for the pattern that a setting stands in.
    return {name: found[key] for name in names if (key := name.removeprefix("pattern.")) in found}
