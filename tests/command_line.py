"""Commands in the process of a test, and the least experiment that they can be given."""

from __future__ import annotations

import sys

import pytest

from dnsrig.cli import _app


def status(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    """The exit status of `dnsrig` with ``arguments``."""
    monkeypatch.setattr(sys, "argv", ["dnsrig", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        _app.main()
    return int(ended.value.code or 0)


def output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object
) -> tuple[int, str, str]:
    """Exit status, standard output, standard error; long lines of the latter are joined again."""
    code = status(monkeypatch, *arguments)
    said = capsys.readouterr()
    return code, said.out, " ".join(said.err.split())


def experiment(title: str, question: str, repeats: int = 1) -> str:
    """The text of one with five zones, which the matrix may follow."""
    return f"""
title = "{title}"
question = "{question}"
procedure = "transfer"
repeats = {repeats}
limit_s = 10
[hosts.primary]
server = "knot@forky"
[hosts.secondary]
server = "knot@forky"
[dataset]
kind = "tiny-zones"
zones = 5
[matrix]
"""
