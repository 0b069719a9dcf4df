"""A resolver whose servers had no CPU for a moment fails no test; one that judges wrongly does."""

from __future__ import annotations

from collections.abc import Iterable

import asking
import pytest
from asking import Outcome

GOOD, FAILED = Outcome("NOERROR", 1), Outcome("SERVFAIL", 0)
NAMES = [f"name{number}.test" for number in range(100)]


class Resolver:
    """Fails ``names`` the first ``times`` times that it is asked for them."""

    def __init__(self, names: Iterable[str], times: int) -> None:
        self.left = dict.fromkeys(names, times)
        self.asked: list[list[str]] = []

    async def __call__(self, names: Iterable[str], with_do: bool, limits_s: dict[str, float]) -> dict[str, Outcome]:
        self.asked.append([*names])
        found = {name: FAILED if self.left.get(name) else GOOD for name in self.asked[-1]}
        self.left = {name: times - 1 for name, times in self.left.items()}
        return found


@pytest.mark.parametrize(("failing", "times", "left"), [(5, 1, 0), (5, 2, 5), (6, 1, 6), (0, 0, 0)])
def test_a_few_unwanted_failures_are_asked_for_once_more(
    failing: int, times: int, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolver = Resolver(NAMES[:failing], times)
    monkeypatch.setattr(asking, "_ask", resolver)
    found = asking.ask(dict.fromkeys(NAMES, GOOD), with_do=False)
    assert [name for name in NAMES if found[name] != GOOD] == NAMES[:left]
    assert len(resolver.asked) <= 2


def test_a_failure_that_is_wanted_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = Resolver(NAMES[:1], 1)
    monkeypatch.setattr(asking, "_ask", resolver)
    wanted = dict.fromkeys(NAMES, GOOD) | {NAMES[0]: FAILED}
    assert asking.ask(wanted, with_do=False) == wanted
    assert resolver.asked == [NAMES]
