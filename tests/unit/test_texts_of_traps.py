"""What traps and drivers say in words: each part that is set as code begins and ends, and holds no space at its
edges."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import dnsrig

FILES = sorted(
    path for folder in ("traps", "servers") for path in (Path(dnsrig.__file__).parent / folder).rglob("*.py")
)
CODE = re.compile(r"`([^`]*)`")


def texts(tree: ast.AST) -> Iterator[str]:
    """Each text, with `{}` for what is put into it. Those that stand beside each other in the code are one."""
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.value


def wrong(text: str) -> list[str]:
    """The parts in code that are empty or have space at their edges, and a mark that begins one without an end."""
    prose = re.sub(r"``.+?``", "", text, flags=re.DOTALL)
    return [part for part in CODE.findall(prose) if part.strip() != part or not part] + ["`"] * (
        "`" in CODE.sub("", prose)
    )


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_code_in_texts_begins_and_ends(file: Path) -> None:
    assert [(part, text) for text in texts(ast.parse(file.read_text())) for part in wrong(text)] == []


@pytest.mark.parametrize(
    ("text", "expected"), [("`a` b", 0), ("`a b", 1), ("`a` b ` c`", 1), ("` a`", 1), ("``a`` is", 0)]
)
def test_what_is_wrong_with_a_text(text: str, expected: int) -> None:
    assert len(wrong(text)) == expected
