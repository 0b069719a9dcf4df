"""One blocked thread of several: told from a pause of all, from a slow client and from chance."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest
import synthetic
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from load_rows import SECOND, Asked, Server, load, log_normal, stalling
from suites import examples
from trial_data import clean_trial, judge

from dnsrig.runs import late_clients
from dnsrig.runs.late_clients import Windows, chance_of, windows_of
from dnsrig.runs.trial import Trial
from dnsrig.traps import Conclusion

CALM = log_normal(0.2, 0.4)


@pytest.fixture(autouse=True)
def begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The noise of each test begins anew, so that its numbers do not depend on the tests before it."""
    monkeypatch.setitem(globals(), "CALM", log_normal(0.2, 0.4))


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """For traffic that replaces all that is looked at."""
    return clean_trial(tmp_path_factory.mktemp("load") / "run", synthetic.Plan(servers=["knot@system"], repeats=1))


def verdict(trial: Trial, asked: Asked, server: Server) -> Conclusion:
    load(trial, asked, server)
    return judge("blocked-thread", trial)


def hashed(clients: int, threads: int, seed: int = 3) -> list[int]:
    """The thread of each client, as a hash deals them out."""
    noise = random.Random(seed)
    return [noise.randrange(threads) for _ in range(clients)]


def test_one_of_four_threads(trial: Trial) -> None:
    threads = hashed(64, 4)
    found = verdict(
        trial,
        Asked(qps=4_000, clients=64),
        stalling(CALM, every_ms=1000, stall_ms=200, late=lambda client, _: threads[client] == 0),
    )
    assert found.verdict == "found"
    evidence = found.evidence
    assert evidence["clients_late"] == threads.count(0)
    assert evidence["share_percent"] == pytest.approx(100 * threads.count(0) / 64, abs=0.1)
    assert int(evidence["threads_fewest"] or 0) <= 4 <= int(evidence["threads_most"] or 0)
    assert evidence["threads_recorded"] == 4
    assert float(evidence["late_ms"] or 0) > 190 and float(evidence["others_ms"] or 0) < 2
    assert "the server had 4 threads in all" in found.summary


def test_what_the_scheduler_does_to_the_others_hides_no_group(trial: Trial) -> None:
    """On a restless machine clients wait some milliseconds now and then, which is many times what they usually do."""
    threads, noise = hashed(64, 8), random.Random(4)

    def restless(due_ns: int, client: int) -> int:
        return CALM(due_ns, client) + (noise.randrange(3_000_000, 15_000_000) if noise.random() < 0.02 else 0)

    stalls = stalling(restless, every_ms=1000, stall_ms=200, late=lambda client, _: threads[client] == 0)
    found = verdict(trial, Asked(qps=4_000, clients=64), stalls)
    assert found.verdict == "found"
    assert found.evidence["clients_late"] == threads.count(0)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    threads=st.integers(2, 8),
    clients=st.integers(32, 96),
    stall_ms=st.integers(100, 600),
    every_ms=st.integers(900, 2_100),
    phase_ms=st.integers(0, 999),
    seed=st.integers(0, 10**6),
)
def test_a_blocked_thread_is_found(
    trial: Trial, threads: int, clients: int, stall_ms: int, every_ms: int, phase_ms: int, seed: int
) -> None:
    """Its clients are those late, no more and no fewer."""
    dealt = hashed(clients, threads, seed)
    assume(3 <= dealt.count(0) <= clients * 0.7)
    server = stalling(
        log_normal(0.2, 0.4, seed),
        every_ms=every_ms,
        stall_ms=stall_ms,
        phase_ms=phase_ms,
        late=lambda c, _: dealt[c] == 0,
    )
    found = verdict(trial, Asked(qps=40 * clients, seconds=12, clients=clients, seed=seed), server)
    assert found.verdict == "found", found
    assert found.evidence["clients_late"] == dealt.count(0)


def test_another_thread_each_time(trial: Trial) -> None:
    """Every fourth second one of four is blocked: each is a group of its own, late together."""
    dealt = hashed(64, 4)
    server = stalling(CALM, every_ms=2_000, stall_ms=200, phase_ms=300, late=lambda c, n: dealt[c] == n % 4)
    found = verdict(trial, Asked(qps=3_000, seconds=40, clients=64), server)
    assert (found.verdict, found.evidence["groups"]) == ("found", 4)
    assert found.evidence["clients_late"] in [dealt.count(thread) for thread in range(4)]


