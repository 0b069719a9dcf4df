"""What importers read, on small texts made after the sources of the tools: none was measured.

Files that the tools themselves wrote are read in tests/integration/test_import.py.
"""

from __future__ import annotations

import base64
import json
import re
import tracemalloc
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import load_data
import pytest
from golden_files import same
from hypothesis import given
from hypothesis import strategies as st
from suites import quick
from typer.testing import CliRunner

import dnsrig
from dnsrig.cli import imports
from dnsrig.cli._app import application
from dnsrig.comparison import thresholds
from dnsrig.comparison.compare import compare_runs
from dnsrig.errors import UsageError
from dnsrig.importers import MS, US, Asked, Bucket, Result, S, Stretch, ends, importer, importers, of_all
from dnsrig.importers import _run as runs
from dnsrig.report import wording, write_report
from dnsrig.report.draw import draw_all
from dnsrig.report.exports import dns_metrics as dns_metrics_export
from dnsrig.report.exports import export
from dnsrig.runs.load_result import Figures
from dnsrig.runs.run import Run

DNSPERF = """DNS Performance Testing Tool
Version 2.16.0

[Status] Command line: dnsperf -s 192.0.2.1 -Q 5 -t 1.5 -S 1 -O latency-histogram
[Status] Sending queries (to 192.0.2.1:53)
[Status] Started at: Wed Nov 25 08:00:00 2026
{intervals}[Status] Testing complete (time limit)

Statistics:

  Queries sent:         10
  Queries completed:    8 (80.00%)
  Queries lost:         2 (20.00%)

  Response codes:       NOERROR 6 (75.00%), NXDOMAIN 2 (25.00%)
  Average packet size:  request 36, response 36
  Run time (s):         2.500000
  Queries per second:   3.2

  Average Latency (s):  0.020000 (min 0.000043, max 0.110000)
  Latency StdDev (s):   0.000259
{histogram}
Connection Statistics:

  Reconnections:        0 (0.00% of 4 connections)

  Average Latency (s):  0.000001 (min 0.000001, max 0.000001)
  Latency bucket (s):   answer count
  0.000001 - 0.000001:  4
"""
HISTOGRAM = """  Latency bucket (s):   answer count
  0.000043 - 0.000044:  6
  0.100000 - 0.110000:  2
"""
INTERVALS = """Interval Statistics:

  Queries sent:         5
  Queries completed:    5 (100.00%)
  Queries lost:         0 (0.00%)

  Response codes:       NOERROR 5 (100.00%)
  Run time (s):         1.001000
  Queries per second:   5.0

  Average Latency (s):  0.000043
  Latency bucket (s):   answer count
  0.000043 - 0.000044:  5

"""
FLAMETHROWER = [
    {"cmdline": "flame old", "run_id": "1", "start_timestamp": "2026-11-25T07:00:00Z", "version": "0.11"},
    {"cmdline": "flame -Q 10 -t 2 x", "run_id": "1", "start_timestamp": "2026-11-25T08:00:00Z", "version": "0.12.0"},
    *(
        {"period_number": n, "period_s_count": 5, "period_r_count": 4, "period_timeouts": 1, "runtime_s": float(n)}
        for n in (1, 1, 2)
    ),
    {
        "total_s_count": 15,
        "total_r_count": 12,
        "total_responses": {"NOERROR": 12},
        "runtime_s": 3.0,
        "total_response_avg_ms": 2.0,
        "total_response_min_ms": 1.0,
        "total_response_max_ms": 4.0,
    },
]
KXDPGUN = [
    {
        "type": "header",
        "runid": 1,
        "schema_version": 20240530,
        "generator": "kxdpgun",
        "generator_version": "3.5.8",
        "generator_params": ["kxdpgun", "-Q", "500"],
        "time_units_per_sec": S,
        "stats_interval": 1.0,
    },
    {"type": "stats_periodic", "runid": 1, "since": 5 * S, "until": 6 * S, "queries": 500, "responses": 490},
    {"type": "thread_summary", "runid": 1, "subid": 0, "qry_sent": 1000, "ans_recv": 990},
    {
        "type": "stats_sum",
        "runid": 1,
        "since": 5 * S,
        "until": 7 * S,
        "queries": 1000,
        "responses": 990,
        "response_rcodes": {"NOERROR": 990},
    },
]
STREAM = [
    {
        "type": "header",
        "runid": "1.2",
        "schema_version": 20221207,
        "generator": "shotgun",
        "generator_version": "1",
        "time_units_per_sec": 1000,
        "timeout": 2000,
        "stats_interval": 1000,
        "latency_bucket_boundaries": [1, 10, 2000],
    },
    *(
        {
            "type": kind,
            "runid": "1",
            "since": 1000,
            "until": 2000,
            "queries": 10,
            "responses": 9,
            "timeouts": 1,
            "response_latency": {"counts": [4, 3, 2, 1]},
        }
        for kind in ("stats_periodic", "stats_sum")
    ),
]
SHOTGUN = {
    "version": 20200527,
    "merged": False,
    "stats_interval_ms": 1000,
    "timeout_ms": 3,
    "discarded": 2,
    "stats_sum": {
        "since_ms": 1000,
        "until_ms": 2000,
        "requests": 7,
        "answers": 6,
        "latency": [1, 2, 3, 1],
        "rcode_noerror": 6,
        "rcode_servfail": 0,
    },
    "stats_periodic": [{"since_ms": 1000, "until_ms": 2000, "requests": 7, "answers": 6, "latency": [1, 2, 3, 1]}],
}
RESPERF = """# time target_qps actual_qps responses_per_sec failures_per_sec avg_latency connections conn_avg_latency
  0.250   500.00   500.00   500.00     0.00 0.000253     0.00 0.000000
  0.750  1000.00  1000.00   900.00     0.00 0.000228     0.00 0.000000
"""
DNSPYRE_CSV = "From (ns), To (ns), Count\n0, 0, 0\n1024, 1025, 3\n2048, 2051, 1\n"
DNSPYRE_JSON = {
    "totalRequests": 5,
    "totalIOErrors": 1,
    "responseRcodes": {"NOERROR": 4},
    "benchmarkDurationSeconds": 4,
    "latencyDistribution": [{"latencyMs": 0, "count": 3}, {"latencyMs": 7, "count": 1}],
}


LOAD = {
    "event": "summary",
    "transport": "udp",
    "model": "rate",
    "asked_qps": 5000.0,
    "start_ns": 10 * S,
    "end_ns": 12 * S,
    "sending_ns": 2 * S,
    "timeout_ns": S,
    "due": 10_000,
    "sent": 10_000,
    "answered": 9_990,
    "timeouts": 10,
    "rcodes": {"NOERROR": 9_990},
    "latency_ns": {"mean": 1.3e6, "min": 40_000, "p50": 60_000, "p99": 2_000_000, "p99_9": S, "max": S},
    "sent_latency_ns": {"mean": 1.2e6, "min": 40_000, "p50": 55_000, "p99": 1_900_000, "p99_9": S, "max": S},
}


