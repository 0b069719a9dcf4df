from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from drawn import as_it_was
from html_facts import read
from hypothesis import given
from hypothesis import strategies as st
from synthetic import Plan, build

from dnsrig import report
from dnsrig.report import svg
from dnsrig.report.charts import _look, flame_graph
from dnsrig.report.charts._flames import LEAST_PERCENT, MOST_DEPTH, PLAIN, Frame, label, layout, panel
from dnsrig.report.charts.flame_graph import in_words, is_searching
from dnsrig.runs.run import Run

SEARCH = "[unknown];connect;do_syscall_64;inet_stream_connect;__inet_hash_connect"
STACKS = {
    f"{SEARCH};__inet_check_established": 500,
    SEARCH: 140,
    "[unknown];connect;do_syscall_64;inet_stream_connect;tcp_connect": 160,
    "[unknown];isc__nm_udp_send;sendmsg": 120,
    "[unknown];dns_name_fromwire": 76,
    "[unknown];too_narrow": 4,
}


def test_frames_lie_on_what_called_them() -> None:
    frames = layout(STACKS)
    assert frames[0] == Frame(("[unknown]",), 0.0, 100.0)
    by_name = {frame.name: frame for frame in frames}
    assert (by_name["connect"].start, by_name["connect"].end) == pytest.approx((0, 80))
    assert (by_name["__inet_check_established"].start, by_name["__inet_check_established"].end) == pytest.approx(
        (0, 50)
    )
    assert (by_name["tcp_connect"].start, by_name["tcp_connect"].end) == pytest.approx((64, 80))
    assert "too_narrow" not in by_name


def test_the_search_for_a_port_and_all_on_it_is_told_apart() -> None:
    searching = {frame.name for frame in layout(STACKS) if is_searching(frame)}
    assert searching == {"__inet_hash_connect", "__inet_check_established"}
    on_it = {frame.name for frame in layout({"main;inet_csk_get_port;_raw_spin_lock": 1}) if is_searching(frame)}
    assert on_it == {"inet_csk_get_port", "_raw_spin_lock"}


def test_words_say_what_is_drawn() -> None:
    assert in_words(STACKS) == (
        "of 1,000 samples, 64.0 % in the search for a free port; "
        "the hottest frame by itself is __inet_check_established with 50.0 %"
    )
    assert in_words({}) == "no samples"


def test_endless_stacks_end() -> None:
    assert max(frame.depth for frame in layout({";".join(["f"] * 10_000): 1})) == MOST_DEPTH - 1


stacks = st.dictionaries(
    st.lists(st.sampled_from("abcd"), min_size=1, max_size=6).map(";".join), st.integers(0, 1000), max_size=20
)


@given(stacks)
def test_frames_stay_inside_their_caller_and_beside_each_other(found: dict[str, int]) -> None:
    frames = layout(found)
    total = sum(found.values())
    for depth in range(7):
        level = [frame for frame in frames if frame.depth == depth]
        assert all(left.end <= right.start + 1e-9 for left, right in pairwise(level))
    for frame in frames:
        assert frame.end - frame.start >= LEAST_PERCENT - 1e-9
        below = [f for f in frames if f.depth == frame.depth - 1]
        assert not frame.depth or any(f.start - 1e-9 <= frame.start and frame.end <= f.end + 1e-9 for f in below)
    outermost = {f.name: f.end - f.start for f in frames if f.depth == 0}
    for name, width in outermost.items():
        samples = sum(count for stack, count in found.items() if stack.split(";")[0] == name)
        assert width == pytest.approx(100 * samples / total)


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Run:
    plan = Plan(servers=["bind@system", "knot@system"], zones=[20], repeats=3, stacks=STACKS)
    return Run.open(build(tmp_path_factory.mktemp("profiled") / "run", plan))


def test_one_picture_a_variant_the_first_in_sight(profiled: Run) -> None:
    first, second = flame_graph.draw(profiled)
    assert first.group == ""
    assert first.title.startswith("server=bind@system zones=20. Repeat ")
    assert "64.0 % in the search for a free port" in first.title
    assert second.group == "server=knot@system zones=20"


def test_of_the_repeats_with_stacks_the_median_is_drawn(profiled: Run) -> None:
    for variant in profiled.manifest.variants:
        times = {t.time_s: t.record.spec.repeat for t in profiled.of_variant(variant.id)}
        median = times[sorted(times, key=lambda time_s: time_s or 0)[1]]
        assert any(drawing.name == f"{variant.id}-{median:02d}" for drawing in flame_graph.draw(profiled))


