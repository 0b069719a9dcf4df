"""Traps of replays, on summaries made for the purpose. Each is provoked in tests/integration/test_replay_traps.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from replay_data import MS, TRAPS, accounting, clients, put, ratio, replayed
from trial_data import clean_trial, judge

from dnsrig.rundir import Role
from dnsrig.runs.trial import Trial
from dnsrig.traps import Conclusion, all_traps
from dnsrig.traps.few_source_ports import flows_of
from dnsrig.traps.incomplete_capture import signs


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    trial = clean_trial(tmp_path / "run")
    put(trial)
    return trial


def holds(trial: Trial, **more: Any) -> None:
    trial.record.instruments["stream"]["holds"] |= more


def test_a_clean_replay_is_clear(trial: Trial) -> None:
    assert {trap: judge(trap, trial).verdict for trap in TRAPS} == dict.fromkeys(TRAPS, "clear")


@pytest.mark.parametrize("trap", TRAPS)
def test_what_replays_nothing_is_not_judged(tmp_path: Path, trap: str) -> None:
    assert all_traps()[trap].after(clean_trial(tmp_path / "other")) is None


@pytest.mark.parametrize("trap", sorted(set(TRAPS) - {"few-source-ports", "client-rate-limit", "downsampled-clients"}))
def test_an_engine_that_says_nothing_leaves_it_open(trial: Trial, trap: str) -> None:
    trial.record.instruments["stream"] = {}
    trial.record.instruments["load"] = {"model": "stream"}
    assert judge(trap, trial).verdict == "cannot-tell"


# --- queries-sent-late ---


@pytest.mark.parametrize(
    ("lag", "sending_s", "says"),
    [
        ({"p99": 3 * MS, "max": 40 * MS}, 10.0, "up to about 40 at once"),
        ({}, 12.0, "2 s longer than the 10 s"),
        ({"p99": MS, "max": 40 * MS}, 10.0, ""),
        ({}, 10.05, ""),
    ],
    ids=["bursts", "slip", "few are late", "the last query"],
)
def test_queries_sent_late(trial: Trial, lag: dict[str, int], sending_s: float, says: str) -> None:
    replayed(trial, lag, sending_ns=round(sending_s * 1e9))
    said(judge("queries-sent-late", trial), says)


def said(found: Conclusion, says: str) -> None:
    assert (found.verdict == "found") == bool(says) and says in found.summary, found


@pytest.mark.parametrize(("p99_ns", "late"), [(MS, False), (MS + 1, True)])
def test_a_millisecond_is_late(trial: Trial, p99_ns: int, late: bool) -> None:
    replayed(trial, {"p99": p99_ns})
    assert (judge("queries-sent-late", trial).verdict == "found") == late


@pytest.mark.parametrize(
    ("span_s", "sending_s", "late"),
    [(100, 101.0, False), (100, 101.1, True), (1, 1.015, False), (1, 1.025, True), (2, 2.021, True)],
)
def test_a_replay_may_take_a_hundredth_or_20_ms_longer(trial: Trial, span_s: int, sending_s: float, late: bool) -> None:
    replayed(trial, end_ns=span_s * 1_000 * MS, sending_ns=round(sending_s * 1e9))
    assert (judge("queries-sent-late", trial).verdict == "found") == late


# --- incomplete-capture ---


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        ({"cut": 100}, "100 of 21,100 datagrams"),
        ({"cut": 5}, ""),
        ({"udp": 10_000, "answers": 0}, "only 0 of 10,000 queries over UDP have an answer"),
        ({"udp": 15_000, "answers": 5_000}, ""),
        ({"udp": 20_000, "answers": 10_100}, "200 of 10,100 answers over UDP have no query"),
        ({"behind_hole": 30}, "30 segments and fragments"),
        ({"incomplete": 12}, "12 segments and fragments"),
        ({"udp": 100, "answers": 0, "records": 50}, ""),
        ({"udp": 60, "answers": 0}, ""),
        ({"truncated": 20, "tcp": 9}, "20 answers were truncated, and 9 queries came over TCP"),
        ({"truncated": 20, "tcp": 10}, ""),
        ({"truncated": 19, "tcp": 0}, ""),
    ],
)
def test_incomplete_capture(trial: Trial, counts: dict[str, int], says: str) -> None:
    trial.record.instruments["stream"]["made"]["ledger"] = accounting(**counts)
    said(judge("incomplete-capture", trial), says)


@pytest.mark.parametrize(
    ("udp", "cut", "behind_hole", "truncated", "clauses"),
    [
        (999, 1, 0, 0, 0),  # of 1,000 datagrams
        (998, 2, 0, 0, 1),
        (999, 0, 1, 0, 0),  # of 1,000 segments
        (999, 0, 2, 0, 1),
        (999, 0, 0, 19, 0),
        (999, 0, 0, 20, 1),
    ],
)
def test_one_in_a_thousand_may_be_missing(udp: int, cut: int, behind_hole: int, truncated: int, clauses: int) -> None:
    datagrams = {"udp": udp, "tcp_segments": 0, "tcp_answers": 0, "cut": cut}
    made = accounting(udp=0, answers=0, behind_hole=behind_hole, truncated=truncated) | {"datagrams": datagrams}
    if behind_hole:
        made["datagrams"] = {**datagrams, "tcp_segments": 1_000}
    told, numbers = signs(made)
    assert len(told) == clauses, told
    assert (numbers["datagrams_cut"], numbers["without_neighbours"]) == (cut, behind_hole)


@pytest.mark.parametrize(
    ("udp", "answers", "clauses"),
    [(149, 49, 1), (148, 49, 0), (150, 50, 0), (20_010, 10_010, 0), (20_021, 10_021, 1), (199, 100, 1), (198, 99, 0)],
)
def test_half_of_a_hundred_queries_have_answers(udp: int, answers: int, clauses: int) -> None:
    assert len(signs(accounting(udp=udp, answers=answers))[0]) == clauses


def test_a_capture_whose_end_is_missing(trial: Trial) -> None:
    trial.record.instruments["stream"]["made"]["captures"][0]["ended"] = "cut within a packet"
    said(judge("incomplete-capture", trial), "a.pcap: cut within a packet")


def test_what_was_not_captured_has_no_drops(trial: Trial) -> None:
    assert trial.record.spec.stream
    trial.record.spec.stream.kind = "population"
    trial.record.instruments["stream"]["made"] = {}
    assert judge("incomplete-capture", trial).verdict == "clear"


# --- both-sides-captured ---


@pytest.mark.parametrize(
    ("from_servers", "with_rd", "role", "says"),
    [
        (201, 10_000, "secondary", "201 of 10,000 queries are from addresses that others query"),
        (200, 10_000, "resolver", ""),
        (0, 9_799, "resolver", "201 of 10,000 queries do not ask for recursion"),
        (0, 9_800, "resolver", ""),
        (0, 0, "secondary", ""),
        (5_000, 5_000, "resolver", "in the same capture, and 5,000 of 10,000"),
    ],
    ids=["a server asks", "few", "no recursion", "a few without", "an authority is asked so", "both"],
)
def test_both_sides_captured(trial: Trial, from_servers: int, with_rd: int, role: Role, says: str) -> None:
    trial.record.instruments["stream"]["made"]["ledger"] = accounting(from_servers=from_servers)
    holds(trial, recursion_desired=with_rd)
    trial.record.spec.hosts[trial.subject].role = role
    said(judge("both-sides-captured", trial), says)


def test_of_an_earlier_engine_it_is_not_known_who_asked(trial: Trial) -> None:
    del trial.record.instruments["stream"]["made"]["ledger"]["messages"]["from_servers"]
    assert judge("both-sides-captured", trial).verdict == "cannot-tell"


# --- heavy-clients ---


@pytest.mark.parametrize(
    ("clients", "largest", "heaviest", "says"),
    [
        (1_000, 1_100, 2_000, "One of 1,000 clients sends 11.0%"),
        (1_000, 900, 5_100, "The heaviest 1 % of 1,000 clients send 51.0%"),
        (1_000, 1_000, 5_000, ""),
        (1_000, 1_001, 5_000, "One of 1,000 clients sends 10.0%"),
        (1_000, 1_000, 5_001, "The heaviest 1 % of 1,000 clients send 50.0%"),
        (100, 900, 5_001, "The heaviest 1 % of 100 clients"),
        (99, 900, 5_001, ""),
        (20, 1_001, 1_001, "One of 20 clients"),
        (1_000, 900, 4_900, ""),
        (50, 900, 9_000, ""),
    ],
)
def test_heavy_clients(trial: Trial, clients: int, largest: int, heaviest: int, says: str) -> None:
    spread = {"median": 3, "largest": largest, "heaviest_1_percent": heaviest, "heaviest_10_percent": 9_000}
    holds(trial, clients=spread, stream={"queries": 10_000, "clients": clients})
    said(judge("heavy-clients", trial), says)


def test_of_few_clients_each_is_heavy(trial: Trial) -> None:
    holds(trial, stream={"queries": 10_000, "clients": 19})
    assert judge("heavy-clients", trial).verdict == judge("nat-client", trial).verdict == "cannot-tell"


@pytest.mark.parametrize("trap", ["heavy-clients", "nat-client"])
@pytest.mark.parametrize("counts", [{"queries": 0, "clients": 1_000}, {"queries": 10_000, "clients": 0}])
def test_a_stream_without_queries_or_clients_tells_nothing(trial: Trial, trap: str, counts: dict[str, int]) -> None:
    holds(trial, stream=counts)
    assert judge(trap, trial).verdict == "cannot-tell"


# --- nat-client ---


@pytest.mark.parametrize(
    ("queries", "questions", "says"),
    [
        (600, 120, "1 of 1,000 addresses"),
        (600, 50, ""),
        (400, 400, ""),
        (1_500, 1_500, "5.0% of the queries"),
    ],
    ids=["many people", "one program", "one busy client", "many of many"],
)
def test_nat_client(trial: Trial, queries: int, questions: int, says: str) -> None:
    holds(trial, heaviest=[{"queries": queries, "questions": questions}, {"queries": 10, "questions": 10}])
    said(judge("nat-client", trial), says)


@pytest.mark.parametrize(
    ("heavy", "median", "says"),
    [
        ((500, 500), 10, "1 of 1,000 addresses"),  # 50 times the median, and 2 % of the queries
        ((499, 499), 10, ""),
        ((500, 500), 11, ""),
        ((500, 449), 10, ""),
        ((500, 450), 10, "1 of 1,000 addresses"),
    ],
)
def test_an_address_with_many_clients_on_both_sides_of_its_limits(
    trial: Trial, heavy: tuple[int, int], median: int, says: str
) -> None:
    """All clients together ask 9 of 10 queries for something new."""
    spread = trial.record.instruments["stream"]["holds"]["clients"] | {"median": median}
    listed = [dict(zip(("queries", "questions"), each)) for each in (heavy, (10, 9))]
    holds(
        trial, clients=spread, heaviest=listed, stream={"queries": 25_000, "clients": 1_000}, distinct_questions=22_500
    )
    said(judge("nat-client", trial), says)


# --- replayed-retransmissions ---


@pytest.mark.parametrize(
    ("retransmissions", "answered", "option", "says"),
    [
        (300, 10_000, "as-captured", "300 of 10,000 queries"),
        (300, 10_000, "off", ""),
        (300, 8_000, "as-captured", ""),
        (150, 10_000, "as-captured", ""),
        (200, 10_000, "as-captured", ""),
        (201, 10_000, "as-captured", "201 of 10,000 queries"),
        (300, 9_000, "as-captured", "300 of 10,000 queries"),
        (300, 8_999, "as-captured", ""),
    ],
)
def test_replayed_retransmissions(trial: Trial, retransmissions: int, answered: int, option: str, says: str) -> None:
    holds(trial, retransmissions=retransmissions)
    replayed(trial, answered=answered)
    trial.record.spec.options["retransmissions"] = option
    said(judge("replayed-retransmissions", trial), says)


# --- few-source-ports ---


@pytest.mark.parametrize(
    ("counts", "port", "threads", "says"),
    [
        ([10] * 8, "kept", 4, "as 8.0 flows: the load of one of the server's 4 threads deviates from its mean by 61%"),
        ([10] * 8, "kept", 1, ""),
        ([10] * 500, "kept", 4, ""),
        ([10] * 100, "kept", 2, ""),
        ([10] * 99, "kept", 2, "as 99.0 flows"),
        ([1000, *[1] * 500], "kept", 2, "as 2.2 flows"),
        ([1000, *[1] * 500], "fresh", 2, ""),
    ],
)
def test_few_source_ports(trial: Trial, counts: list[int], port: str, threads: int, says: str) -> None:
    clients(trial, [(count, 0, 0) for count in counts])
    trial.record.spec.options["port"] = port
    trial.record.spec.hosts[trial.subject].settings["threads"] = threads
    said(judge("few-source-ports", trial), says)


def test_equal_clients_are_as_many_flows_and_no_client_has_more_than_its_queries() -> None:
    assert flows_of([5] * 7, 1) == pytest.approx(7)
    assert flows_of([5] * 7, 3) == pytest.approx(21)
    assert flows_of([5] * 7, 256) == pytest.approx(35)


# --- client-rate-limit ---

LIGHT = [(10, 0, 0)] * 2_000


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        ([(300, 700, 0)] * 10 + LIGHT[:190], "Of the 10 of 200 clients that ask most, 70.0%"),
        ([(1_000, 0, 100)] * 10 + LIGHT[:190], "10.0% of the queries had no answer or a truncated one"),
        ([(900, 100, 0)] * 10 + [(9, 1, 0)] * 190, ""),
        ([(990, 10, 0)] * 10 + LIGHT[:190], ""),
        ([(5, 5, 0)] * 200 + [(1, 0, 0)] * 1_800, "prefixes of /24"),
    ],
    ids=["dropped", "truncated", "everybody", "few", "by prefix"],
)
def test_client_rate_limit(trial: Trial, counts: list[tuple[int, int, int]], says: str) -> None:
    clients(trial, counts)
    said(judge("client-rate-limit", trial), says)


def test_one_client_has_nobody_to_be_compared_with(trial: Trial) -> None:
    clients(trial, [(300, 700, 0)])
    assert judge("client-rate-limit", trial).verdict == "cannot-tell"


# --- downsampled-clients ---


@pytest.mark.parametrize(
    ("half", "whole", "kept", "says"),
    [
        (0.80, 0.85, 0.1, "ratio may be up to 15.0 points higher"),
        (0.80, 0.85, 0.5, "ratio may be up to 5.0 points higher"),
        (0.80, 0.85, 1.0, ""),
        (0.897, 0.9, 0.25, ""),
    ],
)
def test_downsampled_clients(trial: Trial, half: float, whole: float, kept: float, says: str) -> None:
    assert trial.record.spec.stream
    trial.record.spec.stream.parameters["keep_share"] = kept
    holds(trial, hit_ratios=[ratio(0.5, half), ratio(1, whole)])
    said(judge("downsampled-clients", trial), says)


def test_single_queries_that_are_left_out_are_told(trial: Trial) -> None:
    assert trial.record.spec.stream
    trial.record.spec.stream.parameters["keep_queries"] = 0.125
    holds(trial, hit_ratios=[ratio(0.5, 0.897), ratio(1, 0.9)])
    said(judge("downsampled-clients", trial), "12.5% of each client's queries")


def test_a_stream_with_too_many_questions_leaves_the_hit_ratio_open(trial: Trial) -> None:
    assert trial.record.spec.stream
    trial.record.spec.stream.parameters["keep_share"] = 0.1
    holds(trial, hit_ratios=[])
    assert judge("downsampled-clients", trial).verdict == "cannot-tell"
