"""Shares of CPU samples, from folded stacks."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import Plan, build

from dnsrig.runs.profile import PORT_SEARCH_FRAMES, hottest, share
from dnsrig.runs.run import Run

STACKS = {
    "named;connect;__inet_hash_connect;__inet_check_established": 50,
    "named;connect;__inet_hash_connect": 14,
    "named;read": 20,
    "named;parse;read": 16,
}
frames = st.lists(st.sampled_from("abcde"), min_size=1, max_size=5).map(";".join)
stacks = st.dictionaries(frames, st.integers(1, 1000), min_size=1, max_size=8)


def test_a_share_counts_each_sample_once() -> None:
    assert share(STACKS, PORT_SEARCH_FRAMES) == pytest.approx(0.64)
    assert share(STACKS, {"read"}) == pytest.approx(0.36)
    assert share(STACKS, {"rea"}) == 0, "whole names only"


def test_the_hottest_frame_is_by_what_it_did_itself() -> None:
    assert hottest(STACKS) == ("__inet_check_established", 0.5)
    assert hottest({"main;a": 3, "main;b": 3}) == ("a", 0.5), "of equals the first by name"


@pytest.mark.parametrize("count", ["²", "٣", "-1", "1.5", "", "many"])
def test_a_line_without_a_count_is_left_out(tmp_path: Path, count: str) -> None:
    plan = Plan(servers=["bind@system"], zones=[1], repeats=1, samples=False, stacks={"main;connect": 7})
    (trial,) = Run.open(build(tmp_path / "run", plan)).trials
    with (trial.directory / "profile-secondary.folded").open("a") as file:
        file.write(f"main;read {count}\n")
    assert trial.stacks == {"main;connect": 7}


def test_without_samples_there_is_no_share() -> None:
    assert share({}, PORT_SEARCH_FRAMES) is None
    assert hottest({}) is None
    assert hottest({"main": 0}) is None


@given(stacks)
def test_the_outermost_frame_has_at_least_the_share_of_the_hottest(found: dict[str, int]) -> None:
    hot = hottest(found)
    assert hot is not None
    inclusive = share(found, {hot[0]})
    assert inclusive is not None
    assert 0 < hot[1] <= inclusive <= 1
