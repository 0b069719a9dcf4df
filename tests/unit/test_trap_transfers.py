"""Traps of transfers: each provoked on rows made in virtual time, and silent on clean ones.

Each is provoked for real in tests/integration/test_transfer_traps.py.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
import synthetic
from hypothesis import given, settings
from hypothesis import strategies as st
from lacking import copied
from suites import examples
from transfer_rows import Connection, Transfer, frame, limited, pipelined, put, reused, whole, zone
from trial_data import clean_trial, judge

from dnsrig.rundir import TransferSpec
from dnsrig.runs import transfers
from dnsrig.runs.row_files.transfer import CONNECTIONS, TRANSFERS
from dnsrig.runs.trial import Trial
from dnsrig.traps import all_traps
from dnsrig.traps.delayed_ack import heap_of
from dnsrig.traps.transfer_limit import limit_of

TRAPS = (
    "delayed-ack",
    "transfer-limit",
    "small-behind-large",
    "full-handshakes",
    "cut-transfer",
    "few-bytes-a-message",
)
SENT_LESS = "records-missing"
TINY = [300] * 200


@pytest.fixture(scope="module")
def of_module(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    return clean_trial(
        tmp_path_factory.mktemp("transfer-load") / "run", synthetic.Plan(servers=["knot@system"], repeats=1)
    )


@pytest.fixture
def shared(of_module: Trial) -> Trial:
    """A trial for rows that replace all that is looked at, as it was before other tests changed it."""
    return copied(of_module)


def test_they_say_nothing_of_a_trial_without_transfers(tmp_path: Path) -> None:
    without = clean_trial(tmp_path / "run")
    assert [all_traps()[trap].after(without) for trap in TRAPS] == [None] * len(TRAPS)


def test_they_say_nothing_of_a_trial_that_was_our_error(shared: Trial) -> None:
    put(shared, pipelined(TINY), resumption=True)
    shared.record.outcome = "error"
    assert [all_traps()[trap].after(shared) for trap in TRAPS] == [None] * len(TRAPS)


@pytest.mark.parametrize("interleaved", [False, True])
def test_all_are_clear_of_a_clean_transfer_load(shared: Trial, interleaved: bool) -> None:
    sizes = [300, 500, 40_000, 300] * 100
    connections = [Connection(0, 0, 0.1, 90, "full")] + [
        Connection(n, n, n + 0.1, n + 1, "resumed") for n in range(1, 9)
    ]
    put(shared, pipelined(sizes, interleaved=interleaved), connections, resumption=True)
    assert {trap: judge(trap, shared).verdict for trap in TRAPS} == dict.fromkeys(TRAPS, "clear")


@pytest.mark.parametrize("at_first", [False, True])
def test_delayed_ack(shared: Trial, at_first: bool) -> None:
    put(shared, reused(50, held_ms=[42.0], at_first=at_first))
    found = judge("delayed-ack", shared)
    assert found.verdict == "found"
    assert found.evidence["waits"] == 50
    assert found.evidence["wait_median_ms"] == pytest.approx(42, abs=1.5)
    assert float(found.evidence["share_percent"] or 0) > 95
    assert found.evidence["waits_before_first_message"] == (50 if at_first else 0)
    assert "quickack" in found.remedy


@pytest.mark.parametrize(
    "held_ms",
    [
        (0,),
        (20.0,),
        (100.0,),
        range(1, 100),  # slow, and evenly so: a slope and no heap
        (42.0, *[0] * 5000),  # too seldom to matter
        (41.0, *[30.0] * 3),
    ],
)
def test_waits_that_are_no_delayed_ack(shared: Trial, held_ms: tuple[float, ...]) -> None:
    put(shared, reused(200, held_ms=list(held_ms)))
    assert judge("delayed-ack", shared).verdict == "clear"


def test_a_full_pipeline_is_no_silence(shared: Trial) -> None:
    """Each waits for 45 ms, but only for those before it."""
    made = pipelined([300] * 1000, window=100, each_ms=0.45)
    assert {round((t.first_ms or 0) - t.asked_ms) for t in made[200:]} == {45}
    put(shared, made)
    assert judge("delayed-ack", shared).verdict == "clear"


def test_what_comes_together_after_a_silence_is_one_silence() -> None:
    made = [Transfer(zone(n), 0, 40, 40) for n in range(30)]
    silent = transfers.silences(frame([t.row() for t in made], TRANSFERS))
    assert silent["wait_ns"].to_list() == [40_000_000]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0, 50), st.floats(0, 50), st.floats(0, 50), st.integers(0, 2)), min_size=1, max_size=40
    )
)
def test_silences_fit_into_the_time_of_their_connection(spans: list[tuple[float, float, float, int]]) -> None:
    """Whatever the order of answers, those before first messages never add up to more than there was."""
    made = [Transfer(zone(n), a, a + b, a + b + c, connection=i) for n, (a, b, c, i) in enumerate(spans)]
    rows = frame([t.row() for t in made], TRANSFERS)
    before = transfers.silences(rows).filter(pl.col("first"))
    assert (before["wait_ns"] >= 0).all()
    assert int(before["wait_ns"].sum()) <= transfers.connections_time_ns(rows)


@pytest.mark.parametrize(("rtt_us", "verdict"), [(None, "found"), (200, "found"), (25_000, "cannot-tell")])
def test_delayed_ack_needs_a_short_round_trip(shared: Trial, rtt_us: int | None, verdict: str) -> None:
    """Without samples of the kernel's, the links as checked tell."""
    put(shared, reused(50, held_ms=[42.0]), rtt_us=rtt_us)
    assert judge("delayed-ack", shared).verdict == verdict