def lines(objects: list[dict[str, object]]) -> bytes:
    return "".join(json.dumps(each) + "\n" for each in objects).encode()


def dnsperf(histogram: str = HISTOGRAM, intervals: str = "") -> bytes:
    return DNSPERF.format(histogram=histogram, intervals=intervals).encode()


def dnsperf_json() -> bytes:
    told = {"sent": 10, "completed": 8, "lost": 2, "run_time": 2.0, "qps": 3.2, "rcodes": {}}
    latency = {"avg": 0.02, "min": 0.000043, "max": 0.11, "histogram": [[0.000043, 0.000044, 6], [0.1, 0.11, 2]]}
    start = {"version": "2.16.0", "command_line": ["dnsperf", "-Q", "5", "-t", "1.5"], "started": "nonsense"}
    text = lines([{"start": start}, {"rate": {"timestamp_usec": 1, "qps": 2.0}}])
    return text + b"[Timeout] Query timed out: msg id 5\n" + lines([{"statistics": told | {"latency": latency}}])


ASKED = Asked(timeout_ns=2 * S)
"""What the user adds for files that do not state it."""
FILES = {
    "dnsperf": dnsperf(),
    "dnsperf-json": dnsperf_json(),
    "resperf": RESPERF.encode(),
    "flamethrower": lines(FLAMETHROWER),
    "kxdpgun": lines(KXDPGUN),
    "dns-metrics": lines(KXDPGUN),
    "shotgun": json.dumps(SHOTGUN).encode(),
    "shotgun-stream": lines(STREAM),
    "dnspyre": DNSPYRE_CSV.encode(),
    "dnspyre-json": json.dumps(DNSPYRE_JSON).encode(),
    "load": lines([{"event": "started"}, LOAD]),
}


def tool_of(name: str) -> str:
    return name.removesuffix("-json").removesuffix("-stream")


def read(name: str, data: bytes | None = None, asked: Asked = ASKED) -> Result:
    result: Result = importer(tool_of(name)).read(FILES[name] if data is None else data, asked)
    return result


def counted(result: Result, tag: str) -> dict[int, int]:
    found: dict[int, int] = {}
    for part in result.stretches:
        for value, count in part.tags.get(tag, {}).items():
            found[value] = found.get(value, 0) + count
    return found


@pytest.mark.parametrize("name", ["dnsperf", "dnsperf-json"])
def test_dnsperf(name: str) -> None:
    result = read(name)
    assert (result.version, result.basis, result.model, result.asked_qps) == ("2.16.0", "sending", "rate", 5.0)
    assert (result.sent, result.answered, result.timeouts, result.timeout_ns) == (10, 8, 2, 1.5 * S)
    assert result.duration_s == 2.5, "of which JSON has whole seconds only"
    assert result.told == {"mean": (8 * 20 + 2 * 1500) / 10 * MS, "min": 43 * US, "max": 1.5 * S}, "of all queries"
    assert counted(result, "sent-lower") == {43 * US: 6, 100 * MS: 2, 1500 * MS: 2}
    assert counted(result, "sent") == {45 * US - 1: 6, 110 * MS + US - 1: 2, 1500 * MS: 2}


def test_intervals_of_dnsperf_and_what_came_after_them_are_the_whole() -> None:
    result = read("dnsperf", dnsperf(intervals=INTERVALS))
    assert [(part.sent, part.answered, part.timeouts) for part in result.stretches] == [(5, 5, 0), (5, 3, 2)]
    assert [part.start_s for part in result.stretches] == [0.0, 1.001]
    assert counted(result, "sent") == counted(read("dnsperf"), "sent")


def test_each_query_that_dnsperf_prints_counts() -> None:
    text = "> NOERROR a.example A 0.000100\n> T b.example A\n> NXDOMAIN c.example A 0.000100\n"
    assert counted(read("dnsperf", dnsperf(histogram="", intervals=text)), "sent-lower") == {100 * US: 2, 1500 * MS: 2}


def test_dnsperf_without_a_distribution_says_so() -> None:
    result = read("dnsperf", dnsperf(histogram=""))
    assert not counted(result, "sent") and "no distribution" in result.missing[0]


def test_resperf() -> None:
    result = read("resperf")
    assert (result.model, result.capacity_qps, result.duration_s) == ("ramp", 900.0, 1.0)
    assert [(part.start_s, part.sent, part.timeouts) for part in result.stretches] == [(0.0, 250, 0), (0.5, 500, 50)]


def test_flamethrower_is_read_from_its_last_header_on() -> None:
    result = read("flamethrower")
    assert (result.version, result.asked_qps, result.timeout_ns, result.sent) == ("0.12.0", 10.0, 2 * S, 15)
    assert [(part.start_s, part.sent) for part in result.stretches] == [(0.0, 10), (1.0, 5)]
    assert result.told == {"mean": (12 * 2 + 3 * 2000) / 15 * MS, "min": 1 * MS, "max": 2 * S}


@pytest.mark.parametrize("data", [lines(KXDPGUN), json.dumps(KXDPGUN, indent=2).encode()])
def test_kxdpgun_as_lines_and_as_an_array(data: bytes) -> None:
    result = read("kxdpgun", data)
    assert (result.sent, result.answered, result.asked_qps, result.duration_s) == (1000, 990, 500.0, 2.0)
    assert not counted(result, "sent") and "no latency at all" in result.missing[0]


def test_shotgun() -> None:
    result = read("shotgun")
    assert counted(result, "sent-lower") == {0: 1, 1 * MS: 2, 2 * MS: 3, 3 * MS: 1}
    assert counted(result, "sent") == {1 * MS - 1: 1, 2 * MS - 1: 2, 3 * MS - 1: 3, 3 * MS: 1}
    assert (result.timeouts, result.rcodes) == (1, {"NOERROR": 6})
    assert "2 packets were not replayed." in result.missing


def test_the_stream_of_shotgun_has_its_buckets_in_the_header() -> None:
    result = read("shotgun-stream")
    assert counted(result, "sent-lower") == {0: 4, 1 * MS: 3, 10 * MS: 2, 2 * S: 1}
    assert counted(result, "sent") == {1 * MS: 4, 10 * MS: 3, 2 * S: 2 + 1}
    assert result.timeout_ns == 2 * S


def test_dnspyre() -> None:
    assert counted(read("dnspyre"), "sent") == {1025: 3, 2051: 1}


def test_a_bucket_of_dnspyre_is_as_wide_as_its_histogram_may_have_it() -> None:
    """Its JSON has middles of buckets of one digit, rounded: 70 ms means 68 to 72 ms, as HDR histograms count."""
    told = DNSPYRE_JSON | {"latencyDistribution": [{"latencyMs": 70, "count": 4}]}
    result = read("dnspyre-json", json.dumps(told).encode())
    (low, of_low), (end, of_end) = counted(result, "sent-lower").items()
    (high, of_high), _ = counted(result, "sent").items()
    assert 66 * MS < low <= 68 * MS and 72 * MS <= high < 74 * MS and of_low == of_high == 4
    assert (end, of_end) == (2 * S, 1), "the query without an answer"


