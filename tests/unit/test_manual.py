"""The manual page and the completion of shells."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import manual
import pytest

from dnsrig.cli._app import GROUPS, command_line

PAGE = Path(__file__).parents[2] / "docs/reference/dnsrig.1"
START = "import sys; sys.argv[0] = 'dnsrig'; from dnsrig.cli._app import main; main()"


def test_the_manual_page_has_every_group_and_command() -> None:
    text = PAGE.read_text()
    for group, names in GROUPS.items():
        assert f"\n.SH {group.upper()}\n" in text
        for name in names:
            inner = getattr(command_line().commands[name], "commands", {"": None})
            assert all(f'.SS "{manual.escaped(f"dnsrig {name} {sub}".strip())}"' in text for sub in inner)
    assert "dnsrig trial" not in text


@pytest.mark.parametrize(
    ("text", "roff"),
    [
        ("--set a\\b", "\\-\\-set a\\eb"),
        (".hidden\n'quoted'", "\\&.hidden\n\\&'quoted'"),
        ('say "x"', "say \\(dqx\\(dq"),
    ],
)
def test_characters_with_a_meaning_in_roff_are_escaped(text: str, roff: str) -> None:
    assert manual.escaped(text) == roff


@pytest.mark.skipif(shutil.which("man") is None, reason="there is no man")
def test_the_manual_page_renders_without_warnings() -> None:
    command = ["man", "--warnings", "-l", str(PAGE)]
    locale = {**os.environ, "LC_ALL": "C.UTF-8"}
    shown = subprocess.run(command, capture_output=True, text=True, check=True, env=locale)
    assert shown.stderr == "" and "--at-once N" in shown.stdout


@pytest.mark.parametrize(
    ("words", "offered"),
    [("dnsrig comp", {"compare"}), ("dnsrig plan --from-", {"--from-run"}), ("dnsrig run tou", {"tour"})],
)
def test_bash_completes_commands_options_and_experiments(words: str, offered: set[str]) -> None:
    environment = {
        "_DNSRIG_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
        "PYTHONPATH": str(PAGE.parents[2]),
    }
    command = [sys.executable, "-c", START]
    found = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    assert set(found.split()) == offered
