"""`replay prepare`: the same queries give the identical stream, whatever format, link layer or wrapping they come
in."""

from __future__ import annotations

import gzip
import json
import lzma
import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import captures
import lz4.frame
import pytest
import zstandard
from captures import START_NS, Query, datagram, expected, frame, links, pcap, queries

from dnsrig import paths

COMPRESSED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "zstd": zstandard.compress,
    "lz4": lz4.frame.compress,
}


def prepare(
    folder: Path, *arguments: str | Path, status: int = 0, stdin: bytes = b""
) -> tuple[bytes, dict[str, Any], str]:
    """The stream, the summary, and what was said to people."""
    out = folder / "stream"
    command = [str(paths.engine()), "replay", "prepare", "--out", str(out), *map(str, arguments)]
    done = subprocess.run(command, input=stdin, capture_output=True, check=False)
    assert done.returncode == status, done.stderr.decode()
    summary = json.loads(done.stdout) if done.stdout else {}
    if summary:
        assert_balanced(summary["ledger"])
    return out.read_bytes() if out.exists() else b"", summary, done.stderr.decode()


def assert_balanced(ledger: dict[str, dict[str, int]]) -> None:
    """At each level the parts add up to the whole."""
    packets, fragments, datagrams, messages = (
        dict(ledger[name]) for name in ("packets", "fragments", "datagrams", "messages")
    )
    assert packets["datagrams"] == datagrams["whole"] and packets["fragments"] == fragments["read"]
    assert datagrams["udp"] == messages["udp"]
    assert messages.pop("from_servers") <= messages["kept"]
    assert messages.pop("truncated") <= messages["answers"]
    for level, wholes in (
        (packets, ["read"]),
        (fragments, ["read"]),
        (datagrams, ["whole", "reassembled"]),
        (messages, ["udp", "tcp", "records"]),
    ):
        assert sum(level.pop(name) for name in wholes) == sum(level.values()), level


def write(path: Path, packets: list[tuple[int, bytes]], **options: Any) -> Path:
    path.write_bytes(pcap(packets, **options))
    return path


def frames(found: list[Query]) -> list[tuple[int, bytes]]:
    return [(query.time_ns, frame(datagram(query))) for query in found]