@pytest.mark.parametrize("name", ["dnspyre-json", "shotgun-stream"])
def test_queries_without_an_answer_need_a_timeout(name: str) -> None:
    without = FILES[name].replace(b'"timeout": 2000, ', b"")
    with pytest.raises(ValueError, match="--timeout"):
        read(name, without, Asked())
    assert max(counted(read(name, without), "sent")) == 2 * S


def test_bins_of_dnsperf_built_with_the_patch_for_kubernetes() -> None:
    bins = "  Latency histogram\n#histogram 0 6\n#histogram 110 1\n#histogram 4999 3\n"
    text = dnsperf(histogram=bins).replace(b"Version 2.16.0", b"Nominum Version 2.1.0.0")
    result = read("dnsperf", text)
    assert result.version == "2.1.0.0" and not any("not understood" in said for said in result.missing)
    assert counted(result, "sent-lower") == {0: 6, 110 * MS: 1, 4999 * MS: 1, 1500 * MS: 2}
    assert counted(result, "sent") == {1 * MS - 1: 6, 111 * MS - 1: 1, 5000 * MS - 1: 1, 1500 * MS: 2}


@pytest.mark.parametrize(
    ("bounds", "counts", "lower", "upper"),
    [
        # The last of them are from 100 ms on: one was answered, three were not.
        ([10, 100], [90, 6, 4], {0: 90, 10: 6, 100: 1, 2000: 3}, {10: 90, 100: 6, 2000: 1 + 3}),
        # The bound is above the timeout: what was not answered is in the bucket that contains it.
        ([10, 9000], [90, 10, 0], {0: 90, 10: 7, 2000: 3}, {10: 90, 2000: 7 + 3}),
    ],
)
def test_queries_without_an_answer_are_at_the_timeout_whatever_the_bounds(
    bounds: list[int], counts: list[int], lower: dict[int, int], upper: dict[int, int]
) -> None:
    header, *_ = STREAM
    total = {"type": "stats_sum", "since": 0, "until": 2000, "queries": 100, "responses": 97, "discarded": 7}
    stream = [header | {"latency_bucket_boundaries": bounds}, total | {"response_latency": {"counts": counts}}]
    result = read("shotgun-stream", lines(stream))
    assert counted(result, "sent-lower") == {value * MS: count for value, count in lower.items()}
    assert counted(result, "sent") == {value * MS: count for value, count in upper.items()}
    assert "7 queries or responses were discarded, and not sent." in result.missing


def test_p99_of_a_server_that_does_not_answer_is_its_timeout(tmp_path: Path) -> None:
    header, *_ = STREAM
    total = {"type": "stats_sum", "since": 0, "until": 2000, "queries": 100, "responses": 97}
    stream = [
        header | {"latency_bucket_boundaries": [10, 100]},
        total | {"response_latency": {"counts": [90, 6, 4]}},
    ]
    (tmp_path / "x").write_bytes(lines(stream))
    runs.write("shotgun", "x", runs.read("shotgun", [tmp_path / "x"], ASKED), tmp_path / "run")
    (trial,) = Run.open(tmp_path / "run").trials
    assert trial.value("sent_p99_ms") == pytest.approx(2000, rel=1e-3)


UNKNOWN: dict[str, bytes] = {
    "dnsperf": dnsperf(histogram=HISTOGRAM + "#heatmap 1 2\n"),
    "dnsperf-json": dnsperf_json().replace(b'"avg"', b'"p99": 1, "avg"'),
    "resperf": RESPERF.replace("failures_per_sec", "p99_latency").encode(),
    "flamethrower": lines([*FLAMETHROWER[:-1], FLAMETHROWER[-1] | {"total_p99_ms": 3}]),
    "kxdpgun": lines([*KXDPGUN[:-1], KXDPGUN[-1] | {"latencies": [1]}]),
    "dns-metrics": lines([*KXDPGUN, {"type": "histogram"}]),
    "shotgun": json.dumps(SHOTGUN | {"stats_udp": {}}).encode(),
    "shotgun-stream": lines([*STREAM[:-1], STREAM[-1] | {"response_latency": {"counts": [4, 3, 2, 1], "p99": 1}}]),
    "dnspyre-json": json.dumps(DNSPYRE_JSON | {"latencyP999Ms": 1}).encode(),
}


@pytest.mark.parametrize("name", sorted(UNKNOWN))
def test_what_an_importer_does_not_know_is_reported(name: str) -> None:
    known = [text for text in read(name).missing if "not understood" in text]
    (said,) = [text for text in read(name, UNKNOWN[name]).missing if "not understood" in text]
    assert (
        not known
        and said.startswith("1 ")
        and any(part in said for part in ("heatmap", "p99", "latencies", "type histogram", "stats_udp", "P999"))
    )