def test_delayed_ack_where_nothing_tells_the_round_trip(shared: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    put(shared, reused(50, held_ms=[42.0]), rtt_us=None)
    monkeypatch.setattr(shared.record, "link_tests", [])
    assert judge("delayed-ack", shared).verdict == "cannot-tell"
    put(shared, reused(50, held_ms=[42.0]), [Connection(0, 0, 0.1, 9)], rtt_us=None)
    assert judge("delayed-ack", shared).verdict == "found"


def test_the_heap_is_counted_as_it_was_made() -> None:
    rows = frame([t.row() for t in reused(100, held_ms=[42.0, 0, 0, 0])], TRANSFERS)
    heap = heap_of(rows, 0.1)
    assert (heap.transfers, heap.shorter, heap.longer) == (25, 0, 0)


def test_a_timer_that_ends_late_on_a_busy_machine(shared: Trial) -> None:
    """As measured with Knot DNS over new TLS connections, two programs to a CPU: never early."""
    late = [41, 43, 44, 44, 45, 46, 46, 47, 47, 48, 48, 48, 49, 50.5, 52, 52, 54, 58, 61, 93]
    put(shared, [Transfer(zone(n), 200 * n, 200 * n + wait, 200 * n + wait) for n, wait in enumerate(late)])
    assert judge("delayed-ack", shared).verdict == "found"


def test_work_of_any_length_is_no_timer(shared: Trial) -> None:
    put(shared, [Transfer(zone(n), 200 * n, 200 * n + 40 + n, 200 * n + 40 + n) for n in range(60)])
    assert judge("delayed-ack", shared).verdict == "clear"


@pytest.mark.parametrize(("window", "at_a_time"), [(100, 10), (20, 19), (12, 1)])
def test_transfer_limit(shared: Trial, window: int, at_a_time: int) -> None:
    put(shared, limited(300, window=window, at_a_time=at_a_time))
    found = judge("transfer-limit", shared)
    assert found.verdict == "found"
    assert found.evidence["not_refused_at_a_time"] == at_a_time
    assert int(found.evidence["outstanding_when_refused"] or 0) > at_a_time
    assert found.evidence["zones_never_done"] == 0
    assert found.evidence["outcome_servfail"] == found.evidence["refused"]
    assert f"at most {at_a_time} at once" in found.remedy


def test_transfer_limit_names_the_setting(shared: Trial) -> None:
    put(shared, limited(100, window=50, at_a_time=10))
    shared.record.spec.hosts["primary"].server.kind = "bind"  # type: ignore[union-attr]
    assert "transfers-out" in judge("transfer-limit", shared).remedy


def test_a_limit_that_is_not_met(shared: Trial) -> None:
    put(shared, limited(300, window=10, at_a_time=10))
    assert judge("transfer-limit", shared).verdict == "clear"


def test_zones_that_are_never_given_are_no_limit(shared: Trial) -> None:
    made = pipelined(TINY, window=50)
    for number in range(0, 200, 20):
        made[number].outcome = "refused"
    put(shared, made)
    finding = judge("transfer-limit", shared)
    assert finding.verdict == "cannot-tell" and "does not look like a limit" in finding.summary


def test_refused_one_by_one_is_no_limit_at_a_time(shared: Trial) -> None:
    """As after so many transfers on a connection."""
    made = reused(30)
    for transfer in made[20:]:
        transfer.outcome = "servfail"
    put(shared, made)
    finding = judge("transfer-limit", shared)
    assert finding.verdict == "cannot-tell" and "1 outstanding" in finding.summary


def test_a_limit_shows_in_the_order_of_answers_too(shared: Trial) -> None:
    """A primary that takes queries one by one and answers in order: ten are done, some refused, and so on; these are
    done later."""
    made = reused(200)
    again = []
    for transfer in made:
        transfer.asked_ms = 0
    for number in [n for n in range(200) if n % 14 >= 10]:
        made[number].outcome = "servfail"
        again.append(Transfer(zone(number), 1000 + number, 1001 + number, 1001 + number, attempt=2))
    put(shared, [*made, *again])
    found = judge("transfer-limit", shared)
    assert found.verdict == "found" and found.evidence["not_refused_at_a_time"] == 10


def test_a_primary_that_is_not_ready_yet_has_no_limit(shared: Trial) -> None:
    """It refuses all at first, and then none."""
    made = pipelined(TINY)
    refused = [Transfer(t.zone, 0, 0.1, 0.1, outcome="servfail") for t in made]
    for transfer in made:
        transfer.attempt, transfer.asked_ms = 2, transfer.asked_ms + 1
    put(shared, [*refused, *made])
    assert judge("transfer-limit", shared).verdict == "cannot-tell"


@settings(max_examples=examples(10, full=30), deadline=None)
@given(at_a_time=st.integers(1, 30), more=st.integers(2, 50), count=st.integers(90, 200))
def test_the_limit_is_what_it_was(at_a_time: int, more: int, count: int) -> None:
    made = limited(count, window=at_a_time + more, at_a_time=at_a_time)
    limit = limit_of(frame([t.row() for t in made], TRANSFERS))
    assert limit is not None and limit.is_met
    assert limit.at_work == at_a_time < limit.outstanding


LARGE_FIRST = [8_000_000, *TINY]


def test_small_behind_large(shared: Trial) -> None:
    put(shared, pipelined(LARGE_FIRST))
    found = judge("small-behind-large", shared)
    assert found.verdict == "found"
    assert found.evidence["transfers_behind"] == 99, "the window, without the large one"
    assert float(found.evidence["wait_median_ms"] or 0) == pytest.approx(80, rel=0.1)
    assert float(found.evidence["wait_of_others_median_ms"] or 0) < 10
    assert found.evidence["largest_bytes"] == 8_000_000


def test_a_primary_that_interleaves(shared: Trial) -> None:
    put(shared, pipelined(LARGE_FIRST, interleaved=True))
    assert judge("small-behind-large", shared).verdict == "clear"


@pytest.mark.parametrize(
    "sizes",
    [
        [500_000, *TINY],  # 5 ms matter to nobody
        [2_000_000] * 20,  # all alike
        [*TINY, 8_000_000],  # behind nothing but small ones
    ],
)
def test_nothing_small_behind_anything_large(shared: Trial, sizes: list[int]) -> None:
    put(shared, pipelined(sizes))
    assert judge("small-behind-large", shared).verdict == "clear"


def test_behind_several_large_ones_all_count(shared: Trial) -> None:
    put(shared, pipelined([600_000, 600_000, 600_000, *TINY]))
    found = judge("small-behind-large", shared)
    assert (found.verdict, found.evidence["large_zones"]) == ("found", 3), "each would be too short to matter"


def test_on_another_connection_nobody_waits(shared: Trial) -> None:
    made = pipelined(LARGE_FIRST)
    made[0].connection = 1
    put(shared, made)
    assert judge("small-behind-large", shared).verdict == "clear"


def shaken(*handshakes: str, at_once: bool = False) -> list[Connection]:
    """One after another, or all begun before the first was established."""
    return [
        Connection(n, 0 if at_once else 10 * n, 10 * n + (8 if kind == "full" else 1), 10 * n + 9, kind)
        for n, kind in enumerate(handshakes)
    ]


@pytest.mark.parametrize(
    ("connections", "verdict"),
    [
        (shaken(*["full"] * 10), "found"),
        (shaken("full", *["full", "resumed"] * 5), "found"),
        (shaken("full", *["resumed"] * 9), "clear"),
        (shaken("full", "full", *["resumed"] * 9), "clear"),
        (shaken("full"), "clear"),
        (shaken("full", "full"), "clear"),
        (shaken(*["full"] * 10, at_once=True), "clear"),
        (shaken(*["none"] * 10), "cannot-tell"),
        ([], "cannot-tell"),
    ],
)
def test_full_handshakes(shared: Trial, connections: list[Connection], verdict: str) -> None:
    put(shared, reused(10), connections, resumption=True)
    found = judge("full-handshakes", shared)
    assert found.verdict == verdict
    if verdict == "found":
        assert found.evidence["full_median_ms"] == 8


def test_full_handshakes_of_many_secondaries_are_their_first_ones(shared: Trial) -> None:
    each = [Connection(n, n, n + 8, n + 9, "full", secondary=n) for n in range(20)]
    put(shared, reused(10), each, resumption=True)
    assert judge("full-handshakes", shared).verdict == "clear"


def test_full_handshakes_are_no_surprise_where_none_was_to_be_resumed(shared: Trial) -> None:
    put(shared, reused(10), shaken(*["full"] * 10), resumption=False)
    assert all_traps()["full-handshakes"].after(shared) is None
    put(shared, reused(10), shaken(*["none"] * 10))
    assert all_traps()["full-handshakes"].after(shared) is None


def test_cut_transfer(shared: Trial) -> None:
    cut = Transfer(zone(0), 0, 1, 300, 4_000_000, 250, "cut", records=70_000)
    whole = Transfer(zone(0), 1300, 1301, 2000, 12_000_000, 750, attempt=2)
    lost = Transfer(zone(1), 5, 6, 7, 1_000_000, 10, "reset", records=20)
    put(shared, [cut, whole, lost, *reused(10)[2:]])
    found = judge("cut-transfer", shared)
    assert found.verdict == "found"
    assert found.evidence | {"in_vain_percent": 0} == {
        "cut": 2, "begun_again": 1, "attempts": 11, "outcome_cut": 1, "outcome_reset": 1, "in_vain_bytes": 5_000_000,
        "in_vain_percent": 0, "in_vain_s": 0.302, "zones_never_done": 1,
    }  # fmt: skip
    assert float(found.evidence["in_vain_percent"] or 0) == pytest.approx(29.4, abs=0.1)


def test_what_is_refused_was_not_cut(shared: Trial) -> None:
    put(shared, limited(100, window=50, at_a_time=10))
    assert judge("cut-transfer", shared).verdict == "clear"


@pytest.mark.parametrize(
    ("nbytes", "messages", "verdict"),
    [
        (8_000_000, 8_000_000 // 512, "found"),
        (8_000_000, 8_000_000 // 16_384, "clear"),
        (8_000_000, 122, "clear"),
        (50_000, 100, "clear"),  # neither large nor tiny
        (300, 3, "found"),
        (300, 1, "clear"),
        (4_000, 2, "found"),
    ],
)
def test_few_bytes_a_message(shared: Trial, nbytes: int, messages: int, verdict: str) -> None:
    put(shared, [Transfer(zone(n), n, n + 0.5, n + 0.9, nbytes, messages) for n in range(5)])
    found = judge("few-bytes-a-message", shared)
    assert found.verdict == verdict
    if messages == 3:
        assert found.evidence["tiny_messages_a_transfer"] == 3
    if messages == 8_000_000 // 512:
        assert found.evidence["large_bytes_a_message"] == 512
        assert found.evidence["large_messages_needed"] == 5 * 489


def test_few_zones_with_several_messages_are_no_habit(shared: Trial) -> None:
    put(shared, [Transfer(zone(n), n, n + 0.5, n + 0.9, 300, 3 if n == 0 else 1) for n in range(5)])
    assert judge("few-bytes-a-message", shared).verdict == "clear"


def test_where_no_transfer_was_done_most_cannot_tell(shared: Trial) -> None:
    put(shared, [Transfer(zone(n), n, None, None, 0, 0, "no-connection") for n in range(5)], resumption=True)
    verdicts = {trap: judge(trap, shared).verdict for trap in TRAPS}
    assert verdicts == dict.fromkeys(TRAPS, "cannot-tell") | {"transfer-limit": "clear", "cut-transfer": "clear"}


def test_outstanding_counts_those_begun_and_not_over() -> None:
    made = [
        Transfer(zone(0), 0, 5, 10),
        Transfer(zone(1), 2, 3, 4),
        Transfer(zone(2), 4, 5, 6),
        Transfer(zone(3), 20, None, None),
    ]
    rows = frame([t.row() for t in made], TRANSFERS)
    assert transfers.outstanding(rows).to_list() == [1, 2, 2, 0]


@pytest.mark.parametrize(("more", "verdict"), [(0, "clear"), (-1, "found"), (1, "found")])
def test_records_missing(tmp_path: Path, more: int, verdict: str) -> None:
    trial = clean_trial(tmp_path / "run")
    wanted = 2 * trial.record.spec.dataset.records
    found = judge(SENT_LESS, whole(trial, records=wanted + more))
    assert found.verdict == verdict
    if verdict == "found":
        assert (found.evidence["records"], found.evidence["records_of_the_zones"]) == (wanted + more, wanted)


def test_records_are_not_judged_where_they_may_differ(tmp_path: Path) -> None:
    trial = clean_trial(tmp_path / "run")
    spec, less = trial.record.spec, all_traps()[SENT_LESS].after
    assert less(trial) is None, "no instrument"
    for fewer in ({"done": 1}, {"axfr": 1}, {"done": 1, "axfr": 1}):
        assert less(whole(trial, records=1, **fewer)) is None, "differences, or not all zones"
    whole(trial, records=1)
    spec.next_dataset = spec.dataset
    assert less(trial) is None, "zones changed"
    spec.next_dataset = None
    assert less(trial) is not None
    primary = next(host for host in spec.hosts.values() if host.role == "primary")
    assert primary.server is not None
    primary.server = primary.server.model_copy(update={"source": "engine"})
    assert less(trial) is None, "it makes its own zones"


@pytest.mark.parametrize(
    ("different", "outcome", "verdict"), [(0, "done", "clear"), (1, "done", "found"), (0, "timeout", "cannot-tell")]
)
def test_rrsets_that_were_lost_are_named(tmp_path: Path, different: int, outcome: str, verdict: str) -> None:
    trial = clean_trial(tmp_path / "run")
    lost = {"zone": "z.example", "owner": "r.z.example", "rtype": "TXT", "records": 1, "bytes": 20_000}
    summary = {"outcome": outcome, "rrsets": 3, "rrsets_different": different}
    differences = [{**lost, "verdict": "absent", "rcode": 0}] * different
    trial.record.instruments["records-primary"] = {**summary, "rrsets_different": 0, "differences": []}
    trial.record.instruments["records-secondary"] = {**summary, "differences": differences}
    found = judge("rrsets-lost", trial)
    assert found.verdict == verdict
    if verdict == "found":
        assert "The secondary answers 1 of 3 RRsets" in found.summary
        assert "r.z.example TXT (1 record, 20,000 bytes): absent (RCODE 0)" in found.summary
        assert found.evidence == {"rrsets_primary": 0, "rrsets_secondary": 1}


def test_answers_that_differ_are_named(tmp_path: Path) -> None:
    trial = clean_trial(tmp_path / "run")
    assert all_traps()["answers-differ"].after(trial) is None, "nothing was compared"
    same = {"queries": 9, "unanswered": 0, "different": 0, "differences": {"rrset": 0}, "examples": []}
    trial.record.instruments["compare-answers"] = same
    assert judge("answers-differ", trial).verdict == "clear"
    trial.record.instruments["compare-answers"] = same | {"unanswered": 1}
    assert judge("answers-differ", trial).verdict == "cannot-tell"
    trial.record.instruments["compare-answers"] = same | {"rcodes": {"REFUSED": 8, "NOERROR": 1}}
    assert "8 with REFUSED" in judge("answers-differ", trial).summary
    example = {"query": "z.example. A", "kind": "rrset", "answers": ["NOERROR aa", "NXDOMAIN aa"]}
    counts = {"different": 5, "differences": {"rrset": 5, "ttl": 0}, "examples": [example] * 5}
    trial.record.instruments["compare-answers"] = same | counts
    found = judge("answers-differ", trial)
    assert found.verdict == "found" and "5 with other records" in found.summary
    assert "z.example. A: NOERROR aa | NXDOMAIN aa" in found.summary and "2 more" in found.summary
    assert trial.metrics["answers_different"] == 5 and trial.metrics["answers_from_neither"] == 0


def test_signatures_broken(tmp_path: Path) -> None:
    trial = clean_trial(tmp_path / "run")
    spec, judged = trial.record.spec, all_traps()["signatures-broken"].after
    assert judged(trial) is None, "dnsrig made the zones"
    own = spec.dataset.model_copy(update={"kind": "files", "parameters": {"next": "", "unsigned_changes": True}})
    signed = own.model_copy(update={"signed_zones": 1})
    spec.dataset = signed
    assert judged(trial) is None, "nothing changed"
    for spec.dataset, verdict in ((own, "clear"), (signed, "found")):
        spec.next_dataset = spec.dataset
        assert judge("signatures-broken", trial).verdict == verdict
    spec.dataset = signed.model_copy(update={"parameters": {"next": "/later/*.zone", "unsigned_changes": False}})
    assert judged(trial) is None, "the signer made the next version"


def test_handshakes_are_counted_by_their_kind() -> None:
    """A session can be resumed from the moment on at which a connection of the same secondary was established."""
    made = [
        Connection(0, 0, 8, 9, "full"),
        Connection(1, 8, 9, 10, "resumed"),
        Connection(2, 7, 10, 11, "full"),
        Connection(3, 20, 24, 30, "full"),
        Connection(4, 20, None, 30, "full"),
        Connection(5, 20, 21, 22, "none"),
        Connection(6, 30, 31, 32, "resumed", secondary=1),
    ]
    rows = frame([each.row() for each in made], CONNECTIONS)
    assert transfers.handshakes_of(rows) == transfers.Handshakes(3, 2, 2, 1, 4.0, 1.0)
    assert transfers.handshakes_of(rows.clear()) == transfers.Handshakes(0, 0, 0, 0, None, None)


@pytest.mark.parametrize(
    ("rtt_us", "connections", "checks", "ms"),
    [
        (200, [Connection(0, 0, 0.1, 9)], [{"rtt_median_us": 30.0}], 0.2),
        (0, [Connection(0, 0, 0.1, 9), Connection(1, 0, 0.3, 9)], [{"rtt_median_us": 30.0}], 0.1),
        (None, [Connection(0, 1, 1.4, 9)], [{"rtt_median_us": 30.0}], 0.4),
        # A handshake of TLS is more than a round trip, and some connections never came about.
        (None, [Connection(0, 0, 0.1, 9, "full"), Connection(1, 0, None, 9)], [{"rtt_median_us": 30.0}], 0.03),
        (None, [], [{"rtt_median_us": 30.0}, {"rtt_median_us": 20.0}, {"rtt_median_us": 0.0}], 0.02),
        (None, [], [{"rtt_median_us": 30.0}, {"rtt_median_us": 2000.0, "forward": {}}], 2.0),
        (None, [], [{}], None),
    ],
)
def test_the_round_trip_is_from_the_best_source_that_there_is(
    shared: Trial,
    monkeypatch: pytest.MonkeyPatch,
    rtt_us: int | None,
    connections: list[Connection],
    checks: list[dict[str, object]],
    ms: float | None,
) -> None:
    put(shared, reused(2), connections, rtt_us=rtt_us)
    monkeypatch.setattr(shared.record, "link_tests", checks)
    assert transfers.round_trip_ms(shared) == (None if ms is None else pytest.approx(ms))


def test_what_was_in_vain_and_what_was_tried_again() -> None:
    made = [
        Transfer(zone(0), 0, 1, 2, outcome="cut", records=5),
        Transfer(zone(0), 3, 4, 5, attempt=2),
        Transfer(zone(1), 0, 1, 2, outcome="servfail", records=0),
        Transfer(zone(1), 3, 4, 5, outcome="cut", records=1, attempt=2),
        Transfer(zone(2), 0, 1, 2, outcome="cut", records=3),
        Transfer(zone(2), 4, 5, 6, secondary=1),
        Transfer(zone(3), 0, 1, 2, outcome="up-to-date"),
    ]
    rows = frame([each.row() for each in made], TRANSFERS)
    vain = transfers.in_vain(rows)
    assert vain["records"].to_list() == [5, 1, 3]
    assert transfers.begun_again(rows, vain)["zone"].to_list() == [zone(0)], "the same zone on the same secondary"
    outcomes = transfers.counted(rows["outcome"])
    assert list(outcomes.items()) == [("cut", 3), ("done", 2), ("servfail", 1), ("up-to-date", 1)]
    assert transfers.told({"cut": 1200, "reset": 3}) == "cut 1,200, reset 3"


def test_the_time_of_connections_is_from_their_first_query_to_their_last_message() -> None:
    made = [
        Transfer(zone(0), 0, 1, 2),
        Transfer(zone(1), 1, 2, 9),
        Transfer(zone(2), 5, 6, 7, connection=1),
        Transfer(zone(3), 20, None, None, connection=2),
    ]
    rows = frame([each.row() for each in made], TRANSFERS)
    assert transfers.connections_time_ns(rows) == (9 + 2) * 1_000_000


def test_silences_before_and_between_messages() -> None:
    """The second transfer waits for the first one, and then pauses; of a third something foreign came between."""
    made = [
        Transfer(zone(0), 0, 10, 12),
        Transfer(zone(1), 1, 15, 30, pause_ms=9),
        Transfer(zone(2), 2, 33, 40, pause_ms=5, foreign=1),
        Transfer(zone(3), 50, 51, 52),
        Transfer(zone(4), 50, None, None),
    ]
    found = transfers.silences(frame([each.row() for each in made], TRANSFERS)).sort("row", "first")
    told = [(row, wait_ns / 1e6, first) for row, wait_ns, first in found.select("row", "wait_ns", "first").iter_rows()]
    assert told == [(0, 10, True), (1, 9, False), (1, 3, True), (2, 3, True), (3, 1, True)]


@pytest.mark.parametrize(
    ("options", "expected"), [({"resumption": True}, True), ({"resumption": False}, False), ({}, False)]
)
def test_sessions_are_resumed_only_over_tls(shared: Trial, options: dict[str, bool], expected: bool) -> None:
    put(shared, [], **options)
    assert transfers.expects_resumption(shared) is expected
    shared.record.spec.transfer = TransferSpec(transport="tcp")
    assert not transfers.expects_resumption(shared)


def test_no_connection_is_the_largest_number_of_its_column() -> None:
    assert pl.Series([transfers.NO_CONNECTION], dtype=TRANSFERS.schema["connection"])[0] == 4_294_967_295
