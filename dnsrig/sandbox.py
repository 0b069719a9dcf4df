"""Renders templates of configurations in Jinja's sandbox.

`environment` is for dnsrig's own templates. A template of the user is rendered by `render`, in a process of its own: it
has limits for time, memory and output, and runs as nobody if dnsrig is root. All variables are plain data, so a
template cannot call anything of dnsrig.

This file is also the program of that process, so it imports nothing of dnsrig before `render`.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOBODY = 65534
CPU_LIMIT_S = 60
MEMORY_LIMIT_BYTES = 4 << 30
OUTPUT_LIMIT_BYTES = 256 << 20
"""A configuration of a million zones has some 100 MB."""
NAME = "<template>"
"""Name of the template in a traceback."""
_OF_JINJA = {"loop", "caller", "varargs", "kwargs", "self"}
"""Names that Jinja defines inside loops and macros."""


def environment() -> jinja2.Environment:
    """An environment in which an undefined name is an error, and a tag takes its whole line."""
    return ImmutableSandboxedEnvironment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )


class TemplateError(Exception):
    """What is wrong with a template, and in which line; 0: the line is not known."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.reason, self.line = reason, line


def names(text: str) -> dict[str, int]:
    """The variables that a template uses -> the line of the first use.

    Nothing is computed: not even constants, which Jinja's own search for variables would multiply out. Raises
    TemplateError if it is not a template, or if it takes in other files.
    """
    made = environment()
    try:
        tree = made.parse(text)
    except jinja2.TemplateSyntaxError as error:
        raise TemplateError(error.message or "it is not a template", error.lineno) from error
    except RecursionError as error:
        raise TemplateError("it is nested too deeply") from error
    for tag in tree.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)):
        raise TemplateError("a template cannot take in other files", tag.lineno)
    known = {*made.globals, *_OF_JINJA, *(macro.name for macro in tree.find_all(nodes.Macro))}
    found = list(tree.find_all(nodes.Name))
    known |= {name.name for name in found if name.ctx != "load"}
    lines: dict[str, int] = {}
    for name in found:
        if name.name not in known:
            lines[name.name] = min(name.lineno, lines.get(name.name, name.lineno))
    return lines


def render(text: str, variables: Mapping[str, Any]) -> str:
    """Render a template of the user with ``variables``, which JSON can express. Raises TemplateError."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as output:
        given.write(json.dumps({"text": text, "variables": variables}).encode())
        given.seek(0)
        command = [sys.executable, "-P", __file__]
        try:
            ended = subprocess.run(
                command, stdin=given, stdout=output, stderr=subprocess.DEVNULL, timeout=4 * CPU_LIMIT_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise TemplateError(f"rendering it took longer than {4 * CPU_LIMIT_S} s") from None
        output.seek(0)
        answer = output.read()
    try:
        found = json.loads(answer)
    except ValueError:
        limits = f"{CPU_LIMIT_S} s, {MEMORY_LIMIT_BYTES >> 30} GiB of memory or {OUTPUT_LIMIT_BYTES >> 20} MiB of text"
        raise TemplateError(
            f"rendering it ended with status {ended.returncode}: it may need more than {limits}"
        ) from None
    if "text" not in found:
        raise TemplateError(found["error"], found["line"])
    return str(found["text"])


def _child() -> dict[str, Any]:
    """Render what standard input has, and return what `render` reads."""
    given = json.load(sys.stdin)
    try:
        return {"text": environment().from_string(given["text"]).render(given["variables"])}
    except Exception as error:
        steps = traceback.extract_tb(error.__traceback__)
        line = next((step.lineno for step in reversed(steps) if step.filename == NAME), 0)
        return {"error": (str(error) or type(error).__name__)[:500], "line": getattr(error, "lineno", line)}


def _give_up_rights() -> None:
    # What Python and Jinja import when they first need it: nobody may be unable to read their files.
    for name in ("jinja2.debug", "pprint", "textwrap", "urllib.parse"):
        importlib.import_module(name)
    environment().from_string(r'{{ "\n" }}{% for a in [1] %}{{ a | tojson }}{% endfor %}').render()
    for limit, value in (
        (resource.RLIMIT_CPU, CPU_LIMIT_S),
        (resource.RLIMIT_AS, MEMORY_LIMIT_BYTES),
        (resource.RLIMIT_FSIZE, OUTPUT_LIMIT_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (value, value))
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)


if __name__ == "__main__":
    _give_up_rights()
    json.dump(_child(), sys.stdout)