@pytest.mark.parametrize("v6", [False, True], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("link", list(links(datagram(queries()[0]))))
def test_every_link_layer_gives_the_same_stream(tmp_path: Path, link: str, v6: bool) -> None:
    captured = captures.write(tmp_path / "capture", queries(v6), lambda packet: links(packet)[link])
    stream, summary, _ = prepare(tmp_path, captured)
    assert stream == expected(queries(v6))
    assert summary["ledger"]["messages"]["kept"] == 5


@pytest.mark.parametrize("nano", [False, True], ids=["us", "ns"])
@pytest.mark.parametrize("big", [False, True], ids=["little", "big"])
def test_both_byte_orders_and_units_of_time_give_the_same_stream(tmp_path: Path, big: bool, nano: bool) -> None:
    captured = write(tmp_path / "capture", frames(queries()), big=big, nano=nano)
    assert prepare(tmp_path, captured)[0] == expected(queries())


@pytest.mark.parametrize("v6", [False, True], ids=["IPv4", "IPv6"])
def test_fragments_and_extension_headers_give_the_same_stream(tmp_path: Path, v6: bool) -> None:
    found = queries(v6)
    pieces = [(query.time_ns, frame(piece)) for query in found for piece in captures.fragmented(datagram(query))]
    stream, summary, _ = prepare(tmp_path, write(tmp_path / "capture", pieces))
    assert stream == expected(found)
    assert summary["ledger"]["datagrams"]["reassembled"] >= 1 and summary["ledger"]["fragments"]["repeated"] >= 1
    extended = [(query.time_ns, frame(captures.with_extensions(datagram(query)))) for query in found]
    assert prepare(tmp_path, write(tmp_path / "capture", extended))[0] == expected(found)


def test_what_is_no_query_is_accounted_for(tmp_path: Path) -> None:
    packets = [*frames(queries()), *captures.noise(START_NS)]
    stream, summary, said = prepare(tmp_path, write(tmp_path / "capture", packets))
    assert stream == expected(queries())
    ledger = summary["ledger"]
    assert ledger["packets"] == {
        "read": 16,
        "datagrams": 13,
        "fragments": 1,
        "unknown_link": 0,
        "not_ip": 1,
        "malformed": 1,
    }
    assert ledger["fragments"]["incomplete"] == 1
    datagrams = {
        "whole": 13,
        "reassembled": 0,
        "udp": 11,
        "tcp_segments": 0,
        "tcp_answers": 0,
        "other_protocol": 1,
        "other_port": 1,
    }
    assert ledger["datagrams"] == datagrams | {"cut": 0, "malformed": 0}
    parts = {
        "kept": 5,
        "from_servers": 0,
        "answers": 1,
        "truncated": 0,
        "upstream": 1,
        "other_server": 1,
        "other_operation": 1,
        "other_port": 1,
        "malformed": 1,
    }
    assert ledger["messages"] == parts | {
        "udp": 11,
        "tcp": 0,
        "records": 0,
        "other_record": 0,
        "not_in_share": 0,
        "outside_cut": 0,
        "clients_beyond_memory": 0,
    }
    assert "192.0.2.53 was chosen because 71.4 % of the first 7 queries went there; others: 198.51.100.7 2" in said


def test_the_server_can_be_told(tmp_path: Path) -> None:
    captured = write(tmp_path / "capture", [*frames(queries()), *captures.noise(START_NS)])
    _, summary, said = prepare(tmp_path, captured, "--server", captures.ELSEWHERE)
    assert (summary["stream"]["queries"], summary["servers"], "chosen" in said) == (2, [captures.ELSEWHERE], False)
    _, summary, _ = prepare(tmp_path, captured, "--server", captures.ELSEWHERE, "--server", captures.SERVER)
    assert summary["stream"]["queries"] == 7
    _, _, said = prepare(tmp_path, captured, "--server", "192.0.2.99", status=2)
    assert "no query was found in 16 packets or records" in said and "hint: " in said


def test_what_a_resolver_asks_is_told_from_what_its_clients_ask(tmp_path: Path) -> None:
    """Clients ask a resolver, and it asks one other server more often than they ask it: that one is the busiest."""
    found = queries()
    upstream = [replace(query, client=captures.SERVER, server=captures.ELSEWHERE) for query in found]
    again = [replace(query, time_ns=query.time_ns + 1, port=query.port + 1) for query in upstream]
    captured = write(tmp_path / "capture", frames([*found, *upstream, *again]))
    _, summary, said = prepare(tmp_path, captured)
    messages = summary["ledger"]["messages"]
    assert summary["servers"] == [captures.ELSEWHERE] and messages["other_server"] == len(found)
    assert messages["from_servers"] == messages["kept"] == len(upstream + again)
    assert f"{len(upstream + again)} queries kept are from addresses that others ask" in said
    _, summary, said = prepare(tmp_path, captured, "--server", captures.SERVER)
    messages = summary["ledger"]["messages"]
    assert (messages["kept"], messages["from_servers"], messages["upstream"]) == (5, 0, 10) and "others ask" not in said
    _, summary, _ = prepare(tmp_path, captured, "--server", captures.SERVER, "--server", captures.ELSEWHERE)
    assert (summary["ledger"]["messages"]["kept"], summary["ledger"]["messages"]["from_servers"]) == (15, 10)


def test_order_of_packets_and_number_of_files_do_not_matter(tmp_path: Path) -> None:
    packets = frames(queries())
    stream, summary, said = prepare(
        tmp_path, write(tmp_path / "capture", [packets[4], packets[1], packets[0], *packets[2:4]])
    )
    assert stream == expected(queries())
    assert summary["times_backwards"] == 2 and "2 packets are earlier" in said
    halves = [write(tmp_path / "second", packets[2:]), write(tmp_path / "first", packets[:2])]
    stream, summary, _ = prepare(tmp_path, *halves)
    assert stream == expected(queries())
    assert [capture["items"] for capture in summary["captures"]] == [3, 2]


@pytest.mark.parametrize("form", [captures.pcapng, captures.pcapng_big], ids=["little", "big"])
def test_pcapng_gives_the_same_stream(tmp_path: Path, form: Callable[[captures.Written], bytes]) -> None:
    (tmp_path / "capture").write_bytes(form(frames(queries())))
    stream, summary, _ = prepare(tmp_path, tmp_path / "capture")
    assert stream == expected(queries()) and summary["captures"][0]["format"] == "pcapng"


def test_pcapng_by_scapy_gives_the_same_stream(tmp_path: Path) -> None:
    captures.pcapng_by_scapy(tmp_path / "capture", frames(queries()))
    assert prepare(tmp_path, tmp_path / "capture")[0] == expected(queries())


@pytest.mark.parametrize("name", list(COMPRESSED))
@pytest.mark.parametrize("form", [pcap, captures.pcapng], ids=["pcap", "pcapng"])
def test_compression_changes_nothing(tmp_path: Path, name: str, form: Callable[[captures.Written], bytes]) -> None:
    stream, summary, _ = prepare(tmp_path, "-", stdin=COMPRESSED[name](form(frames(queries()))))
    assert stream == expected(queries()) and summary["captures"][0]["compression"] == name


def test_a_cut_archive_gives_what_was_whole(tmp_path: Path) -> None:
    packed = gzip.compress(pcap(frames(queries()) * 100))
    _, summary, said = prepare(tmp_path, "-", stdin=packed[: len(packed) // 2])
    assert 0 < summary["stream"]["queries"] < 500 and "standard input is not read behind byte" in said


@pytest.mark.parametrize("v6", [False, True], ids=["IPv4", "IPv6"])
def test_tcp_in_any_pieces_gives_the_same_stream(tmp_path: Path, v6: bool) -> None:
    found = queries(v6)
    whole, reordered, overlapping = (
        [(0, 9999)],
        [(20, 9999), (0, 20), (20, 9999)],
        [(0, 1), (0, 20), (10, 25), (20, 9999)],
    )
    for pieces in (whole, reordered, overlapping):
        packets = [
            packet
            for number, query in enumerate(found)
            for packet in captures.segments(replace(query, port=query.port + number), 2**32 - 10, pieces)
        ]
        stream, summary, _ = prepare(tmp_path, write(tmp_path / "capture", packets))
        assert stream == expected(found, tcp=True)
        assert summary["ledger"]["tcp_segments"]["connections"] == summary["ledger"]["messages"]["tcp"] == 5
    begins_later = captures.segments(found[0], 7, whole, with_syn=False)
    assert prepare(tmp_path, write(tmp_path / "capture", begins_later))[0] == expected(found[:1], tcp=True)


@pytest.mark.parametrize("v6", [False, True], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize(
    "form",
    [captures.dnstap, captures.cdns, partial(captures.cdns, indefinite=True), partial(captures.dnstap, kind=1)],
    ids=["dnstap of a resolver", "C-DNS", "C-DNS of indefinite length", "dnstap of an authoritative"],
)
def test_what_servers_write_down_gives_the_same_stream(
    tmp_path: Path, form: Callable[[list[Query]], bytes], v6: bool
) -> None:
    (tmp_path / "capture").write_bytes(form(queries(v6)))
    stream, summary, _ = prepare(tmp_path, tmp_path / "capture")
    assert stream == expected(queries(v6))
    messages = summary["ledger"]["messages"]
    assert messages["records"] == messages["kept"] + messages["answers"] and messages["kept"] == 5


def test_what_a_resolver_asks_itself_is_no_query_of_a_client(tmp_path: Path) -> None:
    (tmp_path / "capture").write_bytes(captures.dnstap(queries(), kind=3))
    _, summary, _ = prepare(tmp_path, tmp_path / "capture", status=2)
    assert (summary["ledger"]["messages"]["upstream"], summary["ledger"]["messages"]["answers"]) == (5, 5)


def test_a_pipe_is_a_capture_too(tmp_path: Path) -> None:
    assert prepare(tmp_path, "-", stdin=pcap(frames(queries())))[0] == expected(queries())


def test_a_cut_capture_gives_what_was_whole_and_says_so(tmp_path: Path) -> None:
    captured = write(tmp_path / "capture", frames(queries()))
    captured.write_bytes(captured.read_bytes()[:-1])
    stream, _, said = prepare(tmp_path, captured)
    assert stream == expected(queries()[:4]) and "capture is cut at byte" in said


def test_packets_that_the_capture_cut_are_counted(tmp_path: Path) -> None:
    packets = [(when_ns, packet[: 42 + 200]) for when_ns, packet in frames(queries())]
    stream, summary, said = prepare(tmp_path, write(tmp_path / "capture", packets))
    assert summary["ledger"]["datagrams"]["cut"] == 1 and "tcpdump -s 0" in said
    assert stream == expected([query for query in queries() if len(query.wire) < 200])


def test_times_that_jump_by_years_shorten_to_the_longest_gap(tmp_path: Path) -> None:
    found = queries()
    jumped = [Query(0, found[0].client, found[0].port, found[0].wire), *found[1:]]
    stream, summary, said = prepare(tmp_path, write(tmp_path / "capture", frames(jumped)), "--gap-s", "0.0015")
    assert summary["stream"]["gaps"] == 3 and summary["stream"]["gaps_ns"] == found[-1].time_ns - 4_500_000
    assert summary["stream"]["duration_ns"] == 4_500_000 and "shortened" in said and len(stream) == len(expected(found))


def test_a_capture_that_has_packets_twice_is_named(tmp_path: Path) -> None:
    twice = [packet for packet in frames(queries()) for _ in range(2)]
    _, summary, said = prepare(tmp_path, write(tmp_path / "capture", twice))
    assert summary["stream"]["repeated_at_once"] == 5 and "the capture has packets twice" in said
    assert "twice" not in prepare(tmp_path, write(tmp_path / "capture", frames(queries())))[2]


def test_addresses_are_stored_if_asked_for(tmp_path: Path) -> None:
    stream, _, _ = prepare(tmp_path, write(tmp_path / "capture", frames(queries())), "--addresses")
    mapped = bytes(10) + b"\xff\xff"
    assert stream.endswith(b"".join(mapped + bytes([203, 0, 113, host]) for host in (1, 2, 3)))


@pytest.mark.parametrize("content", [b"", b"\0" * 100, b"DNSRSTRM" + bytes(56)])
def test_what_is_no_capture_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "capture").write_bytes(content)
    stream, _, said = prepare(tmp_path, tmp_path / "capture", status=2)
    assert stream == b"" and "is no capture" in said and "hint: " in said
    assert [path.name for path in tmp_path.iterdir()] == ["capture"]
