"""What `make test` runs of a parametrized test, and what only `make test-full` does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def quick(cases: Iterable[Any], *chosen: Any) -> list[Any]:
    """``cases``, of which those that are not ``chosen`` carry the marker ``full``."""
    every = list(cases)
    assert all(case in every for case in chosen), chosen
    return [case if case in chosen else only_full(case) for case in every]


def only_full(case: Any) -> Any:
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.full)
