"""`replay compare`: a replay whose packets foreign tools captured, held against the stream that was replayed."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from captures import START_NS, Query, datagram, frame, message, pcap

from dnsrig import paths

MS = 10**6
CLIENTS_FROM = "198.19.0.0/16"


def run(*words: str | Path, status: int = 0) -> tuple[dict[str, Any], str]:
    done = subprocess.run([str(paths.engine()), "replay", *map(str, words)], capture_output=True, check=False)
    assert done.returncode == status, done.stderr.decode()
    return json.loads(done.stdout) if done.stdout else {}, done.stderr.decode()


def stream(path: Path, queries: list[Query], *words: str) -> Path:
    capture = path.with_suffix(".pcap")
    capture.write_bytes(pcap([(query.time_ns, frame(datagram(query))) for query in queries], nano=True))
    run("prepare", capture, "--out", path, *words)
    return path


def asked(number: int, client: str) -> Query:
    return Query(START_NS + 10 * number * MS, client, 4000, message(f"n{number}.example", number=number))


SENT = [asked(number, f"10.0.0.{number % 10}") for number in range(100)]
CAME = [
    replace(query, client=f"198.19.0.{number % 10 + 1}", wire=number.to_bytes(2) + query.wire[2:])
    for number, query in enumerate(SENT)
]
"""With the addresses and ids that a replay gives."""


def compared(folder: Path, came: list[Query], *words: str) -> tuple[dict[str, Any], str]:
    arrived = stream(folder / "arrived", came, "--addresses")
    return run("compare", stream(folder / "sent", SENT), arrived, "--clients-from", CLIENTS_FROM, *words)


def test_a_replay_that_is_exact_differs_in_nothing(tmp_path: Path) -> None:
    found, said = compared(tmp_path, CAME)
    assert (found["queries"], found["arrived"], found["missing"], found["unknown"]) == (100, 100, 0, 0)
    assert (found["bytes"], found["out_of_order"]) == (found["arrived_bytes"], 0)
    assert found["gap_deviation_ns"]["max"] == 0 and found["gap_ns"] == found["due_gap_ns"]
    assert "100 of 100 queries arrived byte by byte (100.0000 %)" in said


def test_what_differs_is_told(tmp_path: Path) -> None:
    changed = replace(CAME[10], wire=CAME[10].wire[:-1] + b"\x03")
    foreign = replace(CAME[20], client="198.18.0.1")
    late = replace(CAME[30], time_ns=CAME[30].time_ns + 25 * MS)
    came = [query for number, query in enumerate(CAME) if number not in (5, 10, 20, 30)]
    found, _ = compared(tmp_path, [*came, changed, foreign, late])
    # One did not come, one came as another, one from another address.
    assert (found["missing"], found["unknown"], found["arrived"]) == (3, 2, 99)
    assert found["out_of_order"] == 1 and found["out_of_order_max_ns"] == 5 * MS
    assert found["gap_deviation_ns"]["p50"] == 0


def test_a_lost_query_is_not_taken_for_an_equal_one_later(tmp_path: Path) -> None:
    again = [Query(START_NS + 2000 * number * MS, "10.0.0.1", 4000, message("n.example")) for number in range(9)]
    came = [replace(query, client="198.19.0.1") for number, query in enumerate(again) if number != 4]
    arrived = stream(tmp_path / "arrived", came, "--addresses")
    found, _ = run("compare", stream(tmp_path / "sent", again), arrived, "--clients-from", CLIENTS_FROM)
    assert (found["missing"], found["unknown"], found["out_of_order"]) == (1, 0, 0)


def test_half_of_a_stream_at_twice_the_speed(tmp_path: Path) -> None:
    came = [replace(query, time_ns=START_NS + (query.time_ns - START_NS) // 2) for query in CAME[:50]]
    found, _ = compared(tmp_path, came, "--speed", "2", "--duration-s", "0.25")
    assert (found["queries"], found["missing"], found["unknown"]) == (50, 0, 0)
    assert found["gap_deviation_ns"]["max"] == 0
    found, _ = compared(tmp_path, came)
    assert found["missing"] == 50 and found["gap_deviation_ns"]["p50"] >= 5 * MS


def test_a_stream_without_addresses_is_refused(tmp_path: Path) -> None:
    arrived = stream(tmp_path / "arrived", CAME)
    sent = stream(tmp_path / "sent", SENT)
    _, said = run("compare", sent, arrived, "--clients-from", CLIENTS_FROM, status=2)
    assert "prepare --addresses" in said


@pytest.mark.parametrize("words", [["--speed", "0"], ["--clients-from", "198.19.0.1/16"]])
def test_bad_arguments_are_refused(words: list[str]) -> None:
    _, said = run("compare", "sent", "arrived", *words, status=2)
    assert "error" in said
