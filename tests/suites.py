"""What `make test` runs of a parametrized test, and what only `make test-full` does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Any, TypeVar

import pytest
from hypothesis import settings

Test = TypeVar("Test", bound=Callable[..., None])


def quick(cases: Iterable[Any], *chosen: Any) -> list[Any]:
    """``cases``, of which those that are not ``chosen`` carry the marker ``full``."""
    every = list(cases)
    assert all(case in every for case in chosen), chosen
    return [case if case in chosen else only_full(case) for case in every]


def examples(quick: int, full: int) -> int:
    """How many examples a property gets."""
    return full if settings.get_current_profile_name() == "thorough" else quick


def in_turn(cases: Sequence[Any], a_day: int) -> list[Any]:
    """``cases``, of which those whose turn is not today carry the marker ``full``."""
    today = turns(len(cases), a_day, date.today().toordinal())
    return [case if number in today else only_full(case) for number, case in enumerate(cases)]


def on_day(day: int, of: int) -> Callable[[Test], Test]:
    """Put the marker ``full`` on a test that takes half a minute, except on one ``of`` several days, counted from 0."""
    return (lambda test: test) if date.today().toordinal() % of == day else pytest.mark.full


def turns(cases: int, a_day: int, day: int) -> set[int]:
    """Numbers of the cases whose turn it is. After some days, each case has had its turn."""
    return {(day * a_day + number) % cases for number in range(a_day)}


def only_full(case: Any) -> Any:
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.full)


def first_of_each_worker(long: Sequence[Any], items: Sequence[Any], workers: int) -> list[Any]:
    """``items`` in an order in which each worker begins with its share of the ``long`` ones, so that none of them is
    left for the end. At the start pytest-xdist (`--dist worksteal`) gives each worker the next part of the list: what
    is left, divided by the number of workers that have none yet."""
    apart = set(long)
    others = [item for item in items if item not in apart]
    ordered: list[Any] = []
    for at in range(workers):
        first = long[at::workers]
        more = max(0, (len(items) - len(ordered)) // (workers - at) - len(first))
        ordered += [*first, *others[:more]]
        del others[:more]
    return ordered
