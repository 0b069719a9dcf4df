"""`replay prepare`: the same queries give the identical stream, whatever format, link layer or wrapping they come
in."""

from __future__ import annotations

import gzip
import json
import lzma
import struct
import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import captures
import dns.flags
import dns.message
import lz4.frame
import pytest
import zstandard
from captures import START_NS, Query, datagram, expected, frame, links, pcap, queries
from scapy.layers.inet import IP, TCP, UDP
from scapy.packet import Raw

from dnsrig import paths

MS = 1_000_000

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
        "after_truncation": 0,
    }
    assert "not read    EtherType 0x0806 1, protocol 1 (ICMP) 1, UDP port 5000 1\n" in said
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


def answer(query: Query, after_ms: int, truncated: bool = False) -> tuple[int, bytes]:
    response = dns.message.make_response(dns.message.from_wire(query.wire))
    if truncated:
        response.flags |= dns.flags.TC
    packet = IP(src=query.server, dst=query.client) / UDP(sport=53, dport=query.port) / Raw(response.to_wire())
    return query.time_ns + after_ms * MS, frame(packet)


def test_only_what_had_no_answer_is_a_retransmission(tmp_path: Path) -> None:
    asked = Query(START_NS, "203.0.113.1", 40_000, captures.message("www.example.com"))
    again = [replace(asked, time_ns=asked.time_ns + number * 1000 * MS) for number in range(3)]
    packets = [*frames(again), answer(again[1], 5)]
    # Files of one direction each give the same, whichever comes first.
    for files in ([packets], [packets[:3], packets[3:]], [packets[3:], packets[:3]]):
        captured = [write(tmp_path / f"capture-{number}", file) for number, file in enumerate(files)]
        stream, summary, said = prepare(tmp_path, *captured)
        # The second came without an answer, the third one behind it.
        size = (len(stream) - 64) // 3
        flags = [stream[64 + size * number + 15] for number in range(3)]
        assert (flags, summary["stream"]["retransmissions"]) == ([0, 1, 0], 1), files
        assert "no answer was captured" not in said
    _, summary, said = prepare(tmp_path, write(tmp_path / "capture", packets[:3]))
    assert summary["stream"]["retransmissions"] == 2 and "no answer was captured: 2 queries" in said


def test_a_query_over_tcp_for_a_truncated_answer_is_not_asked_twice(tmp_path: Path) -> None:
    packets = []
    found = [
        Query(START_NS + number * 10 * MS, "203.0.113.1", 40_000 + number, captures.message(f"{number}.example"))
        for number in range(10)
    ]
    for query in found:
        over_tcp = replace(query, time_ns=query.time_ns + 2 * MS, port=query.port + 100)
        packets += [*frames([query]), answer(query, 1, truncated=True), *captures.segments(over_tcp, 7, [(0, 9999)])]
    own = Query(START_NS + 5000 * MS, "203.0.113.1", 50_000, captures.message("own.example"))
    packets += captures.segments(own, 7, [(0, 9999)])
    _, summary, said = prepare(tmp_path, write(tmp_path / "capture", packets))
    messages = summary["ledger"]["messages"]
    assert (messages["kept"], messages["after_truncation"], messages["tcp"]) == (11, 10, 11)
    assert summary["stream"]["queries"] == 11 and "10 queries over TCP followed truncated answers" in said


def test_answers_without_queries_tell_that_the_capture_lost_some(tmp_path: Path) -> None:
    found = [replace(queries()[0], time_ns=START_NS + number * MS, port=1000 + number) for number in range(100)]
    answers = [answer(query, 1) for query in found]
    _, summary, said = prepare(tmp_path, write(tmp_path / "capture", frames(found[:60]) + answers))
    assert summary["ledger"]["over_udp"] == {"queries": 60, "answers": 100}
    assert "the server gave 100 answers over UDP, and only 60 queries to it were captured" in said
    _, _, said = prepare(tmp_path, write(tmp_path / "capture", frames(found) + answers))
    assert "the capture lost queries" not in said


def test_a_server_that_wrote_down_answers_only_tells_what_was_asked(tmp_path: Path) -> None:
    # Of EDNS an answer tells that it was there, and in dnstap DO.
    for make, dnssec_ok in ((captures.cdns_answers, False), (captures.dnstap_answers, True)):
        with_edns = captures.message("a.example", "AAAA", number=2, use_edns=0, want_dnssec=dnssec_ok, payload=1232)
        wires = [with_edns, captures.message("b.example")]
        found = [Query(START_NS + number * MS, "203.0.113.1", 40_001, wire) for number, wire in enumerate(wires)]
        (tmp_path / "capture").write_bytes(make(found))
        stream, summary, said = prepare(tmp_path, tmp_path / "capture")
        assert stream == expected(found), make.__name__
        assert summary["from_answers"] == summary["ledger"]["messages"]["kept"] == 2
        assert "no query was written down, only answers: 2 queries are made of these" in said
    (tmp_path / "capture").write_bytes(captures.dnstap_answers(found, with_queries=True))
    stream, summary, said = prepare(tmp_path, tmp_path / "capture")
    assert stream == expected(found) and summary["from_answers"] == 0 and "only answers" not in said


