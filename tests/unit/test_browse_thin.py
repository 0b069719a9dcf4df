"""Long series lose no extreme when they are thinned, whatever pieces they come in."""

from __future__ import annotations

import io

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsrig.browse.panels_of import Range
from dnsrig.browse.thin import Samples, Series, Thinned
from dnsrig.runs.rows import chunks, messages

ROWS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 999), st.integers(-50, 50)), max_size=60)


def frame(rows: list[tuple[str, int, int]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"line": pl.String, "time_ns": pl.Int64, "value": pl.Int64}, orient="row")


@given(ROWS, st.integers(1, 60), st.integers(1, 40))
def test_every_stretch_keeps_its_extremes(rows: list[tuple[str, int, int]], at_once: int, buckets: int) -> None:
    thinned = Thinned(0, 1000, buckets)
    for start in range(0, len(rows), at_once):
        thinned.add(frame(rows[start : start + at_once]))
    found = thinned.rows()
    assert found.height <= 2 * 2 * buckets
    width = -(-1000 // buckets)
    kept = set(found.select("line", "time_ns", "value").iter_rows()) if rows else set()
    assert kept <= {(line, time, float(value)) for line, time, value in rows}
    for line, stretch in {(line, time // width) for line, time, _ in rows}:
        inside = [value for one, time, value in rows if one == line and time // width == stretch]
        shown = [value for one, time, value in kept if one == line and time // width == stretch]
        assert (min(shown), max(shown)) == (min(inside), max(inside))


SERIES = {
    "cpu": [Series("a", "a", "cgroup", "cpu_usage_us", counter=True, factor=1e-4)],
    "both": [Series("a", "a", "sockets", "tcp_inuse"), Series("b", "b", "sockets", "tcp_inuse")],
}


def samples(count: int) -> pl.DataFrame:
    """A counter that grows by 1 % of a core, with a burst in one interval; gauges with one peak."""
    rows = []
    for tick in range(count):
        time_ns = tick * 10**8
        rows.append(("a", "cgroup", "cpu_usage_us", time_ns, 1000 * tick + (50_000 if tick >= count // 2 else 0)))
        rows += [(host, "sockets", "tcp_inuse", time_ns, 7 if tick == count // 3 else 1) for host in "ab"]
    schema = {"host": pl.Categorical, "source": pl.Categorical, "metric": pl.Categorical, "time_ns": pl.Int64}
    return pl.DataFrame(rows, schema=schema | {"value": pl.Int64}, orient="row")


def thinned(rows: pl.DataFrame, at_once: int) -> dict[str, pl.DataFrame]:
    found = Samples(SERIES, 0, 10**12, buckets=20)
    for start in range(0, rows.height, at_once):
        found.add(rows.slice(start, at_once))
    return found.panels()


@pytest.mark.parametrize("at_once", [10**9, 1000, 37])
def test_series_are_the_same_in_whatever_pieces(at_once: int) -> None:
    rows = samples(3000)
    panels = thinned(rows, at_once)
    assert list(panels) == ["cpu", "both"]
    assert panels["cpu"]["value"].max() == pytest.approx(51), "the burst of one interval, in % of a core"
    assert panels["cpu"]["value"].min() == pytest.approx(1)
    assert sorted(panels["both"]["line"].unique()) == ["a", "b"] and panels["both"]["value"].max() == 7
    whole = thinned(rows, rows.height)
    assert all(panels[name].select("value").equals(whole[name].select("value")) for name in panels)


def test_nothing_of_what_is_wanted_gives_no_panel() -> None:
    assert thinned(samples(3).with_columns(host=pl.lit("c").cast(pl.Categorical)), 2) == {}


def stream_of(*batches: pl.DataFrame) -> bytes:
    """Batches in one stream, each after the dictionaries that it needs, in the place of those before."""
    found = b""
    for number, rows in enumerate(batches):
        written = io.BytesIO()
        rows.write_ipc_stream(written)
        data = written.getvalue()
        ends = [message.end for message in messages(io.BytesIO(data), len(data))]
        found += data[ends[0] if number else 0 : ends[-2]]
    return found


@pytest.mark.parametrize("most_bytes", [1, 10_000, 10**9])
def test_a_stream_is_read_to_its_end(most_bytes: int) -> None:
    other = pl.DataFrame({"host": ["z"], "source": ["y"], "metric": ["x"]}).cast(pl.Categorical)
    batches = [samples(50), other.with_columns(time_ns=pl.lit(1).cast(pl.Int64), value=pl.lit(2).cast(pl.Int64))] * 3
    read = [rows.rows() for rows in chunks(io.BytesIO(stream_of(*batches)), most_bytes)]
    assert [row for piece in read for row in piece] == [row for rows in batches for row in rows.iter_rows()]
    assert (len(read) > 1) == (most_bytes < 10**9)


@pytest.mark.parametrize("keep", [0, 3, 8, 40, 300, 2000])
def test_a_cut_stream_ends_before_the_cut(keep: int) -> None:
    whole, cut = stream_of(samples(50)), stream_of(samples(500))[:keep]
    assert sum(rows.height for rows in chunks(io.BytesIO(cut))) == 0
    rest = stream_of(samples(50), samples(500))[: len(whole) + keep]
    assert sum(rows.height for rows in chunks(io.BytesIO(rest), 1)) == 150


@given(st.integers(0, 2000), st.integers(0, 255))
def test_no_damage_raises(at: int, byte: int) -> None:
    data = bytearray(stream_of(samples(40)))
    data[at % len(data)] = byte
    list(chunks(io.BytesIO(bytes(data))))


def test_a_stretch_of_time_has_both_its_ends_and_is_drawn_in_seconds() -> None:
    within = Range(zero_ns=1_000_000_000, start_ns=1_500_000_000, end_ns=3_000_000_000)
    assert within.extent == [0.5, 2.0]
    times = [1_499_999_999, 1_500_000_000, 2_000_001_000, 3_000_000_000, 3_000_000_001]
    found = within.seconds(pl.DataFrame({"time_ns": times, "value": range(5)}))
    assert found.to_dict(as_series=False) == {"value": [1, 2, 3], "time_s": [0.5, 1.000001, 2.0]}