def test_latencies_of_fewer_queries_than_were_sent_are_reported(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(dnsperf(histogram="  0.000043 - 0.000044:  5\n"))
    (source,) = runs.read("dnsperf", [tmp_path / "x"], ASKED)
    assert "Its distribution has 7 latencies, where 10 queries were sent." in source.record.missing


def test_the_command_prints_what_a_file_does_not_tell(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(UNKNOWN["dnsperf"])
    command = ["import", "dnsperf", str(tmp_path / "x"), "--as", "x", "--to", str(tmp_path / "run")]
    result = CliRunner().invoke(application(), command)
    assert result.stdout == f"{tmp_path / 'run'}\n"
    assert "x: 1 line is not understood and left out: '#heatmap 1 2'." in result.stderr


def test_an_interval_log_of_another_program_needs_a_basis_and_a_unit(tmp_path: Path) -> None:
    load_data.write_hlog(tmp_path / "ours.hlog", [{"due": {1000: 3}, "sent": {900: 3}}])
    ours = (tmp_path / "ours.hlog").read_bytes()
    assert read("hlog", ours).basis == "due" and counted(read("hlog", ours), "sent") == {900: 3}
    theirs = ours.replace(b"Tag=due,", b"").replace(b"Tag=sent,", b"Tag=other,")
    with pytest.raises(ValueError, match="--counted-from"):
        read("hlog", theirs)
    result = read("hlog", theirs, Asked("sending", US))
    assert counted(result, "sent-lower") == {1000 * US: 3, 900 * US: 3}
    assert counted(result, "sent") == {1001 * US - 1: 3, 901 * US - 1: 3}


def test_metrics_of_an_unknown_generator_need_a_basis() -> None:
    data = lines([KXDPGUN[0] | {"generator": "x"}, *KXDPGUN[1:]])
    with pytest.raises(ValueError, match="--counted-from"):
        read("dns-metrics", data)
    assert read("dns-metrics", data, Asked("due")).basis == "due"


@pytest.mark.parametrize("name", sorted(FILES))
@given(data=st.data())
def test_what_is_cut_or_changed_is_read_or_refused(name: str, data: st.DataObject) -> None:
    """Never anything but an error that the command tells in a sentence."""
    whole = FILES[name]
    first = data.draw(st.integers(0, len(whole)))
    changed = whole[:first] + data.draw(st.binary(max_size=8)) + whole[data.draw(st.integers(first, len(whole))) :]
    try:
        result = read(name, changed)
    except runs.UNREADABLE:
        return
    for part in result.stretches:
        assert all(count > 0 and value >= 0 for tag in part.tags.values() for value, count in tag.items())


@pytest.mark.parametrize("name", importers())
@given(data=st.binary(max_size=400))
def test_any_bytes_are_refused(name: str, data: bytes) -> None:
    with pytest.raises(runs.UNREADABLE):
        read(name, data)


def test_times_that_are_none_are_refused(tmp_path: Path) -> None:
    total = FLAMETHROWER[-1] | {"runtime_s": float("nan")}
    (tmp_path / "x").write_bytes(lines([*FLAMETHROWER[:-1], total]))
    with pytest.raises(UsageError, match="is not what flamethrower writes"):
        runs.read("flamethrower", [tmp_path / "x"], ASKED)


def hlog(payload: str, start: str = "0.0") -> bytes:
    return f"Tag=due,{start},1.0,1.0,{payload}\n".encode()


def inflating() -> str:
    """A histogram of 33 kB that becomes 32 MB."""
    return base64.b64encode(bytes(8) + zlib.compress(bytes(1 << 25), 9)).decode()


MOST = str((1 << 62) - 1)
PERIODS = [part for part in FLAMETHROWER if "period_number" in part]
HOSTILE: list[tuple[str, bytes, str]] = [
    ("dnsperf", dnsperf().replace(b"sent:         10", f"sent:         {MOST}".encode()), "counts"),
    ("dnsperf", dnsperf(HISTOGRAM.replace("  6\n", f"  {MOST}\n")), "counts"),
    ("dnsperf-json", dnsperf_json().replace(b'"qps": 3.2', b'"qps": 1e-300'), "a time"),
    ("dnsperf-json", dnsperf_json().replace(b'"2.16.0"', rb'"\ud800"'), "surrogate"),
    ("resperf", RESPERF.replace("0.750", "1e300").encode(), "a time"),
    ("resperf", RESPERF.replace("  900.00", "  1e300").encode(), "no count|counts|impossible"),
    ("flamethrower", lines([*FLAMETHROWER[:2], {**PERIODS[0], "runtime_s": 1e15}, FLAMETHROWER[-1]]), "a time"),
    ("flamethrower", lines([*FLAMETHROWER[:-1], FLAMETHROWER[-1] | {"total_response_avg_ms": 1e15}]), "impossible"),
    ("flamethrower", lines([FLAMETHROWER[1] | {"start_timestamp": "1900-01-01"}, FLAMETHROWER[-1]]), "impossible"),
    ("kxdpgun", lines([*KXDPGUN[:-1], KXDPGUN[-1] | {"response_rcodes": {"\ud800": 1}}]), "surrogate"),
    ("dns-metrics", lines([KXDPGUN[0] | {"time_units_per_sec": 1}, *KXDPGUN[1:]]), "impossible"),
    ("dns-metrics", lines([*KXDPGUN[:-1], KXDPGUN[-1] | {"queries": int(MOST)}]), "counts"),
    ("dns-metrics", lines([*KXDPGUN[:-1], KXDPGUN[-1] | {"queries": float("nan")}]), "beyond all limits"),
    ("dns-metrics", b'{"type":' * 100_000, "nested"),
    ("shotgun", json.dumps(SHOTGUN | {"discarded": float("nan")}).encode(), "beyond all limits"),
    ("dnspyre", b"From (ns), To (ns), Count\n" + f"1, 2, {MOST}\n".encode() * 3, "counts"),
    ("dnspyre", b"From (ns), To (ns), Count\n1, 2\n", "'1, 2' is not three numbers"),
    ("dnspyre-json", json.dumps(DNSPYRE_JSON | {"benchmarkDurationSeconds": 1e15}).encode(), "a time"),
    ("load", lines([LOAD | {"transport": "u" * 1_000}]), "no name"),
    ("load", lines([LOAD | {"asked_qps": 1e300}]), "beyond all limits"),
    ("load", lines([LOAD | {"sent": 10**19}]), "counts"),
    ("hlog", hlog(inflating()), "line 1 is damaged: it has more than"),
    ("hlog", hlog("AAAA"), "line 1 is damaged"),
    ("hlog", hlog("AAAA", start="nan"), "no time"),
]
"""Files that would take very much memory, or have numbers and texts that no run can hold."""


@pytest.mark.parametrize(("name", "data", "says"), HOSTILE)
def test_a_hostile_file_is_refused_with_a_sentence_before_a_run_is_made(
    tmp_path: Path, name: str, data: bytes, says: str
) -> None:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(UsageError, match=says) as caught:
        runs.write(tool_of(name), "x", runs.read(tool_of(name), [tmp_path / "x"], ASKED), tmp_path / "run")
    assert f"is not what {tool_of(name)} writes: " in caught.value.message
    assert not (tmp_path / "run").exists()


def test_a_file_has_a_limited_number_of_latencies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dnsrig.importers.MOST_BUCKETS", 100)
    rows = "".join(f"{number}, {number}, 1\n" for number in range(101))
    with pytest.raises(ValueError, match="more than 100 different latencies"):
        read("dnspyre", f"From (ns), To (ns), Count\n{rows}".encode())


def test_rows_are_read_one_after_the_other() -> None:
    """A file of very many rows takes no more memory than its latencies."""
    rows = b"1, 2, 1\n" * 50_000
    tracemalloc.start()
    result = read("dnspyre", b"From (ns), To (ns), Count\n" + rows)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result.answered == 50_000 and peak_bytes < 3 * len(rows)


def test_a_file_whose_name_is_not_text_is_imported(tmp_path: Path) -> None:
    path = tmp_path / "\udcff.txt"
    path.write_bytes(FILES["dnsperf"])
    runs.write("dnsperf", "x", runs.read("dnsperf", [path], ASKED), tmp_path / "run")
    (trial,) = Run.open(tmp_path / "run").trials
    assert trial.record.imported is not None and trial.record.imported.file == "\ufffd.txt"


def test_buckets_out_of_all_bounds_are_refused() -> None:
    for bucket in (Bucket(2, 1, 1), Bucket(-1, 1, 1), Bucket(0, 10**18, 1), Bucket(0, 1, -1)):
        with pytest.raises(ValueError, match="no bucket"):
            ends("sending", [bucket])


def made(folder: Path, name: str, repeats: int = 5, to: Path | None = None, shown: str = "") -> Run:
    """An imported run of equal files."""
    paths = [folder / f"{name}-{number}" for number in range(repeats)]
    for path in paths:
        path.write_bytes(FILES[name])
    directory = to or folder / "runs" / name
    runs.write(tool_of(name), shown or name, runs.read(tool_of(name), paths, ASKED), directory)
    return Run.open(directory)


@pytest.mark.parametrize("name", quick(sorted(FILES), "dnsperf"))
def test_a_report_of_each_is_whole(tmp_path: Path, name: str) -> None:
    run = made(tmp_path, name, repeats=2)
    written = write_report(run.directory)
    assert not list(written.run.failures) and not written.run.is_damaged
    page = written.path.read_text()
    assert run.manifest.title in page and "Trials were interleaved" not in page
    assert ("Results of other tools" in page) == (name != "load")
    assert all(trial.value(run.manifest.specs[trial.key.variant].main_metric) is not None for trial in run.trials)


def test_a_bucket_is_drawn_as_wide_as_it_is(tmp_path: Path) -> None:
    run = made(tmp_path, "shotgun-stream", repeats=1)
    (trial,) = run.trials
    assert trial.load.lower_sent_latency_ns["p50"] == pytest.approx(1 * MS, rel=2e-3)
    assert trial.load.sent_latency_ns["p50"] == pytest.approx(10 * MS, rel=2e-3)
    (drawn,) = [each for each in draw_all(run) if each.chart.id == "slowest-percentile"]
    rows = [
        row
        for rows in drawn.drawing.chart.to_dict()["datasets"].values()
        for row in rows
        if "percent" in row and "mean" in row
    ]
    assert {row["colour"] for row in rows} == {"all: from sending"}
    # Half of all are within 1 to 10 ms: the band there is as wide.
    middle = min(rows, key=lambda row: abs(row["percent"] - 50))
    assert (middle["low"], middle["high"]) == pytest.approx((1.0, 10.0), rel=2e-3)


def test_captions_give_the_cause_of_two_ends_that_the_data_has(tmp_path: Path) -> None:
    """Our own `load` has them where it was late, also if its results were imported; tools with buckets always."""
    plan = load_data.LoadPlan(servers=["knot@system"], repeats=1, seconds=2, late_us={"knot@system": 300})
    (trial,) = Run.open(load_data.build(tmp_path / "late", plan)).trials
    directory = tmp_path / "runs" / "both"
    runs.write("hlog", "ours", runs.read("hlog", [trial.directory / "latency.hlog"], ASKED), directory)

    def caption(run: Run) -> str:
        return next(each.caption for each in draw_all(run) if each.chart.id == "slowest-percentile")

    ours = Run.open(directory)
    assert wording.causes_of_ends(ours) == {
        "lateness"
    } and "Where the instrument was late the true latency lies between" in caption(ours)
    both = made(tmp_path, "shotgun-stream", repeats=1, to=directory)
    assert wording.causes_of_ends(both) == {"lateness", "buckets"}
    assert "Where a tool counts in buckets, or an instrument was late, the true latency" in caption(both)
    alone = made(tmp_path, "shotgun-stream", repeats=1)
    assert wording.causes_of_ends(alone) == {"buckets"} and wording.both_ends(alone).startswith("the tool counts")


def test_a_mean_is_never_drawn_as_a_percentile(tmp_path: Path) -> None:
    run = made(tmp_path, "flamethrower", repeats=1)
    (trial,) = run.trials
    assert trial.value("sent_mean_ms") == pytest.approx((12 * 2 + 3 * 2000) / 15), (
        "three of 15 were not answered in 2 s"
    )
    assert trial.value("sent_max_ms") == 2000.0
    assert [trial.value(f"sent_{name}_ms") for name in ("p50", "p99", "p99_9")] == [None, None, None]
    assert [trial.value(f"{name}_ms") for name in ("mean", "p50", "p99", "max")] == [None] * 4
    assert "slowest-percentile" not in {each.chart.id for each in draw_all(run)}


def test_results_of_several_tools_are_in_one_run(tmp_path: Path) -> None:
    first = made(tmp_path, "dnsperf")
    both = made(tmp_path, "kxdpgun", to=first.directory)
    assert [variant.label for variant in both.manifest.variants] == ["result=dnsperf", "result=kxdpgun"]
    assert {trial.record.spec.main_metric for trial in both.trials} == {"sent_p99_ms"}, "what half of them have"
    (drawn,) = [each for each in draw_all(both) if each.chart.id == "slowest-percentile"]
    assert "no distribution of latency: result=kxdpgun" in drawn.caption
    three = made(tmp_path, "flamethrower", to=first.directory)
    assert {trial.record.spec.main_metric for trial in three.trials} == {"answered_qps"}
    with pytest.raises(UsageError, match="has a result called 'kxdpgun'"):
        made(tmp_path, "kxdpgun", to=first.directory)


def test_a_run_that_was_measured_here_is_not_added_to(tmp_path: Path) -> None:
    load_data.build(tmp_path / "run")
    before = sorted(path for path in (tmp_path / "run").rglob("*"))
    with pytest.raises(UsageError, match="is a run that dnsrig measured"):
        made(tmp_path, "dnsperf", to=tmp_path / "run")
    assert sorted(path for path in (tmp_path / "run").rglob("*")) == before


def test_a_run_of_another_tool_is_not_executed(tmp_path: Path) -> None:
    folder = made(tmp_path, "dnsperf", repeats=1).directory
    result = CliRunner().invoke(application(), ["run", "--resume", str(folder), "--repeats", "3"])
    assert isinstance(result.exception, UsageError) and "cannot be resumed" in result.exception.message


def test_due_and_sending_are_never_compared_in_silence(tmp_path: Path) -> None:
    load_data.write_hlog(tmp_path / "hlog-0", [{"due": {MS: 30}, "sent": {900 * US: 30}}])
    sources = runs.read("hlog", [tmp_path / "hlog-0"] * 5, Asked())
    runs.write("hlog", "due", sources, tmp_path / "due")
    rules = [thresholds.parse("sent_p99 > 200 %")]
    found = compare_runs(Run.open(tmp_path / "due"), made(tmp_path, "dnsperf"), [], rules)
    assert found.decision == "undecided" and "imported.basis" in found.verdicts[0].judgement.reason
    told = {difference.what: (difference.base, difference.new) for difference in found.differences}
    assert told["imported.basis"] == ("due", "sending")
    assert [line.metric.name for line in found.lines] == ["sent_p99_ms"], "the one that both have"


def test_a_damaged_file_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("no dnsperf")
    result = CliRunner().invoke(
        application(), ["import", "dnsperf", str(tmp_path / "x"), "--as", "x", "--to", str(tmp_path / "run")]
    )
    assert isinstance(result.exception, UsageError) and "is not what dnsperf writes" in result.exception.message
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["../../x", "<script>alert(1)</script>\u202edetrevni", "a/b", "."])
def test_any_name_is_a_name(tmp_path: Path, name: str) -> None:
    run = made(tmp_path, "dnsperf", repeats=1, shown=name)
    assert [path.name for path in (run.directory / "trials").iterdir()] == [run.manifest.variants[0].id]
    if "script" in name:
        page = write_report(run.directory).path.read_text()
        assert "<script>" not in page and "\u202e" not in page


def test_an_export_as_dns_metrics_is_read_back(tmp_path: Path) -> None:
    run = Run.open(load_data.build(tmp_path / "run"))
    paths = export(run, "dns-metrics", tmp_path / "out")
    assert len(paths) == len(run.trials) and not list(run.failures)
    trial, (source,) = run.trials[0], runs.read("dns-metrics", paths[:1], Asked())
    assert source.result.basis == "due" and source.result.timeout_ns == trial.load.timeout_ns
    assert trial.latency is not None
    total = trial.latency.total("due")
    assert counted(source.result, "due") == dict(zip(total.values_ns, total.counts))
    header = json.loads(paths[0].read_text().splitlines()[0])
    assert header["schema_version"] == dns_metrics_export.SCHEMA_VERSION


def test_our_own_load_is_no_other_tool_and_has_its_rate_and_transport(tmp_path: Path) -> None:
    run = made(tmp_path, "load", repeats=2, shown="mine")
    assert run.manifest.title == "Results of dnsrig load"
    assert run.manifest.axes == {"result": ["mine"], "transport": ["udp"], "rate": [5000]}
    (trial, _) = run.trials
    assert (trial.value("p99_ms"), trial.value("sent_p99_ms"), trial.value("p99_9_ms")) == (2.0, 1.9, 1000.0)
    assert trial.record.spec.main_metric == "p99_ms" and trial.load.asked_qps == 5000
    page = write_report(run.directory).path.read_text()
    shown = re.sub(r"<dd>.*?</dd>|Of results of other tools", "", page, flags=re.DOTALL)
    assert "other tools" not in shown.lower() and "their rigs" not in page
    (tmp_path / "tcp").write_bytes(lines([LOAD | {"transport": "tcp", "asked_qps": 2000.0}]))
    runs.write("load", "mine", runs.read("load", [tmp_path / "tcp"], ASKED), run.directory)
    both = Run.open(run.directory)
    assert [variant.label for variant in both.manifest.variants] == [
        "result=mine transport=udp rate=5000",
        "result=mine transport=tcp rate=2000",
    ]
    with pytest.raises(UsageError, match="different settings"):
        runs.write("load", "x", runs.read("load", [tmp_path / "tcp", tmp_path / "load-0"], ASKED), run.directory)


def test_ours_beside_another_tool_are_compared_by_what_both_have(tmp_path: Path) -> None:
    run = made(tmp_path, "load", repeats=5)
    both = made(tmp_path, "dnsperf", to=run.directory)
    assert both.manifest.title == "Results of dnsrig load and other tools"
    assert both.manifest.variants[1].parameters == {"result": "dnsperf", "transport": "not told", "rate": "not told"}
    assert {trial.record.spec.main_metric for trial in both.trials} == {"sent_p99_ms"}
    assert all(trial.value("sent_p99_ms") is not None for trial in both.trials)
    assert all(trial.record.spec.variant.parameters.keys() == both.manifest.axes.keys() for trial in both.trials)
    assert write_report(both.directory).path.exists() and not list(both.failures)


def test_axes_that_a_file_does_not_say_are_given(tmp_path: Path) -> None:
    load_data.write_hlog(tmp_path / "x.hlog", [{"due": {MS: 30}, "sent": {900 * US: 30}}])
    command = ["import", "hlog", str(tmp_path / "x.hlog"), "--as", "mine", "--to", str(tmp_path / "run")]
    result = CliRunner().invoke(application(), [*command, "--axis", "rate=5000", "--axis", "transport=udp"])
    assert result.exit_code == 0
    manifest = Run.open(tmp_path / "run").manifest
    assert manifest.axes == {"result": ["mine"], "rate": [5000], "transport": ["udp"]}
    assert manifest.title == "Results of dnsrig load"
    for wrong in ("rate", "result=x", "RATE=1", "=1"):
        refused = CliRunner().invoke(application(), [*command[:-1], str(tmp_path / "no"), "--axis", wrong])
        assert isinstance(refused.exception, UsageError) and not (tmp_path / "no").exists()


def test_two_imported_runs_are_matched_by_their_axes(tmp_path: Path) -> None:
    for name in ("before", "after"):
        for transport in ("udp", "tcp"):
            path = tmp_path / f"{name}-{transport}"
            path.write_bytes(lines([LOAD | {"transport": transport}]))
            runs.write("load", name, runs.read("load", [path] * 5, ASKED), tmp_path / "runs" / name)
    found = compare_runs(*(Run.open(tmp_path / "runs" / name) for name in ("before", "after")), [], [])
    assert len(found.lines) == 2 and not found.only_in_base and not found.only_in_new


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rate=5000", {"rate": 5000}),
        ("rate=" + "9" * 15, {"rate": 999_999_999_999_999}),
        ("rate=" + "9" * 16, {"rate": "9" * 16}),
        ("rate=-1", {"rate": "-1"}),
        ("rate=٣", {"rate": "٣"}),
        ("a=", {"a": ""}),
        ("a=b=c", {"a": "b=c"}),
        ("a=" + "x" * 60, {"a": "x" * 60}),
        ("a" * 31 + "=1", {"a" * 31: 1}),
        ("a=" + "x" * 61, None),
        ("a" * 32 + "=1", None),
        ("result=1", None),
        ("1a=1", None),
        ("a", None),
    ],
)
def test_an_axis_has_a_short_name_and_a_short_value(text: str, expected: dict[str, int | str] | None) -> None:
    if expected is None:
        with pytest.raises(UsageError, match="--axis"):
            imports._axes([text])
    else:
        assert imports._axes([text]) == expected


