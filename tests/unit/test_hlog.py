"""latency.hlog, as the engine's library writes it, whole and damaged."""

from __future__ import annotations

from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram
from load_data import kept, write_hlog

from dnsrig.errors import DnsrigError
from dnsrig.runs.latency import Latency

GOLDEN = Path(__file__).parent / "golden" / "latency.hlog"
"""Written by the hdrhistogram crate 7.6.0: three seconds i of 1,000 queries n each, lag 7 n ns and twin 50,000 + 1,000
n (i + 1) ns; in the last second one more that was sent 4,242 ns late and timed out after 1 s."""


def test_a_log_of_the_engine_is_read_value_by_value() -> None:
    log = Latency(GOLDEN, 1_000_000_000)
    assert log.tags == ["due", "sent", "lag"]
    assert [(i.offset_s, i.duration_s) for i in log.intervals("due")] == [(0, 1), (1, 1), (2, 1)]
    for tag in log.tags:
        for number, interval in enumerate(log.intervals(tag)):
            values = []
            for n in range(1, 1001):
                lag, sent = 7 * n, 50_000 + 1_000 * n * (number + 1)
                values.append(kept({"due": lag + sent, "sent": sent, "lag": lag}[tag]))
            if number == 2:
                values.append(kept({"due": 1_000_004_242, "sent": 1_000_000_000, "lag": 4242}[tag]))
            found = [v for v, n in zip(interval.histogram.values_ns, interval.histogram.counts) for _ in range(n)]
            assert found == sorted(values)


def test_the_whole_is_the_sum_of_its_intervals() -> None:
    log = Latency(GOLDEN, 1_000_000_000)
    total = log.total("due")
    assert total.total == 3001
    first, second, third = (interval.histogram for interval in log.intervals("due"))
    assert first + second + third == total
    assert (total.min_ns, total.max_ns) == (51_007 // 32 * 32, kept(1_000_004_242))
    # 3,000 values of mean 50,000 + 2 * 500.5 * 1,000 + 500.5 * 7, and one of a second: kept to a thousandth.
    assert total.mean_ns == pytest.approx((3000 * (50_000 + 1_001_000 + 3503.5) + 1_000_004_242) / 3001, rel=1e-3)


def test_a_tag_that_is_not_there_is_empty() -> None:
    log = Latency(GOLDEN, None)
    assert log.intervals("handshake") == []
    assert log.total("handshake").total == 0


@pytest.mark.parametrize("cut", range(1, 1840, 37))
def test_a_log_that_was_cut_is_read_up_to_there(tmp_path: Path, cut: int) -> None:
    """The engine was killed: some first lines are whole."""
    text = GOLDEN.read_text()
    path = tmp_path / "latency.hlog"
    path.write_text(text[:cut])
    log = Latency(path, None)
    whole = [line.split(",")[0] for line in text[:cut].split("\n")[:-1] if not line.startswith("#")]
    for tag in ("due", "sent", "lag"):
        found = log.intervals(tag)
        # Of the last line nothing but its end may be missing.
        assert whole.count(f"Tag={tag}") <= len(found) <= whole.count(f"Tag={tag}") + 1
        assert [i.histogram for i in found] == [i.histogram for i in Latency(GOLDEN, None).intervals(tag)][: len(found)]


def test_damage_ends_the_series_in_which_it_is(tmp_path: Path) -> None:
    lines = GOLDEN.read_text().splitlines()
    fields = lines[5].split(",")
    lines[5] = ",".join([*fields[:4], fields[4][:40] + "AAAA" + fields[4][44:]])
    path = tmp_path / "latency.hlog"
    path.write_text("\n".join(lines))
    log = Latency(path, None)
    assert [len(log.intervals(tag)) for tag in ("due", "sent", "lag")] == [1, 3, 3]


@pytest.mark.parametrize("line", ["", "\x00\xff", "Tag=due,x,1,1,AAAA", "Tag=due,1", "noise", "5,1,1,HIST"])
def test_noise_ends_the_log(tmp_path: Path, line: str) -> None:
    lines = GOLDEN.read_text().splitlines()
    path = tmp_path / "latency.hlog"
    path.write_text("\n".join([*lines[:5], line, *lines[5:]]))
    assert [len(Latency(path, None).intervals(tag)) for tag in ("due", "sent", "lag")] == [1, 1, 1]


def test_an_empty_log_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "latency.hlog"
    path.touch()
    assert Latency(path, None).tags == []
    assert Latency(path, None).total("due").percentile(99) is None


def test_another_precision_is_refused(tmp_path: Path) -> None:
    histogram = HdrHistogram(1, 1_000_000, 2)
    histogram.record_value(1234)
    path = tmp_path / "latency.hlog"
    path.write_text(f"Tag=due,0.000,1.000,1.000,{histogram.encode().decode()}\n")
    with pytest.raises(DnsrigError, match="2 digits"):
        Latency(path, None).intervals("due")


def test_an_interval_without_answers_is_one(tmp_path: Path) -> None:
    path = tmp_path / "latency.hlog"
    write_hlog(path, [{"due": {5_000: 2}}, {"due": {}}, {"due": {7_000: 1}}], duration_s=0.1)
    log = Latency(path, None)
    assert [i.histogram.total for i in log.intervals("due")] == [2, 0, 1]
    assert [i.offset_s for i in log.intervals("due")] == pytest.approx([0, 0.1, 0.2])
