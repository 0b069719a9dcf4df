"""In which order tests start."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from suites import first_of_each_worker


@given(st.integers(0, 400), st.integers(0, 30), st.integers(1, 9))
def test_each_worker_begins_with_its_share_of_the_long_tests(short: int, long: int, workers: int) -> None:
    items = list(range(short + long))
    first = items[::7][:long]
    ordered = first_of_each_worker(first, items, workers)
    assert sorted(ordered) == items
    if len(items) // workers <= len(first) // workers:
        return  # too few others to fill the parts
    left, begun = ordered, 0
    for at in range(workers):  # as pytest-xdist divides them
        part, left = left[: len(left) // (workers - at)], left[len(left) // (workers - at) :]
        mine = [item for item in part if item in first]
        assert part[: len(mine)] == mine and len(mine) == len(first[at::workers])
        begun += len(mine)
    assert begun == len(first)