@pytest.mark.parametrize(
    ("name", "stretches"),
    [
        ("dnsperf", [(0.0, 2.5, 10, 8, 2)]),
        ("dnsperf-json", [(0.0, 2.5, 10, 8, 2)]),
        ("resperf", [(0.0, 0.5, 250, 250, 0), (0.5, 0.5, 500, 450, 50)]),
        ("flamethrower", [(0.0, 1.0, 10, 8, 2), (1.0, 1.0, 5, 4, 1)]),
        ("kxdpgun", [(0.0, 1.0, 500, 490, 0)]),
        ("shotgun", [(0.0, 1.0, 7, 6, 1)]),
        ("shotgun-stream", [(0.0, 1.0, 10, 9, 1)]),
        ("dnspyre", [(0.0, 0.0, 0, 4, 0)]),
        ("dnspyre-json", [(0.0, 4.0, 5, 4, 1)]),
        ("load", [(0.0, 2.0, 10_000, 9_990, 10)]),
    ],
)
def test_what_became_of_queries_in_each_stretch_of_time(
    name: str, stretches: list[tuple[float, float, int, int, int]]
) -> None:
    found = read(name).stretches
    assert [(each.start_s, each.duration_s, each.sent, each.answered, each.timeouts) for each in found] == stretches


def test_stretches_begin_with_the_first_one() -> None:
    later = [STREAM[1] | {"since": since, "until": since + 500} for since in (1000, 1500, 2000)]
    whole = STREAM[2] | {"until": 2500, "queries": 30, "responses": 27}
    result = read("shotgun-stream", lines([STREAM[0], *later, whole]))
    assert [(each.start_s, each.duration_s) for each in result.stretches] == [(0.0, 0.5), (0.5, 0.5), (1.0, 0.5)]
    assert (result.started_ns, result.duration_s, result.model) == (S, 1.5, "stream")
    told = json.loads(FILES["shotgun"])
    (period,), told["stats_sum"] = told["stats_periodic"], told["stats_sum"] | {"since_ms": 1500, "until_ms": 3700}
    told["stats_periodic"] = [period | {"since_ms": since, "until_ms": since + 700} for since in (1500, 3000)]
    old = read("shotgun", json.dumps(told).encode())
    assert [(each.start_s, each.duration_s) for each in old.stretches] == [(0.0, 0.7), (1.5, 0.7)]
    assert (old.started_ns, old.duration_s) == (1500 * MS, 2.2)


