"""`replay prepare` with operations: what they leave in the stream; `replay describe`: what it says of one."""

from __future__ import annotations

import json
import struct
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from captures import START_NS, Query, datagram, frame, message, pcap

from dnsrig import paths

S = 10**9


class Record(NamedTuple):
    due_ns: int
    client: int
    transport: int
    flags: int
    wire: bytes


def run(*words: str | Path, status: int = 0) -> tuple[dict[str, Any], str]:
    done = subprocess.run([str(paths.engine()), "replay", *map(str, words)], capture_output=True, check=False)
    assert done.returncode == status, done.stderr.decode()
    return json.loads(done.stdout) if done.stdout else {}, done.stderr.decode()


def records(stream: Path) -> list[Record]:
    data, at, found = stream.read_bytes(), 64, []
    for _ in range(struct.unpack_from("<Q", data, 16)[0]):
        due_ns, client, length, transport, flags = struct.unpack_from("<qIHBB", data, at)
        found.append(Record(due_ns, client, transport, flags, data[at + 16 : at + 16 + length]))
        at += 16 + length + -length % 8
    assert at == len(data)
    return found


CLIENTS, QUERIES = 200, 5


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 clients, each with 5 queries of its own, over 100 s."""
    path = tmp_path_factory.mktemp("capture") / "capture"
    found = [
        Query(
            START_NS + number * S // 10,
            f"10.0.0.{number % CLIENTS}",
            4000,
            message(f"c{number % CLIENTS}.example", number=number, want_dnssec=number % 2 == 0),
        )
        for number in range(CLIENTS * QUERIES)
    ]
    path.write_bytes(pcap([(query.time_ns, frame(datagram(query))) for query in found]))
    return path


def prepared(capture: Path, folder: Path, *words: str) -> tuple[list[Record], dict[str, Any]]:
    summary, _ = run("prepare", capture, "--out", folder / "stream", *words)
    return records(folder / "stream"), summary


def test_a_share_keeps_all_queries_of_some_clients(capture: Path, tmp_path: Path) -> None:
    found, summary = prepared(capture, tmp_path, "--keep-share", "25%")
    names = Counter(record.wire[12:].split(b"\0")[0] for record in found)
    assert set(names.values()) == {QUERIES} and 30 <= len(names) <= 70
    assert summary["ledger"]["messages"]["not_in_share"] == CLIENTS * QUERIES - len(found)
    again, _ = prepared(capture, tmp_path, "--keep-share", "25%")
    others, _ = prepared(capture, tmp_path, "--keep-share", "25%", "--seed", "2")
    assert again == found and others != found


def test_a_cut_begins_with_its_first_query(capture: Path, tmp_path: Path) -> None:
    found, summary = prepared(capture, tmp_path, "--cut", "10..20")
    assert (len(found), found[0].due_ns, found[-1].due_ns) == (100, 0, 99 * S // 10)
    assert summary["stream"]["first_wall_ns"] == START_NS + 10 * S
    assert summary["ledger"]["messages"]["outside_cut"] == 900


def test_speed_changes_times_only(capture: Path, tmp_path: Path) -> None:
    slow, _ = prepared(capture, tmp_path)
    fast, _ = prepared(capture, tmp_path, "--speed", "4")
    assert [record.due_ns for record in fast] == [record.due_ns // 4 for record in slow]
    assert [record[1:] for record in fast] == [record[1:] for record in slow]


def test_more_clients_ask_the_same_at_other_times(capture: Path, tmp_path: Path) -> None:
    once, _ = prepared(capture, tmp_path)
    found, summary = prepared(capture, tmp_path, "--multiply", "3")
    assert len(found) == 3 * len(once) and summary["stream"]["clients"] == 3 * CLIENTS
    assert summary["stream"]["duration_ns"] == once[-1].due_ns
    by_client = Counter(record.client for record in found)
    assert set(by_client.values()) == {QUERIES}
    assert Counter(record.wire for record in found) == {record.wire: 3 for record in once}
    # Copies of a query lie a third of the stream apart.
    wire = once[0].wire
    times = sorted(record.due_ns for record in found if record.wire == wire)
    assert [round(time_ns / once[-1].due_ns, 3) for time_ns in times] == [0, 0.333, 0.667]


def test_transports_are_changed_by_client(capture: Path, tmp_path: Path) -> None:
    found, _ = prepared(capture, tmp_path, "--transport", "dot=30%", "--transport", "tcp=20%")
    transports: dict[int, set[int]] = {}
    for record in found:
        transports.setdefault(record.client, set()).add(record.transport)
    assert all(len(used) == 1 for used in transports.values())
    counts = Counter(used.pop() for used in transports.values())
    assert 40 <= counts[2] <= 80 and 22 <= counts[1] <= 60
    assert sum(record.flags & 2 != 0 for record in found) == counts[1] + counts[2]
    _, said = run(
        "prepare", capture, "--out", tmp_path / "x", "--transport", "dot=60%", "--transport", "tcp=60%", status=2
    )
    assert "more than 100 % together" in said


def test_edns_and_do_are_those_of_clients(capture: Path, tmp_path: Path) -> None:
    def of_clients(*words: str) -> dict[int, set[tuple[int, bool]]]:
        found: dict[int, set[tuple[int, bool]]] = {}
        for record in prepared(capture, tmp_path, *words)[0]:
            # OPT is the last record, and its flags stand four bytes before the end.
            additional = record.wire[11]
            found.setdefault(record.client, set()).add((additional, bool(additional and record.wire[-4] & 0x80)))
        return found

    clients = of_clients("--edns", "60%", "--do-share", "0.3")
    assert {len(kinds) for kinds in clients.values()} == {1}
    kinds = Counter(next(iter(kinds)) for kinds in clients.values())
    assert 45 <= kinds[1, True] <= 75 and 100 <= kinds[1, True] + kinds[1, False] <= 140
    assert of_clients("--do-share", "0").keys() == clients.keys()
    assert not any(dnssec_ok for kinds in of_clients("--do-share", "0").values() for _, dnssec_ok in kinds)
    out = tmp_path / "none"
    _, said = run("prepare", capture, "--out", out, "--edns", "10%", "--do-share", "20%", status=2)
    assert "DO is a flag of EDNS" in said and not out.exists()


def test_an_anonymised_stream_has_other_names_of_the_same_structure(capture: Path, tmp_path: Path) -> None:
    plain, _ = prepared(capture, tmp_path)
    found, summary = prepared(capture, tmp_path, "--anonymise", "--keep-tld")
    assert [record[:4] for record in found] == [record[:4] for record in plain]
    assert summary["is_anonymised"] and summary["stream"]["first_wall_ns"] == 0
    names: dict[bytes, set[bytes]] = {}
    for old, new in zip(plain, found):
        names.setdefault(question(old.wire), set()).add(question(new.wire))
        assert len(old.wire) == len(new.wire) and old.wire[:2] == new.wire[:2]
    # Names that were equal stay so, and end as they did; hardly any other is what it was.
    assert all(len(others) == 1 for others in names.values())
    assert all(name.endswith(b"\x07example\0") for others in names.values() for name in others)
    assert sum(name in others for name, others in names.items()) < 20
    _, said = run("prepare", capture, "--out", tmp_path / "x", "--anonymise")
    assert "still may tell of someone" in said
    # Nobody can make the same names again.
    again, _ = prepared(capture, tmp_path, "--anonymise", "--keep-tld")
    assert [record.wire for record in again] != [record.wire for record in found]


def question(wire: bytes) -> bytes:
    return wire[12 : wire.index(b"\0", 12) + 1]


def test_where_there_is_no_query_nothing_is_written(capture: Path, tmp_path: Path) -> None:
    (tmp_path / "stream").write_bytes(b"as it was")
    _, said = run("prepare", capture, "--out", tmp_path / "stream", "--cut", "1000..2000", status=2)
    assert "no query was found" in said and (tmp_path / "stream").read_bytes() == b"as it was"
    assert [path.name for path in tmp_path.iterdir()] == ["stream"]


def test_a_stream_is_described(capture: Path, tmp_path: Path) -> None:
    prepared(capture, tmp_path)
    summary, said = run("describe", tmp_path / "stream")
    assert summary["stream"]["queries"] == 1000 and summary["busiest_second"] == 10
    assert summary["types"] == [["A", 1000]] and summary["transports"]["udp"] == 1000
    assert (summary["edns"], summary["dnssec_ok"], summary["distinct_questions"]) == (500, 500, CLIENTS)
    assert summary["recursion_desired"] == 1000
    clients = {"median": 5, "largest": 5, "heaviest_1_percent": 10, "heaviest_10_percent": 100}
    assert summary["clients"] == clients | {"below_10": 200, "above_100": 0}
    assert sum(summary["intervals"]) == 1000 and len(summary["intervals"]) == 60
    assert "1,000 queries from 200 clients in 99.900 s: 10 per second" in said and "█" in said


def test_a_cache_answers_what_was_asked_before(capture: Path, tmp_path: Path) -> None:
    prepared(capture, tmp_path)
    names = tmp_path / "names"
    names.write_text("".join(f"{name}\t3600\n" for name in ("a.example", "b.example")))
    summary, said = run("describe", "--cache", "--names", names, tmp_path / "stream")
    cache = summary["cache"]
    assert [minute["queries"] for minute in cache["minutes"]] == [600, 400]
    assert sum(minute["hits"] for minute in cache["minutes"]) <= 1000 - summary["distinct_questions"]
    assert cache["names"] == CLIENTS and cache["missing"] == 0 and "cache" in said


def test_what_is_no_stream_is_refused(capture: Path, tmp_path: Path) -> None:
    prepared(capture, tmp_path)
    whole = (tmp_path / "stream").read_bytes()
    (tmp_path / "cut").write_bytes(whole[:-1])
    for path, sentence in (
        (capture, "is not a stream"),
        (tmp_path / "cut", "still to come"),
        (tmp_path / "none", "cannot read"),
    ):
        _, said = run("describe", path, status=2)
        assert sentence in said and "hint: " in said
