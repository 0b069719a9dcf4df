"""Queries of the user's own: a server gets what the file asks, with the EDNS that the experiment sets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

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
cookie = true
padding = true
client_subnet = "192.0.2.0/24"
"""


def test_a_server_is_asked_what_the_file_says(measure: Callable[..., Trial], tmp_path: Path) -> None:
    """Two of three names exist; the file is asked 50 times, and the load ends then."""
    (tmp_path / "queries.txt").write_text("z000000.example SOA\nwww.z000001.example A D\nmissing.z000002.example TXT\n")
    (tmp_path / "mine.toml").write_text(EXPERIMENT)
    trial = measure(experiment=str(tmp_path / "mine.toml"))
    record = trial.record
    assert record.outcome == "done", record.reason
    assert trial.load.rcodes == {"NOERROR": 100, "NXDOMAIN": 50}
    queries = record.spec.queries
    assert queries is not None
    assert (queries.name, queries.queries, queries.types) == ("queries.txt", 3, {"A": 1, "SOA": 1, "TXT": 1})