FIGURES = {"mean": 10.0, "min": 1.0, "max": 20.0}


@pytest.mark.parametrize(
    ("told", "answered", "lost", "timeout_ns", "expected"),
    [
        (FIGURES, 3, 0, 100, FIGURES),
        (FIGURES, 0, 0, 100, {}),
        (FIGURES, 0, 5, 100, {}),
        (FIGURES, 3, 1, 100, {"min": 1.0, "mean": (3 * 10 + 100) / 4, "max": 100.0}),
        (FIGURES, 3, 1, None, {"min": 1.0}),
        ({"min": 1.0}, 3, 1, 100, {"min": 1.0}),
        ({"mean": None, "max": 5.0}, 3, 1, 100, {"min": None, "max": 100.0}),
    ],
)
def test_figures_of_all_queries_count_those_without_an_answer(
    told: Figures, answered: int, lost: int, timeout_ns: int | None, expected: Figures
) -> None:
    assert of_all(told, answered, lost, timeout_ns) == expected


@pytest.mark.parametrize(
    ("buckets", "expected"),
    [
        ([], {}),
        ([Bucket(1, 2, 0)], {}),
        ([Bucket(5, 5, 1), Bucket(5, 5, 2)], {"due": {5: 3}}),
        ([Bucket(5, 9, 2)], {"due": {9: 2}, "lower": {5: 2}}),
        ([Bucket(0, 3_600 * S, 1)], {"due": {3_600 * S: 1}, "lower": {0: 1}}),
    ],
)
def test_buckets_have_lower_ends_where_these_are_others(buckets: list[Bucket], expected: dict[str, object]) -> None:
    assert ends("due", buckets) == expected


