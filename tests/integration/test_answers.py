"""Answers of real servers: compared with what the user expects, and with each other."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from conftest import DNSRIG
from test_running_server import Place, unbound

from dnsrig.runs.trial import Trial
from dnsrig.traps import all_traps

LIMIT_S = 60
ZONE = """\
$ORIGIN mine.example.
@ 3600 IN SOA ns hostmaster 1 3600 600 86400 300
@ 3600 IN NS ns
@ 3600 IN MX 10 a
@ 3600 IN MX 20 b
ns 3600 IN A 198.18.0.1
"""
COMMON = """\
title = "Answers"
question = "Are they right?"
limit_s = 60
repeats = 1
dataset = { kind = "files", files = "mine.zone" }
hosts.primary.server = "knot@forky"
"""
EXPECTING = """\
procedure = "latency"
options = { rate_qps = 300, duration_s = 1, warmup_s = 0 }
queries = { file = "queries.txt", expect = "expected.txt", passes = 50 }
"""


def ports(count: int) -> list[int]:
    """Ports that nobody has."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]


def test_a_wrong_answer_is_counted_by_its_kind_and_named(measure: Callable[..., Trial], tmp_path: Path) -> None:
    (tmp_path / "mine.zone").write_text(ZONE)
    (tmp_path / "queries.txt").write_text("mine.example MX\nns.mine.example A\nno.mine.example A\n")
    expected = "mine.example MX 20 B.mine.example.\nmine.example MX 10 a.mine.example\nno.mine.example A NXDOMAIN\n"
    (tmp_path / "expected.txt").write_text(f"{expected}ns.mine.example A 198.18.0.2\n")
    (tmp_path / "mine.toml").write_text(COMMON + EXPECTING)
    trial = measure(experiment=str(tmp_path / "mine.toml"))
    assert (trial.load.answered, trial.load.wrong["rrset"], sum(trial.load.wrong.values())) == (100, 50, 50)
    assert trial.record.outcome == "invalid" and "ns.mine.example. A: other records" in trial.record.reason
    assert trial.metrics["wrong_share_percent"] is not None


def test_two_servers_with_one_zone_answer_alike(measure: Callable[..., Trial], tmp_path: Path) -> None:
    (tmp_path / "mine.zone").write_text(ZONE)
    (tmp_path / "mine.toml").write_text(f'{COMMON}procedure = "answers"\nhosts.reference.server = "bind@forky"\n')
    trial = measure(experiment=str(tmp_path / "mine.toml"))
    assert trial.record.outcome == "done", trial.record.reason
    assert trial.record.instruments["compare-answers"]["same"] > 3
    assert trial.metrics["answers_different"] == 0 and trial.metrics["answers_from_neither"] == 0
    conclusion = all_traps()["answers-differ"].after(trial)
    assert conclusion is not None and conclusion.verdict == "clear"


def test_the_changed_rrset_and_only_it_is_named(tmp_path: Path) -> None:
    """Two servers that run already, as `dnsrig bench` compares them: one has another address for one name."""
    numbers = ports(4)
    places = [Place(*numbers[:2]), Place(*numbers[2:])]
    (tmp_path / "queries.txt").write_text(
        "www.example.com A\nmail.example.com A\nmail.example.com AAAA\nno.example.com A\n"
    )
    with ExitStack() as running:
        for number, place in enumerate(places, 1):
            (folder := tmp_path / str(number)).mkdir()
            record = f'  local-data: "mail.example.com. A 192.0.2.{number}"\n'
            running.enter_context(unbound(place, folder, record))
        servers = [f"127.0.0.1:{place.udp}" for place in places]
        command = [*DNSRIG, "bench", *servers, "--compare-answers", "--queries", tmp_path / "queries.txt", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    summary = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == 1, done.stderr
    assert (summary["same"], summary["different"], summary["differences"]["rrset"]) == (3, 1, 1), summary
    (example,) = summary["examples"]
    assert example["query"] == "mail.example.com. A"
    assert [answer.rpartition(" ")[2] for answer in example["answers"]] == ["192.0.2.1", "192.0.2.2"]
