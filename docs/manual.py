"""Writes the manual page dnsrig(1) in roff, from the help of the commands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

ONE_LINE = "test rig for DNS servers: real servers, real traffic, repeated, with the cause of odd results"
HEAD = """\
.\\" Written by `make docs` from the code.
.TH DNSRIG 1 "" "dnsrig {version}" "User Commands"
.SH NAME
dnsrig \\- {one_line}
.SH SYNOPSIS
.B dnsrig
.I COMMAND
.RI [ ARGUMENT ...]
"""


def page(
    groups: Mapping[str, Sequence[str]],
    leaves: Mapping[str, Any],
    engine: Mapping[str, str],
    statuses: Mapping[str, Mapping[int, str]],
    version: str,
) -> str:
    """``leaves``: command, perhaps of two words -> its object; ``engine``: command of the engine -> its summary."""
    lines = [HEAD.format(version=version, one_line=ONE_LINE)]
    for group, names in groups.items():
        lines.append(f".SH {group.upper()}")
        for leaf in (leaf for name in names for leaf in leaves if leaf.split()[0] == name):
            lines += _engine(leaf, engine[leaf]) if leaf in engine else _command(leaf, leaves[leaf])
    lines += [".SH EXIT STATUS", *_statuses(statuses)]
    lines += [".SH SEE ALSO", "The documentation in docs/ of the repository."]
    return "\n".join(lines) + "\n"


def _engine(name: str, summary: str) -> Iterator[str]:
    yield from (
        f'.SS "{escaped(f"dnsrig {name}")}"',
        escaped(summary),
        ".br",
        f"See \\fBdnsrig {escaped(name)} \\-\\-help\\fR.",
    )


def _command(name: str, command: Any) -> Iterator[str]:
    yield f'.SS "{escaped(f"dnsrig {name}")}"'
    for number, paragraph in enumerate((command.help or "").split("\n\n")):
        if paragraph.startswith(" "):
            yield from (".RS", ".nf", *(escaped(line[4:]) for line in paragraph.splitlines()), ".fi", ".RE")
        else:
            yield from ([".PP"] if number else [])
            yield escaped(paragraph)
    for parameter in command.params:
        if not getattr(parameter, "hidden", False):
            yield from (".TP", _name(parameter), escaped(getattr(parameter, "help", "") or ""))


def _name(parameter: Any) -> str:
    if parameter.param_type_name != "option":
        return f"\\fI{escaped((parameter.metavar or parameter.name).upper())}\\fR"
    names = ", ".join(f"\\fB{escaped(name)}\\fR" for name in [*parameter.opts, *parameter.secondary_opts])
    return f"{names} \\fI{escaped(parameter.metavar)}\\fR" if parameter.metavar else names


def _statuses(statuses: Mapping[str, Mapping[int, str]]) -> Iterator[str]:
    for command, meanings in statuses.items():
        yield from (".PP", f"\\fB{escaped(command)}\\fR")
        for status, meaning in meanings.items():
            yield from (".TP", str(status), escaped(meaning))


def escaped(text: str) -> str:
    """Plain text for roff: a backslash, a dash and a dot at the beginning of a line have a meaning there."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE).replace('"', "\\(dq")
