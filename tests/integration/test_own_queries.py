"""Queries of the user's own: a server gets what the file or the capture asks, with the EDNS that the experiment
sets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import tomli_w

from dnsrig.experiment import bench
from dnsrig.runs.trial import Trial

EXPERIMENT = """\
title = "My queries"
question = "Are they answered?"
procedure = "latency"
limit_s = 60
repeats = 1
dataset = { kind = "tiny-zones", zones = 3, records_per_zone = 8 }
hosts.primary.server = "knot@forky"
options = { rate_qps = 300, duration_s = 1, warmup_s = 0 }

[queries]
file = "queries.txt"
passes = 50
"""
EDNS = """\
cookie = true
padding = true
client_subnet = "192.0.2.0/24"
"""


def test_a_server_is_asked_what_the_file_says(measure: Callable[..., Trial], tmp_path: Path) -> None:
    """Two of three names exist; the file is asked 50 times, and the load ends then."""
    (tmp_path / "queries.txt").write_text("z000000.example SOA\nwww.z000001.example A D\nmissing.z000002.example TXT\n")
    (tmp_path / "mine.toml").write_text(EXPERIMENT + EDNS)
    trial = measure(experiment=str(tmp_path / "mine.toml"))
    record = trial.record
    assert record.outcome == "done", record.reason
    assert trial.load.rcodes == {"NOERROR": 100, "NXDOMAIN": 50}
    queries = record.spec.queries
    assert queries is not None
    assert (queries.name, queries.queries, queries.types) == ("queries.txt", 3, {"A": 1, "SOA": 1, "TXT": 1})


ZONE = """\
$ORIGIN mine.example.
@ 3600 IN SOA ns hostmaster 1 3600 600 86400 300
@ 3600 IN NS ns
ns 3600 IN A 198.18.0.1
"""


def capture(folder: Path, names: list[tuple[str, str]]) -> Path:
    """A pcap in which two clients ask for ``names``, one after the other."""
    import captures  # not above: scapy, which it needs, takes a second to load in each worker

    found = [
        captures.Query(
            captures.START_NS + number * 100_000_000,
            f"203.0.113.{1 + number % 2}",
            40_000 + number,
            captures.message(name, kind, number=number),
        )
        for number, (name, kind) in enumerate(names)
    ]
    return captures.write(folder / "clients.pcap", found, lambda packet: (1, captures.frame(packet)))


def test_a_capture_is_a_file_of_queries(measure: Callable[..., Trial], tmp_path: Path) -> None:
    """Its queries are asked in their order, at the rate of the experiment instead of their times."""
    capture(tmp_path, [("z000000.example", "SOA"), ("missing.z000001.example", "TXT"), ("z000002.example", "NS")])
    (tmp_path / "mine.toml").write_text(EXPERIMENT.replace("queries.txt", "clients.pcap"))
    trial = measure(experiment=str(tmp_path / "mine.toml"))
    assert trial.record.outcome == "done", trial.record.reason
    assert trial.load.rcodes == {"NOERROR": 100, "NXDOMAIN": 50}
    queries = trial.record.spec.queries
    assert queries is not None and (queries.name, queries.queries) == ("clients.pcap", 3)
    assert queries.types == {"NS": 1, "SOA": 1, "TXT": 1}


def test_bench_replays_a_capture(measure: Callable[..., Trial], tmp_path: Path) -> None:
    """Each client asks its own queries, once, at their times."""
    file = capture(tmp_path, [("mine.example", "SOA"), ("no.mine.example", "A"), ("ns.mine.example", "A")])
    (tmp_path / "mine.example.zone").write_text(ZONE)
    asked = bench.Question(["knot@forky"], capture=file, zones=[tmp_path / "mine.example.zone"])
    (tmp_path / "bench.toml").write_text(tomli_w.dumps(bench.experiment(asked)))
    trial = measure("options.warmup_s=0", experiment=str(tmp_path / "bench.toml"))
    assert trial.record.outcome == "done", trial.record.reason
    assert trial.load.rcodes == {"NOERROR": 2, "NXDOMAIN": 1}
    assert sorted(trial.clients["answered"]) == [1, 2]