def test_the_longest_latency_is_an_hour() -> None:
    with pytest.raises(ValueError, match="no bucket"):
        ends("due", [Bucket(0, 3_600 * S + 1, 1)])


WAITS = "A query that had to wait to be sent is not counted as late."


@pytest.mark.parametrize(
    ("histogram", "intervals", "missing"),
    [
        (HISTOGRAM, "", []),
        (HISTOGRAM, "Warning: late\n", ["Warnings of dnsperf: 1, first 'late'."]),
        (HISTOGRAM, "Warning: late\nWarning: later\n", ["Warnings of dnsperf: 2, first 'late'."]),
        (f"{HISTOGRAM}  Unexpected IDs:       3\n", "", ["3 answers had an unexpected id: they may be late."]),
        ("", "", ["There is no distribution of latency: `-O latency-histogram` or `-v` prints one."]),
    ],
)
def test_what_dnsperf_says_beside_its_figures(histogram: str, intervals: str, missing: list[str]) -> None:
    assert read("dnsperf", dnsperf(histogram, intervals)).missing == [*missing, WAITS]


def test_queries_that_the_end_of_dnsperf_interrupted_took_any_time() -> None:
    interrupted = b"  Queries interrupted:  1 (10.00%)\n  Response codes:       NOERROR 6"
    text = dnsperf(intervals=INTERVALS).replace(b"  Response codes:       NOERROR 6", interrupted)
    result = read("dnsperf", text)
    assert counted(result, "sent-lower") == {0: 1, 43 * US: 6, 100 * MS: 2, 1500 * MS: 2}
    assert counted(result, "sent") == {45 * US - 1: 6, 110 * MS + US - 1: 2, 1500 * MS: 3}
    assert result.told == {}, "nothing is known of all of them"


def test_queries_after_the_last_interval_are_the_rest() -> None:
    """Nothing is left of a whole that has no more than its intervals."""
    whole = INTERVALS.replace("Interval Statistics", "Statistics")
    text = dnsperf(intervals=INTERVALS).decode()
    result = read("dnsperf", (text.partition("Statistics:\n\n  Queries sent:         10")[0] + whole).encode())
    assert [(each.start_s, each.sent) for each in result.stretches] == [(0.0, 5)]


@pytest.mark.parametrize(
    ("words", "rate"),
    [
        (["kxdpgun", "-t", "5", "-Q", "500", "-b", "10"], 500.0),
        (["kxdpgun", "--qps", "7"], 7.0),
        (["-Q", "5", "-Q", "6"], 6.0),
        (["-Q", "x", "9"], None),
        (["9", "-Q"], None),
        ([], None),
    ],
)
def test_the_rate_of_kxdpgun_is_from_its_command(words: list[str], rate: float | None) -> None:
    assert read("kxdpgun", lines([KXDPGUN[0] | {"generator_params": words}, *KXDPGUN[1:]])).asked_qps == rate


@pytest.mark.parametrize(
    ("generator", "units", "timeout", "timeout_ns"),
    [
        ("kxdpgun", S, 5, 5 * S),  # seconds, as the schema has it
        ("kxdpgun", S, 2.5, 2.5 * S),
        ("kxdpgun", S, 999_999, 999_999 * S),
        ("kxdpgun", S, 1_000_000, MS),
        ("kxdpgun", 1000, 2000, 2 * S),
        ("shotgun", S, 5, 5),
        ("shotgun", 1000, 2.0, 2 * S),
        ("kxdpgun", S, None, 7 * S),  # what the user says
    ],
)
def test_a_timeout_is_in_seconds_or_in_units_of_the_file(
    generator: str, units: int, timeout: float | None, timeout_ns: int
) -> None:
    header = KXDPGUN[0] | {"generator": generator, "time_units_per_sec": units, "timeout": timeout}
    result = read("dns-metrics", lines([header, *KXDPGUN[1:]]), Asked(timeout_ns=7 * S))
    assert result.timeout_ns == timeout_ns


