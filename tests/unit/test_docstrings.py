"""Examples in docstrings: each shows what the code does."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import dnsrig

PACKAGE = Path(dnsrig.__file__).parent
WITH_EXAMPLES = sorted(
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_an_example_prints_what_stands_below_it(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted > 0 and found.failed == 0
