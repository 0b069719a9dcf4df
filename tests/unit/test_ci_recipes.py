"""The recipes for CI are YAML, and dnsrig accepts the commands in them."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # Dask requires it
from typer.main import get_command

from dnsrig.cli import _app
from dnsrig.comparison import thresholds
from dnsrig.experiment import model
from dnsrig.metrics import all_metrics

FOLDER = Path(__file__).parents[2] / "docs/how-to/ci"
RECIPES = sorted(FOLDER.glob("*.yml"))
SHELL = {"|", "||", "&&", ";", ">", ">>"}


def texts(value: Any) -> Iterator[str]:
    """Every text in a document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from texts(inner)


def commands(recipe: Path) -> list[list[str]]:
    """The words of each command of dnsrig, up to the first operator of the shell."""
    lines = (line.strip() for text in texts(yaml.safe_load(recipe.read_text())) for line in text.splitlines())
    split = (shlex.shlex(line, posix=True, punctuation_chars=True) for line in lines if line.startswith("dnsrig "))
    return [list(itertools.takewhile(lambda word: word not in SHELL, words))[1:] for words in split]


def values(words: list[str], option: str) -> list[str]:
    return [value for name, value in itertools.pairwise(words) if name == option]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)
def test_the_command_line_accepts_each_command(recipe: Path) -> None:
    found = commands(recipe)
    assert [words[0] for words in found] == ["check", "run", "compare"]
    for name, *arguments in found:
        get_command(_app.application()).commands[name].make_context(name, arguments)  # type: ignore[attr-defined]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)
def test_the_experiment_has_two_variants_and_the_metric_of_the_rule(recipe: Path) -> None:
    _, run, compare = commands(recipe)
    document = model.load(model.find(run[1]), "quick", values(run, "--set"))
    assert model.count(document) == 2, "the base and the new commit"
    (rule,) = values(compare, "--fail-if")
    assert f"{thresholds.parse(rule).metric}_s" in all_metrics()