def test_a_repeat_without_stacks_is_passed_over(tmp_path: Path) -> None:
    plan = Plan(servers=["bind@system"], zones=[20], repeats=3, stacks=STACKS)
    run = Run.open(build(tmp_path / "run", plan))
    (drawn,) = flame_graph.draw(run)
    chosen = next(t for t in run.trials if drawn.name.endswith(f"-{t.record.spec.repeat:02d}"))
    (chosen.directory / "profile-secondary.folded").unlink()
    (other,) = flame_graph.draw(Run.open(tmp_path / "run"))
    assert other.name != drawn.name


def test_the_host_under_test_is_named(tmp_path: Path) -> None:
    plan = Plan(servers=["bind@system"], zones=[20], repeats=1, stacks=STACKS, subject="primary")
    assert "CPU time of the primary" in flame_graph.caption(Run.open(build(tmp_path / "run", plan)))


def test_a_run_without_profiles_has_no_flame_graph(run: Run) -> None:
    assert not flame_graph.applies(run)


def test_the_drawing_has_the_names_and_only_colours_of_the_page(profiled: Run) -> None:
    drawn = svg.render(flame_graph.draw(profiled)[0].chart)
    facts = read(drawn)
    assert "__inet_hash_connect" in facts.text
    used = {value for tag, name, value in facts.attributes if name in ("fill", "stroke")}
    assert used <= {*_look.NEUTRALS.values(), *_look.COLOURS, "none", "transparent"}
    assert _look.COLOURS[1] in used


HOSTILE = '<script>alert(\'x\')</script>" onload="y" \x1b[31m\u202egnp. ]]> &amp'


def test_hostile_names_of_frames_stay_text(tmp_path: Path) -> None:
    plan = Plan(servers=["bind@system"], zones=[20], repeats=1, stacks={f"main;{HOSTILE}": 9, "main": 1})
    page = read(report.write_report(build(tmp_path / "run", plan)).path.read_text(encoding="utf-8"))
    assert "section-flame-graph" in page.values("id")
    assert "script" not in page.tags
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    assert page.text.count("<script>alert('x')</script>") >= 2, "in the title and on its frame"
    everything = "".join(page.texts) + "".join(value for _, _, value in page.attributes)
    assert not set("\x1b\u202e") & set(everything)


def test_the_chart_is_as_it_was(profiled: Run) -> None:
    assert as_it_was("drawn/flame-graph", profiled, "flame-graph")


@pytest.mark.parametrize(
    ("name", "percent", "shown"),
    [
        # The whole width of 680 pixels has room for 113 characters of 6 pixels, of which one stays free.
        ("a" * 112, 100, "a" * 112),
        ("a" * 113, 100, "a" * 111 + "…"),
        ("abcde", 5.3, "abcde"),  # 36.04 pixels: 6 characters, less one
        ("abcdef", 5.3, "abcd…"),
        ("abcd", 4.5, "abcd"),
        ("abcde", 4.5, ""),
        ("", 0.5, ""),
    ],
)
def test_a_frame_has_as_much_of_its_name_as_fits(name: str, percent: float, shown: str) -> None:
    assert label(name, percent) == shown


def test_a_frame_of_the_least_width_is_drawn_and_the_deepest_one_too() -> None:
    assert [frame.name for frame in layout({"a": 199, "b": 1})] == ["a", "b"], "0.5 %"
    assert [frame.name for frame in layout({"a": 200, "b": 1})] == ["a"]
    deep = layout({";".join(map(str, range(MOST_DEPTH))): 1})
    assert (len(deep), deep[-1].depth, deep[-1].name) == (MOST_DEPTH, MOST_DEPTH - 1, str(MOST_DEPTH - 1))


@pytest.mark.parametrize(("depth", "height", "size"), [(1, 15, 10), (25, 375, 10), (26, 380, 9), (80, 380, 3)])
def test_deep_stacks_have_lower_rows(depth: int, height: int, size: int) -> None:
    """A row has 15 pixels until a panel has 380; its letters have two thirds of it, at most 10 pixels."""
    drawn = panel(layout({";".join(map(str, range(depth))): 1}), "", lambda frame: PLAIN).to_dict(validate=False)
    *_, words = drawn["layer"]
    assert (drawn["height"], words["mark"]["fontSize"]) == (height, size)