def test_what_was_never_counted_was_not_answered() -> None:
    total = {"type": "stats_sum", "since": 0, "until": 2000, "queries": 1, "response_latency": {"counts": [0, 0, 1]}}
    result = read("shotgun-stream", lines([STREAM[0] | {"latency_bucket_boundaries": [10, 100]}, total]))
    assert [part.tags for part in result.stretches] == [{"sent": {2 * S: 1}}], "both ends are the timeout"
    assert (result.answered, result.timeouts) == (0, 1)


@pytest.mark.parametrize("cells", ["", " 1.0", " 1.0 1.0"])
def test_a_line_of_resperf_has_a_number_for_each_column(cells: str) -> None:
    text = RESPERF.replace(" 0.000228     0.00 0.000000", f" 0.000228     0.00{cells}")
    if cells == " 1.0":
        assert len(read("resperf", text.encode()).stretches) == 2
    else:
        with pytest.raises(ValueError, match="zip"):
            read("resperf", text.encode())


def test_an_interval_log_may_have_a_limited_number_of_buckets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_data.write_hlog(tmp_path / "x.hlog", [{"due": {1: 1, 2: 1}}, {"due": {3: 1, 4: 1}}], duration_s=0.5)
    log = (tmp_path / "x.hlog").read_bytes()
    monkeypatch.setattr("dnsrig.importers.hlog.MOST_BUCKETS_OF_ALL", 4)
    result = read("hlog", log)
    assert [(each.start_s, each.duration_s) for each in result.stretches] == [(0.0, 0.5), (0.5, 0.5)]
    assert (result.duration_s, result.started_ns) == (1.0, round(load_data.START_S * S))
    monkeypatch.setattr("dnsrig.importers.hlog.MOST_BUCKETS_OF_ALL", 3)
    with pytest.raises(ValueError, match="more than 3 buckets"):
        read("hlog", log)


PLAIN = Result(version="", basis="due", duration_s=1.0)


def of_two(*sent: int, tags: dict[str, dict[int, int]] | None = None) -> dict[str, Any]:
    """Stretches with this number of queries each."""
    return {"stretches": [Stretch(0.0, 1.0, sent=each, tags=tags or {}) for each in sent]}


@pytest.mark.parametrize(
    ("possible", "impossible"),
    [
        ({"duration_s": 0.0}, {"duration_s": -0.1}),
        ({"duration_s": 2.0**32}, {"duration_s": 2.0**32 + 1}),
        ({"stretches": [Stretch(2.0**32, 0.0)]}, {"stretches": [Stretch(-0.1, 0.0)]}),
        ({"stretches": [Stretch(0.0, 2.0**32)]}, {"stretches": [Stretch(0.0, 2.0**32 + 1)]}),
        ({"started_ns": 2**62 - 1}, {"started_ns": 2**62}),
        ({"started_ns": 0}, {"started_ns": -1}),
        ({"timeout_ns": 3_600 * S}, {"timeout_ns": 3_600 * S + 1}),
        ({"timeout_ns": None}, {"timeout_ns": -1}),
        ({"sent": 10**15}, {"sent": 10**15 + 1}),
        ({"answered": 0}, {"answered": -1}),
        ({"timeouts": 10**15}, {"timeouts": 10**15 + 1}),
        ({"rcodes": {"A": 10**15, "B": 0}}, {"rcodes": {"A": 10**15, "B": 1}}),
        (of_two(10**15, 0), of_two(10**15, 1)),
        (of_two(1, tags={"due": {5: 10**15}}), of_two(1, 1, tags={"due": {5: 10**15}})),
        ({"asked_qps": 0.0}, {"asked_qps": -1.0}),
        ({"asked_qps": None}, {"asked_qps": 2.0**62}),
        ({"capacity_qps": 2.0**61}, {"capacity_qps": 2.0**62}),
        ({"told": {"mean": 0.0}}, {"told": {"mean": -1.0}}),
        ({"figures": {"latency_ns": {"p99": None}}}, {"figures": {"latency_ns": {"p99": 2.0**62}}}),
        ({"rcodes": dict.fromkeys(map(str, range(5000)), 1)}, {"rcodes": dict.fromkeys(map(str, range(5001)), 1)}),
        ({"rcodes": {"x" * 100: 1}}, {"rcodes": {"x" * 101: 1}}),
        ({"axes": {"rate": "x" * 100}}, {"axes": {"rate": "x" * 101}}),
    ],
)
def test_both_sides_of_what_a_result_can_be(possible: dict[str, Any], impossible: dict[str, Any]) -> None:
    runs.check(replace(PLAIN, **possible))
    with pytest.raises(ValueError, match=r"a time|a moment|counts|a rate|response codes"):
        runs.check(replace(PLAIN, **impossible))


@pytest.mark.parametrize(
    ("name", "number", "folder"),
    [("mine", 1, "v01-mine"), ("a b/c", 12, "v12-a-b-c"), ("..", 3, "v03-result"), ("x" * 70, 100, "v100-" + "x" * 60)],
)
def test_the_folder_of_a_result_has_its_name(name: str, number: int, folder: str) -> None:
    assert runs._identifier(name, number) == folder


@pytest.mark.parametrize("seconds", [1, 2])
def test_an_export_as_dns_metrics_is_as_it_was(tmp_path: Path, seconds: int) -> None:
    """Three queries took 1 ms and one 2 ms; in the second second, four took 3 ms."""
    plan = load_data.LoadPlan(servers=["knot@system"], repeats=1, seconds=seconds)
    run = Run.open(load_data.build(tmp_path / "run", plan))
    counts = [{1 * MS: 3, 2 * MS: 1}, {3 * MS: 4}]
    load_data.write_hlog(run.trials[0].directory / "latency.hlog", [{"due": each} for each in counts[:seconds]])
    run = Run.open(run.directory)
    (path,) = export(run, "dns-metrics", tmp_path / "out")
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert found[0].pop("generator_version") == dnsrig.__version__
    assert [each["type"] for each in found] == ["header", *["stats_periodic"] * seconds, "stats_sum"]
    # The trial's clocks lie 1,735,732,800 s apart.
    begin_ns = 1_735_732_800 * S + run.trials[0].load.start_ns
    assert [(each["since"] - begin_ns, each["until"] - begin_ns) for each in found[1:]] == [
        *((number * S, (number + 1) * S) for number in range(seconds)),
        (0, seconds * S),
    ]
    assert found[0]["stats_interval"] == 1.0
    assert same(
        Path(__file__).parent / f"golden/exports/dns-metrics-{seconds}.json", json.dumps(found, indent=1) + "\n"
    )