@pytest.mark.parametrize("v6", [False, True], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("name", list(captures.wrapped(frame(datagram(queries()[0])))))
def test_wrapped_packets_give_the_same_stream(tmp_path: Path, name: str, v6: bool) -> None:
    packets = [(when_ns, frame(captures.wrapped(packet)[name])) for when_ns, packet in frames(queries(v6))]
    stream, summary, _ = prepare(tmp_path, write(tmp_path / "capture", packets))
    assert stream == expected(queries(v6)) and summary["ledger"]["messages"]["kept"] == 5


def test_cisco_hdlc_gives_the_same_stream(tmp_path: Path) -> None:
    captured = captures.write(tmp_path / "capture", queries(), lambda packet: (104, b"\x0f\0\x08\0" + bytes(packet)))
    assert prepare(tmp_path, captured)[0] == expected(queries())


def test_what_wraps_packets_and_is_not_read_is_named(tmp_path: Path) -> None:
    other = [
        IP(src="203.0.113.1", dst="203.0.113.2", proto=50) / Raw(bytes(64)),
        IP(src="203.0.113.1", dst="203.0.113.2") / UDP(sport=4500, dport=4500) / Raw(b"\1" * 64),
        IP(src="203.0.113.1", dst="203.0.113.2") / TCP(sport=50_000, dport=853) / Raw(b"\x16\3\1"),
    ]
    packets = [*frames(queries()), *((START_NS, frame(packet)) for packet in other)]
    said = prepare(tmp_path, write(tmp_path / "capture", packets))[2]
    assert "not read    protocol 50 (ESP) 1, UDP port 4500 (IPsec) 1, TCP port 853 (DNS over TLS or QUIC) 1" in said
    captured = tmp_path / "capture"
    captured.write_bytes(pcap(packets, link=147))
    said = prepare(tmp_path, captured, status=2)[2]
    assert "not read    link layer 147 8" in said


def test_dns_on_other_ports_is_named(tmp_path: Path) -> None:
    elsewhere = [
        (query.time_ns, frame(IP(src=query.client, dst=query.server) / UDP(sport=query.port, dport=5300) / query.wire))
        for query in queries()
    ]
    over_tcp = captures.segments(queries()[0], 7, [(0, 9999)], port=5301) * 3
    captured = write(tmp_path / "capture", [*elsewhere, *over_tcp])
    said = prepare(tmp_path, captured, status=2)[2]
    assert "messages on other ports look like DNS: UDP port 5300 5, TCP port 5301 3. To read" in said
    stream, _, said = prepare(tmp_path, captured, "--port", "5300")
    assert stream == expected(queries()) and "UDP port 5300" not in said


def test_a_clock_that_was_set_back_is_not_a_packet_out_of_order(tmp_path: Path) -> None:
    times = (0, 1000, -3600 * 10**9, 2000)
    found = [replace(queries()[0], time_ns=START_NS + at, port=port) for port, at in enumerate(times, 1000)]
    _, summary, said = prepare(tmp_path, write(tmp_path / "capture", frames(found)))
    assert (summary["times_backwards"], summary["back_max_ns"]) == (1, 3600 * 10**9 + 1000)
    assert (
        "1 packets are earlier than the one before, by at most 3600.000001 s" in said and "a clock was set back" in said
    )
    # Captures may be given in any order.
    captured = [write(tmp_path / name, frames(part)) for name, part in (("b", found[:2]), ("a", found[2:3]))]
    _, summary, said = prepare(tmp_path, *captured)
    assert summary["times_backwards"] == 0 and "clock" not in said


def test_what_the_capturing_program_dropped_is_said(tmp_path: Path) -> None:
    captured = tmp_path / "capture"
    captured.write_bytes(captures.pcapng(frames(queries())) + captures.statistics(dropped=(3, 40)))
    stream, summary, said = prepare(tmp_path, captured)
    assert stream == expected(queries()) and summary["captures"][0]["dropped"] == 43
    assert "the capturing program dropped 43 packets" in said
    captured.write_bytes(captures.pcapng(frames(queries())) + captures.statistics(dropped=(0, 0)))
    _, summary, said = prepare(tmp_path, captured)
    assert summary["captures"][0]["dropped"] == 0 and "dropped" not in said


def test_a_query_for_a_cookie_needs_no_question(tmp_path: Path) -> None:
    opt = "00 0029 04d0 00000000 000c" + "000a 0008 0102030405060708"
    cookie = bytes.fromhex("0007 0000 0000 0000 0000 0001" + opt)
    found = [Query(START_NS, "203.0.113.1", 40_000, cookie), *queries()[1:]]
    stream, summary, _ = prepare(tmp_path, write(tmp_path / "capture", frames(found)))
    assert stream == expected(found) and summary["ledger"]["messages"]["malformed"] == 0


def test_clients_without_room_for_their_numbers_wait(tmp_path: Path) -> None:
    # 64 MB have room for the numbers of 262,144 clients.
    count = 300_000
    head, tail = frame(datagram(queries()[0]))[:26], frame(datagram(queries()[0]))[30:]
    record = struct.pack("<IIII", 0, 0, len(head) + 4 + len(tail), len(head) + 4 + len(tail)) + head
    ends = [struct.pack(">I", 0x0A000000 + number % count) + tail for number in range(count + 5)]
    captured = tmp_path / "capture"
    captured.write_bytes(pcap([]) + record + record.join(ends))
    stream, summary, _ = prepare(tmp_path, captured, "--memory", "64M", "--addresses")
    assert (summary["stream"]["queries"], summary["stream"]["clients"]) == (count + 5, count)
    size = (len(stream) - 64 - 16 * count) // (count + 5)
    numbers = [int.from_bytes(stream[64 + size * at + 8 : 64 + size * at + 12], "little") for at in range(count + 5)]
    assert numbers == [*range(count), *range(5)]
    addresses = stream[-16 * count :]
    assert addresses[-4:] == struct.pack(">I", 0x0A000000 + count - 1) and addresses[12:16] == b"\x0a\0\0\0"
    _, whole, _ = prepare(tmp_path, captured, "--addresses")
    assert whole["stream"] == summary["stream"] and (tmp_path / "stream").read_bytes() == stream


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


@pytest.mark.parametrize(
    ("make", "arguments", "hint"),
    [
        (lambda: pcap([]), [], "the capture has no packet"),
        (lambda: pcap([])[:20], [], "ends or is damaged before its first packet"),
        (lambda: captures.dnstap([]), [], "the file has no record"),
        (lambda: captures.dnstap(queries(), kind=9), [], "the records are neither client queries"),
        (lambda: pcap(frames([Query(0, "203.0.113.1", 1024, b"garbage")])), [], "cannot be read as DNS"),
        (lambda: captures.dnstap(queries(), kind=3), [], "there are only queries of the server itself"),
        (lambda: pcap(frames(queries())), ["--server", "192.0.2.99"], "queries went to other servers"),
        (lambda: pcap(frames(queries())), ["--cut", "100..200"], "--cut contains no query"),
        (lambda: pcap(frames(queries())), ["--port", "99"], "give --port (UDP port 53 5)"),
        (lambda: pcap([(when_ns, packet[:60]) for when_ns, packet in frames(queries()[:1])]), [], "tcpdump -s 0"),
    ],
    ids=["empty", "cut", "no record", "of a stub", "garbage", "of a resolver", "server", "--cut", "port", "snapped"],
)
def test_where_no_query_is_the_hint_says_why(
    tmp_path: Path, make: Callable[[], bytes], arguments: list[str], hint: str
) -> None:
    (tmp_path / "capture").write_bytes(make())
    said = prepare(tmp_path, tmp_path / "capture", *arguments, status=2)[2]
    assert said.startswith("no query in ") and " 0.000 s" not in said
    assert hint in said.partition("hint: ")[2] and ("tcpdump -s 0" in said) == ("tcpdump -s 0" in hint)


def test_a_capture_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    captured = write(tmp_path / "capture", frames(queries()))
    (tmp_path / "link").symlink_to(captured)
    assert "is given twice" in prepare(tmp_path, captured, tmp_path / "link", status=2)[2]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty"),
        (b"\0" * 100, "its first bytes are of no format that is known"),
        (b"DNSRSTRM" + bytes(56), "it is a stream already"),
    ],
)
def test_what_is_no_capture_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "capture").write_bytes(content)
    stream, _, said = prepare(tmp_path, tmp_path / "capture", status=2)
    assert stream == b"" and f"is not a capture: {reason}" in said and "hint: " in said
    assert [path.name for path in tmp_path.iterdir()] == ["capture"]