@settings(
    max_examples=examples(15, full=40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    qps=st.integers(50, 3_000),
    clients=st.integers(16, 96),
    stall_ms=st.integers(2, 900),
    every_ms=st.sampled_from([500, 1_000, 1_500, 2_000, 3_000]),
    phase_ms=st.integers(0, 999),
    round_robin=st.booleans(),
    poisson=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_a_pause_of_the_whole_server_is_none(
    trial: Trial,
    qps: int,
    clients: int,
    stall_ms: int,
    every_ms: int,
    phase_ms: int,
    round_robin: bool,
    poisson: bool,
    seed: int,
) -> None:
    """Even where clients in their turn meet each pause at the same place, and where it lies across intervals."""
    asked = Asked(qps=qps, clients=clients, seed=seed, round_robin=round_robin, poisson=poisson, seconds=9)
    server = stalling(log_normal(0.2, 0.4, seed), every_ms=every_ms, stall_ms=stall_ms, phase_ms=phase_ms)
    found = verdict(trial, asked, server)
    assert found.verdict != "found", found.summary


@settings(
    max_examples=examples(10, full=25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(clients=st.integers(16, 96), share=st.floats(0.0005, 0.02), seed=st.integers(0, 10**6))
def test_late_answers_by_chance_are_none(trial: Trial, clients: int, share: float, seed: int) -> None:
    noise, usual = random.Random(seed), log_normal(0.2, 0.4, seed)
    found = verdict(
        trial,
        Asked(qps=1_000, clients=clients, seed=seed),
        lambda due_ns, client: usual(due_ns, client) * (500 if noise.random() < share else 1),
    )
    assert found.verdict != "found", found.summary


@pytest.mark.parametrize("others", [0.0, 0.001])
def test_a_single_slow_client_is_none(trial: Trial, others: float) -> None:
    noise = random.Random(5)
    found = verdict(
        trial,
        Asked(qps=2_000),
        lambda due_ns, client: CALM(due_ns, client) * (500 if client == 7 or noise.random() < others else 1),
    )
    assert found.verdict == "clear"


def test_few_clients_cannot_be_told_apart(trial: Trial) -> None:
    server = stalling(CALM, every_ms=1000, stall_ms=200, late=lambda client, _: client == 0)
    found = verdict(trial, Asked(clients=8), server)
    assert found.verdict == "cannot-tell"
    assert "options.clients=32" in found.remedy or "options.clients=32" in found.summary


def test_clients_that_seldom_ask_cannot_be_told_apart(trial: Trial) -> None:
    """Two queries a second each, against a pause of 100 ms."""
    server = stalling(CALM, every_ms=1000, stall_ms=100, late=lambda client, _: client % 4 == 0)
    found = verdict(trial, Asked(qps=64, clients=32), server)
    assert found.verdict == "cannot-tell"


def test_once_is_not_enough(trial: Trial) -> None:
    server = stalling(CALM, every_ms=60_000, stall_ms=200, phase_ms=3_300, late=lambda client, n: n == 0 and client < 8)
    assert verdict(trial, Asked(qps=2_000), server).verdict == "cannot-tell"


def test_threads_of_a_generator_that_is_late_have_clients_of_their_own(trial: Trial) -> None:
    server = stalling(CALM, every_ms=1000, stall_ms=200, late=lambda client, _: client % 4 == 0)
    load(trial, Asked(qps=2_000), server, threads=4, lag_ns={"p99": 3_000_000}, sent_latency_ns={"p99": 2_000_000})
    assert judge("blocked-thread", trial).verdict == "cannot-tell"


def test_without_rows_nothing_is_said(trial: Trial) -> None:
    load(trial, Asked(), CALM)
    trial.__dict__["clients"] = trial.clients.clear()
    assert windows_of(trial.clients) is None
    assert judge("blocked-thread", trial).verdict == "cannot-tell"


@pytest.mark.parametrize(
    ("masks", "chance"),
    [([0b1111 << 12] * 5, False), ([0b1111 << 12, 0b1111] * 3, False), ([0b1111 << 4 * i for i in (0, 1, 2)], True)],
)
def test_chance_of_overlaps(masks: list[int], chance: bool) -> None:
    """Always the same, or two sets by turns, is no chance among 16 clients; three that do not meet may be."""
    assert (chance_of(masks, 16) > 0.01) == chance


def test_p_is_what_it_says(tmp_path: Path) -> None:
    """Of windows that pick by chance, p is below a tenth in about a tenth."""
    noise = random.Random(11)
    below = 0
    for _ in range(60):
        masks = [sum(1 << bit for bit in noise.sample(range(24), 6)) for _ in range(5)]
        below += chance_of(masks, 24) <= 0.1
    assert 0 <= below <= 15


def clients(*waits: tuple[int, int]) -> pl.DataFrame:
    """Two clients with 100 queries each in every second, which waited for 0.2 ms at most; ``waits``: (second, the
    longest wait of the first client in ns) where it is another one."""
    longest = dict(waits)
    rows = [
        (second * SECOND, client, 100, 0, 100 * 150_000, longest.get(second, 200_000) if client == 0 else 200_000)
        for second in range(4)
        for client in range(2)
    ]
    return pl.DataFrame(rows, schema=["start_ns", "client", "answered", "unanswered", "sum_ns", "max_ns"], orient="row")


@pytest.mark.parametrize(
    ("waits", "late", "sparse", "late_rows"),
    [
        ([], 0, False, False),
        ([(1, 1_999_999)], 0, False, False),
        ([(1, 2_000_000)], 0, False, True),  # ten times the usual wait is late, and half of it is not
        ([(1, 3_999_999)], 0, False, True),
        ([(1, 4_000_000)], 0, True, True),  # queries lie 10 ms apart, so one of two pauses would be missed
        ([(1, 19_999_999)], 0, True, True),
        ([(1, 20_000_000)], 1, False, True),
        ([(2, 25_000_000)], 1, False, True),
        ([(3, 25_000_000)], 0, False, True),  # nothing is known of what followed
        ([(0, 25_000_000), (1, 25_000_000)], 1, False, True),  # one window
        ([(0, 25_000_000), (2, 25_000_000)], 2, False, True),
    ],
)
def test_which_windows_tell_late_clients_from_others(
    waits: list[tuple[int, int]], late: int, sparse: bool, late_rows: bool
) -> None:
    found = windows_of(clients(*waits))
    assert found is not None
    assert found == Windows(
        2,
        2,
        [0b01] * late,
        [[max((ns for _, ns in waits), default=0), 200_000]] * late,
        [[200, 200]] * late,
        late_rows,
        sparse,
    )


@pytest.mark.parametrize(
    ("one", "other", "of", "mean", "variance"),
    [(4, 6, 16, 1.5, 0.75), (4, 4, 16, 1.0, 0.6), (1, 1, 1, 1.0, 0.0), (2, 4, 4, 2.0, 0.0)],
)
def test_two_random_sets_overlap_by_the_hypergeometric_distribution(
    one: int, other: int, of: int, mean: float, variance: float
) -> None:
    assert late_clients._overlap(one, other, of) == pytest.approx((mean, variance))


def test_a_deviation_is_in_variances() -> None:
    pairs = [(0, 1, 1.5, 0.75), (0, 2, 1.0, 0.5)]
    assert late_clients._deviation([0b0011, 0b0110, 0b1100], pairs) == pytest.approx(0.5**2 / 0.75 + 1 / 0.5)


@pytest.mark.parametrize(
    ("one", "other", "of", "alike"),
    [
        (0b1111, 0b1110001, 16, False),  # 1 is expected
        (0b1111, 0b110011, 16, False),  # 2 lie below 1 + 2 × 0.77
        (0b1111, 0b10111, 16, True),
        (0b1111, 0b0011, 4, False),  # whatever there is, all clients have it in common
    ],
)
def test_windows_are_alike_that_have_more_in_common_than_chance_gives(
    one: int, other: int, of: int, alike: bool
) -> None:
    assert late_clients._alike(one, other, of) == alike


def test_windows_are_gathered_by_their_clients() -> None:
    assert late_clients._groups([0b1111, 0b11110000, 0b1111], 16) == [[0, 2], [1]]
    assert late_clients._members([0b0011, 0b0001, 0b1001], 4) == [0]
    assert late_clients._members([0b0011, 0b0011, 0b0111], 4) == [0, 1]
    assert late_clients._members([0b0001, 0b0010], 4) == [0, 1]


def test_the_least_p_and_the_largest() -> None:
    assert chance_of([0b1111 << 12] * 5, 16) == 1 / 1000
    assert chance_of([0b1111, 0b1111], 4) == 1.0, "all clients are late in both"


@pytest.mark.parametrize(
    ("late", "of", "threads", "fewest", "most"),
    [(16, 64, 4, 2, 7), (8, 64, 8, 4, 16), (48, 64, 2, 2, 2), (1, 16, 16, 3, 64)],
)
def test_the_share_of_late_clients_gives_the_number_of_threads(
    late: int, of: int, threads: int, fewest: int, most: int
) -> None:
    """Wilson's interval of 16 of 64 is 16 to 37 %, of 8 of 64 6.5 to 23 %."""
    found = late_clients.Group(list(range(late)), of, 3, 1, 0.001, 10, 1, 0.25)
    assert (found.threads, *found.threads_range) == (threads, fewest, most)
