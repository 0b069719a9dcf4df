"""A server that stands still as a whole: told from slow queries, from lost ones, and from an instrument that did not
ask."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import accumulate, pairwise
from pathlib import Path

import polars as pl
import pytest
import synthetic
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lacking import copied
from load_rows import MS, SECOND, START_NS, Asked, Server, load, log_normal, stalling
from trial_data import clean_trial, judge

from dnsrig.runs.latency import Histogram
from dnsrig.runs.profile import differences
from dnsrig.runs.stalls import (
    ALPHA,
    Stalls,
    _Bins,
    _delay,
    _share_above,
    at_least,
    chance_of,
    covered_share,
    preceding,
    stalls,
    stalls_of,
)
from dnsrig.runs.trial import Trial
from dnsrig.servers import driver
from dnsrig.traps import Conclusion

CALM = log_normal(0.2, 0.4)
NO_CHANGES = pl.DataFrame(schema={"accepted_ns": pl.Int64})
NO_EVENTS = pl.DataFrame(schema={"kind": pl.String, "realtime_ns": pl.Int64})
NO_STACKS = pl.DataFrame(schema={"time_ns": pl.Int64, "stack": pl.String})


@pytest.fixture(autouse=True)
def begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The noise of each test begins anew, so that its numbers do not depend on the tests before it."""
    monkeypatch.setitem(globals(), "CALM", log_normal(0.2, 0.4))


@pytest.fixture(scope="module")
def of_module(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    return clean_trial(tmp_path_factory.mktemp("load") / "run", synthetic.Plan(servers=["knot@system"], repeats=1))


@pytest.fixture
def trial(of_module: Trial) -> Trial:
    """Only its traffic is looked at: no changes, no log, no samples but those that a test puts in."""
    found = copied(of_module)
    found.__dict__.update(changes=NO_CHANGES, log_events=NO_EVENTS, timed_stacks=NO_STACKS)
    return found


def verdict(trial: Trial, asked: Asked, server: Server) -> Conclusion:
    load(trial, asked, server)
    return judge("stalled-server", trial)


def used(trial: Trial, counters: dict[str, list[tuple[float, float]]]) -> None:
    """``source/metric`` -> (second from the start, seconds counted until then), ten samples a second between them."""
    rows = []
    for name, points in counters.items():
        for (start_s, before), (end_s, after) in pairwise(points):
            steps = round((end_s - start_s) * 10)
            for step in range(steps + 1):
                value = before + (after - before) * step / steps
                time_ns = START_NS + round((start_s + step / 10) * SECOND)
                rows.append((trial.subject, *name.split("/"), time_ns, round(1e6 * value)))
    schema = ["host", "source", "metric", "time_ns", "value"]
    trial.__dict__["samples"] = pl.DataFrame(rows, schema=schema, orient="row").unique(maintain_order=True)


def test_a_server_that_stands_still_is_found_with_when_and_how_long(trial: Trial) -> None:
    found = verdict(trial, Asked(qps=2_000), stalling(CALM, every_ms=1000, stall_ms=200, phase_ms=300))
    assert found.verdict == "found"
    assert found.evidence["stalls"] == 10
    assert found.evidence["longest_ms"] == pytest.approx(200, abs=3)
    assert found.evidence["stalled_percent"] == pytest.approx(20, abs=0.5)
    assert found.evidence["asked_meanwhile"] == pytest.approx(4_000, rel=0.06)
    assert float(found.evidence["p_by_chance"] or 0) < 1e-20
    told = stalls_of(trial)
    assert told is not None
    assert [(s.start_ns - START_NS) / 1e9 for s in told.found] == pytest.approx([n + 0.3 for n in range(10)], abs=0.003)


def test_a_blocked_thread_is_no_stall_of_the_server(trial: Trial) -> None:
    blocked = stalling(CALM, every_ms=1000, stall_ms=400, late=lambda client, _: client < 30)
    assert verdict(trial, Asked(qps=4_000, clients=32), blocked).verdict == "clear"


def test_blocked_thread_says_so_where_the_whole_server_stood_still(trial: Trial) -> None:
    load(trial, Asked(qps=2_000), stalling(CALM, every_ms=1000, stall_ms=300))
    found = judge("blocked-thread", trial)
    assert (found.verdict, "stalled-server" in found.summary) == ("clear", True)
    load(trial, Asked(qps=2_000), CALM)
    assert judge("blocked-thread", trial).summary == ""


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    median_ms=st.floats(0.05, 200),
    sigma=st.floats(0.1, 1.5),
    lost=st.sampled_from([0, 0.01, 0.3]),
    qps=st.sampled_from([20, 300, 2_000]),
    poisson=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_queries_that_are_slow_or_lost_one_by_one_are_none(
    trial: Trial, median_ms: float, sigma: float, lost: float, qps: int, poisson: bool, seed: int
) -> None:
    noise, usual = random.Random(seed), log_normal(median_ms, sigma, seed)
    asked = Asked(qps=qps, seconds=4, poisson=poisson, seed=seed)
    assert verdict(trial, asked, lambda d, c: 2 * SECOND if noise.random() < lost else usual(d, c)).verdict == "clear"


def test_a_far_server_is_none_and_its_stall_is_one(trial: Trial) -> None:
    """The first answer comes after the path's 250 ms."""
    far = log_normal(250, 0.01)
    assert verdict(trial, Asked(qps=2_000), far).verdict == "clear"
    assert (
        verdict(trial, Asked(qps=2_000), stalling(far, every_ms=4000, stall_ms=300, phase_ms=1000)).verdict == "found"
    )


def test_a_stall_that_does_not_end_is_told_as_far_as_it_was_asked(trial: Trial) -> None:
    found = verdict(
        trial, Asked(qps=1_000, seconds=5), lambda due_ns, client: MS if due_ns < 3 * SECOND else 9 * SECOND
    )
    assert found.evidence["longest_ms"] == pytest.approx(2_000, abs=15)
    told = stalls_of(trial)
    assert told is not None and not told.found[0].ended


def test_an_instrument_that_stood_still_says_nothing_of_the_server() -> None:
    """For a second nothing was sent; then all at once, and all was answered."""
    times = [START_NS + n * 10 * MS for n in [*range(100), *range(200, 300)]]
    rows = pl.DataFrame(
        {
            "time_ns": times,
            "sent": [20] * 100 + [2_020] + [20] * 99,
            "answered": [20] * 100 + [2_020] + [20] * 99,
            "first_ns": [time + MS for time in times],
            "last_ns": [time + 9 * MS for time in times],
        }
    )
    found = stalls(rows, Histogram([MS], [6_000]))
    assert found is not None and found.found == []


@pytest.mark.parametrize(("handshake_ns", "stalled"), [(0, 1), (100 * MS, 0)])
def test_the_first_queries_over_a_long_path_wait_for_their_connections(handshake_ns: int, stalled: int) -> None:
    """A round trip of 100 ms, the handshake takes one, and the answer another."""
    times = [START_NS + n * 10 * MS for n in range(100)]
    rows = pl.DataFrame(
        {
            "time_ns": times,
            "sent": [20] * 100,
            "answered": [0] * 20 + [400] + [20] * 79,
            "first_ns": [time + MS for time in times],
            "last_ns": [time + 9 * MS for time in times],
        }
    )
    found = stalls(rows, Histogram([100 * MS, 200 * MS], [1_790, 200]), handshake_ns)
    assert found is not None and len(found.found) == stalled


@pytest.mark.parametrize(
    ("handshake_ns", "silent_ms", "stalled"),
    [(0, 100, 1), (100 * MS, 100, 0), (100 * MS, 180, 0), (100 * MS, 400, 1), (0, 400, 1)],
)
def test_all_connections_over_a_long_path_may_wait_for_a_round_trip(
    handshake_ns: int, silent_ms: int, stalled: int
) -> None:
    """A round trip of 100 ms, for which new connections and lost packets wait; without connections nobody does."""
    times = [START_NS + n * 10 * MS for n in range(300)]
    silent = range(100, 100 + silent_ms // 10)
    answered = [0 if n in silent else 20 for n in range(300)]
    answered[silent.stop] = 20 * (len(silent) + 1)
    rows = pl.DataFrame(
        {
            "time_ns": times,
            "sent": [20] * 300,
            "answered": answered,
            "first_ns": [time + MS for time in times],
            "last_ns": [time + 9 * MS for time in times],
        }
    )
    waits = Histogram([100 * MS, (100 + silent_ms) * MS], [6_000 - 20 * len(silent), 20 * len(silent)])
    found = stalls(rows, waits, handshake_ns)
    assert found is not None and len(found.found) == stalled


def test_what_cannot_be_told_is_said(trial: Trial) -> None:
    load(trial, Asked(qps=100, seconds=2), CALM)
    trial.__dict__["answers"] = trial.answers.clear()
    assert "answers.arrow" in judge("stalled-server", trial).summary
    load(trial, Asked(qps=100, seconds=2), CALM, model="closed")
    assert judge("stalled-server", trial).verdict == "cannot-tell"


def calm(due_ns: int, client: int) -> int:
    return CALM(due_ns, client)


STALLING = stalling(calm, every_ms=2000, stall_ms=500, phase_ms=1000)
"""At 1.0, 3.0, 5.0, 7.0 and 9.0 s."""
EDGES = [edge for second in (1, 3, 5, 7, 9) for edge in (second, second + 0.5)]


@pytest.mark.parametrize(
    ("cpu", "waiting", "said"),
    [(1.0, 0.0, "used 100 % of a core meanwhile (otherwise 10 %): it was computing"),
     (0.05, 0.9, "waited for I/O 90 % of the time."),
     (0.05, 0.0, "it waited for something else")],
)  # fmt: skip
def test_what_its_host_did_meanwhile(trial: Trial, cpu: float, waiting: float, said: str) -> None:
    points: dict[str, list[tuple[float, float]]] = {"cgroup/cpu_usage_us": [(-1, 0)], "psi/io_some_us": [(-1, 0)]}
    for number, edge in enumerate([*EDGES, 11.0]):
        for name, (inside, outside) in {"cgroup/cpu_usage_us": (cpu, 0.1), "psi/io_some_us": (waiting, 0.0)}.items():
            last_s, counted = points[name][-1]
            points[name].append((edge, counted + (inside if number % 2 else outside) * (edge - last_s)))
    used(trial, points)
    found = verdict(trial, Asked(qps=1_000), STALLING)
    assert found.evidence["cpu_percent"] == pytest.approx(100 * cpu, abs=1.5)
    assert found.evidence["cpu_otherwise_percent"] == pytest.approx(10, abs=0.5)
    assert said in found.summary


def sampled(host: str, source: str, metric: str, grown_ms: Callable[[int], float]) -> pl.DataFrame:
    """A counter in samples from 0 to 11 s: it grows by ``grown_ms(n)`` after sample n, in 100 ms."""
    counted = [*accumulate((round(1e3 * grown_ms(n)) for n in range(110)), initial=0)]
    rows = [(host, source, metric, START_NS + n * 100 * MS, value) for n, value in enumerate(counted)]
    return pl.DataFrame(rows, schema=["host", "source", "metric", "time_ns", "value"], orient="row")


ONCE = stalling(calm, every_ms=20_000, stall_ms=100, phase_ms=3050)
"""From 3.05 to 3.15 s: shorter than the time between the samples around it, which are at 3.0 and 3.2 s."""


@pytest.mark.parametrize(
    ("waited_ms", "by_machine"),
    [
        (lambda n: {30: 30, 31: 60}.get(n, 0), True),
        (lambda n: {30: 5, 31: 5}.get(n, 0), False),
        (lambda n: 90, True),
        (lambda n: 45 if n in (30, 31) else 90, False),
        (lambda n: 100 if n in (10, 50) else 0, False),
    ],
    ids=["in a burst", "hardly", "always", "always but then", "at other times"],
)
def test_a_stall_of_a_server_that_had_no_cpu_is_the_machine_s(
    trial: Trial, waited_ms: Callable[[int], float], by_machine: bool
) -> None:
    trial.__dict__["samples"] = sampled(trial.subject, "psi", "cpu_full_us", waited_ms)
    found = verdict(trial, Asked(qps=1_000), ONCE)
    assert found.verdict == "found" and found.evidence["stalls"] == 1
    assert ("The machine may be the cause, not the server" in found.summary) == by_machine
    assert ("had no CPU" in found.summary) == ("Repeat the trial" in found.remedy) == by_machine
    assert (float(found.evidence["without_cpu_percent"] or 0) >= 50) == by_machine


def test_a_stall_in_which_the_hypervisor_had_the_cpu_is_the_machine_s(trial: Trial) -> None:
    cpus = trial.record.spec.hosts[trial.subject].cpus
    stolen = [sampled("machine", f"cpu{cpu}", "steal_us", lambda n: {30: 40, 31: 50}.get(n, 0)) for cpu in cpus]
    trial.__dict__["samples"] = pl.concat(stolen)
    found = verdict(trial, Asked(qps=1_000), ONCE)
    assert found.evidence["without_cpu_percent"] == pytest.approx(90, abs=5)
    assert "The machine may be the cause" in found.summary


def test_a_machine_is_named_for_sure_if_the_stall_is_longer_than_the_time_between_samples(trial: Trial) -> None:
    long = stalling(CALM, every_ms=20_000, stall_ms=300, phase_ms=3050)
    trial.__dict__["samples"] = sampled(trial.subject, "psi", "cpu_full_us", lambda n: 90 if 30 <= n <= 33 else 0)
    assert "The machine was the cause, not the server" in verdict(trial, Asked(qps=1_000), long).summary


def test_what_began_just_before_is_named_and_what_is_always_there_is_not(trial: Trial) -> None:
    accepted = [START_NS + n * 100 * MS + 37 * MS for n in range(100)]
    trial.__dict__["changes"] = pl.DataFrame({"accepted_ns": accepted})
    offset_ns = trial.anchors[0].realtime_ns - trial.anchors[0].monotonic_ns
    updates = [START_NS + offset_ns + second * SECOND - 8 * MS for second in (1, 3, 5, 7, 9)]
    transfers = [START_NS + offset_ns + second * SECOND - 14 * MS for second in range(10)]
    trial.__dict__["log_events"] = pl.DataFrame(
        {"kind": ["update"] * 5 + ["transfer of the catalog"] * 10, "realtime_ns": updates + transfers}
    )
    found = verdict(trial, Asked(qps=1_000), STALLING)
    assert found.evidence["before"] == "update, in the server's log"
    assert (found.evidence["long_stalls_after_it"], found.evidence["events_of_it"]) == (5, 5)
    assert found.evidence["after_it_ms"] == pytest.approx(8, abs=3)
    assert "5 of 5 long ones began 7 ms after an update, in the server's log (p < 0.0001" in found.summary
    trial.__dict__["log_events"] = NO_EVENTS
    found = verdict(trial, Asked(qps=1_000), STALLING)
    assert "before" not in found.evidence and "No recorded event" in found.summary


def test_a_short_stall_of_another_cause_does_not_hide_that_of_the_longest(trial: Trial) -> None:
    offset_ns = trial.anchors[0].realtime_ns - trial.anchors[0].monotonic_ns
    update_ns = START_NS + offset_ns + 3 * SECOND
    trial.__dict__["log_events"] = pl.DataFrame({"kind": ["update"], "realtime_ns": [update_ns]})

    def still(due_ns: int, client: int) -> int:
        return max(
            MS, 4 * SECOND - due_ns if due_ns > 3 * SECOND else 0, 6_080 * MS - due_ns if due_ns > 6 * SECOND else 0
        )

    found = verdict(trial, Asked(qps=1_000, timeout_ns=2 * SECOND), still)
    assert (found.evidence["stalls"], found.evidence["long_stalls"], found.evidence["before"]) == (
        2,
        1,
        "update, in the server's log",
    )
    assert "The longest began 1 ms after an update" in found.summary


@given(seed=st.integers(0, 10**6), events=st.integers(1, 200), moments=st.integers(1, 20))
def test_events_that_know_nothing_of_it_seldom_precede(seed: int, events: int, moments: int) -> None:
    noise = random.Random(seed)
    whole = (0, 100 * SECOND)
    wrong = sum(
        preceding(sorted(drawn(noise, moments)), {"event": sorted(drawn(noise, events))}, [whole]) is not None
        for _ in range(5)
    )
    assert wrong <= 4, "each by chance at most once in twenty"


def drawn(noise: random.Random, count: int) -> list[int]:
    return [noise.randrange(100 * SECOND) for _ in range(count)]


def test_the_share_of_time_near_events_counts_each_moment_once() -> None:
    assert covered_share([(0, 10), (5, 20), (90, 120)], [(0, 50), (80, 100)]) == pytest.approx(30 / 70)
    assert at_least(0, 5, 0.3) == pytest.approx(1)


def test_what_ran_only_in_the_stalls_comes_first(trial: Trial) -> None:
    rows = []
    for number in range(2_000):
        time_ns = START_NS + number * 5 * MS
        stalled = 1.0 <= number * 0.005 % 2 < 1.5
        if stalled:
            rows.append((time_ns, "main;update;isc_ht_find" + (";memcmp" if number % 3 == 0 else "")))
        elif number % 5 == 0:
            rows.append((time_ns, "main;recv;udp_recvmsg"))
    rows.append((START_NS + 60 * SECOND, "main;after_the_load"))
    trial.__dict__["timed_stacks"] = pl.DataFrame(rows, schema=["time_ns", "stack"], orient="row")
    found = verdict(trial, Asked(qps=1_000), STALLING)
    assert [found.evidence[f"function_{n}"] for n in (1, 2)] == ["isc_ht_find", "memcmp"]
    assert found.evidence["function_1_percent"] == pytest.approx(66.7, abs=2)
    assert found.evidence["function_1_otherwise_percent"] == pytest.approx(0, abs=1)
    assert found.evidence["samples"] == pytest.approx(500, abs=8)
    assert "isc_ht_find in 66%" in found.summary


def test_functions_are_ranked_by_the_difference_of_their_own_shares() -> None:
    first, *_, last = differences({"a;b": 8, "a;c": 2}, {"a;b": 1, "a;c": 9})
    assert (first.name, first.itself, first.other_itself, first.whole) == ("b", 8, 1, 8)
    assert (first.share, first.other_share, last.name) == (0.8, 0.1, "c")


def test_drops_while_it_stood_still_are_told_as_its_consequence(trial: Trial) -> None:
    zero = {f"udp/{name}": [(-1.0, 0.0), (11.0, 0.0)] for name in ("rcvbuf_errors",)}
    used(trial, {**zero, "udp/rcvbuf_errors": [(-1, 0), (1, 0), (1.5, 0.001), (11, 0.001)]})
    others = [
        trial.samples.with_columns(pl.lit(host).alias("host"), pl.lit(0).cast(pl.Int64).alias("value"))
        for host in ("primary", "observer")
    ]
    trial.__dict__["samples"] = pl.concat([trial.samples, *others])
    phase = trial.measure
    assert phase is not None
    phase.start.monotonic_ns, phase.end.monotonic_ns = START_NS - SECOND // 2, START_NS + 10 * SECOND
    load(trial, Asked(qps=1_000), STALLING)
    found = judge("udp-buffer-drops", trial)
    assert found.evidence["dropped_in_stalls_percent"] == pytest.approx(100, abs=2)
    assert "while the whole server stood still" in found.summary


def test_the_chance_is_below_what_is_promised(trial: Trial) -> None:
    load(trial, Asked(qps=2_000), STALLING)
    found = stalls_of(trial)
    assert found is not None and 0 <= found.chance <= ALPHA


LOGS = {
    "bind": "22-Nov-2026 10:58:56.974 general: info: zone catalog.example/IN: notify from 198.18.0.1#51436: serial 7\n"
    "22-Nov-2026 10:58:56.978 xfer-in: info: transfer of 'catalog.example/IN' from 198.18.0.1#53: Transfer status: success\n"
    "22-Nov-2026 10:58:56.978 general: info: catz: updating catalog zone 'catalog.example' with serial 7\n"
    "22-Nov-2026 10:58:56.999 xfer-in: info: transfer of 'z1.example/IN' from 198.18.0.1#53: Transfer status: success\n",
    "knot": "2026-11-22T10:58:56.978+0000 info: [catalog.example.] refresh, remote 198.18.0.1@53, zone updated, 0.01 seconds\n"
    "2026-11-22T10:58:56.978+0000 info: catalog, updating, 16 changes\n"
    "2026-11-22T10:58:56.999+0000 info: [z1.example.] refresh, remote 198.18.0.1@53, zone updated, 0.00 seconds\n",
}


@pytest.mark.parametrize("kind", LOGS)
def test_logs_tell_of_work_on_the_catalog(tmp_path: Path, kind: str) -> None:
    log = tmp_path / "server.log"
    log.write_text(LOGS[kind])
    found = [
        (event.kind, (event.realtime_ns or 0) // SECOND) for event in driver(kind).read_work(log, "catalog.example")
    ]
    kinds = ["transfer of the catalog", "update of its members by the catalog"]
    assert found == [(each, 1_795_345_136) for each in kinds]


def test_the_share_of_slow_queries_counts_those_that_the_client_gave_up() -> None:
    waits = Histogram.of({10: 1, 20: 2, 30: 1})
    assert [_share_above(waits, limit) for limit in (5, 10, 11, 20, 21, 30, 40)] == [1, 1, 0.75, 0.75, 0.25, 0.25, 0.25]


@pytest.mark.parametrize(
    ("start", "end", "sent"),
    [(0, 20, 3), (0, 19, 1), (1, 40, 5), (0, 40, 6), (20, 30, 0), (30, 40, 3), (-5, 9, 0), (0, 10, 1)],
)
def test_queries_within_a_time_are_those_of_whole_bins(start: int, end: int, sent: int) -> None:
    bins = _Bins([0, 10, 30], [1, 2, 3])
    assert (bins.bin_ns, bins.start_ns, bins.end_ns) == (10, 0, 40)
    assert bins.sent_within(start, end) == sent


@pytest.mark.parametrize(
    ("asked", "share", "places", "chance"),
    [(3, 0.1, 10, 0.01), (1, 0.5, 4, 1.0), (9, 0.0, 5, 0.0), (0, 0.5, 0.25, 0.25)],
)
def test_the_chance_of_a_stall_grows_with_the_places_for_it(
    asked: int, share: float, places: float, chance: float
) -> None:
    assert chance_of(asked, share, places) == pytest.approx(chance)


@pytest.mark.parametrize(
    ("moment_ms", "delay_ms"), [(130, 30), (100, 0), (80, -20), (79, None), (480, -20), (479, 379), (900, 400)]
)
def test_the_delay_is_from_the_last_event_or_one_noted_a_little_later(moment_ms: int, delay_ms: int | None) -> None:
    found = _delay([100 * MS, 500 * MS], moment_ms * MS)
    assert found == (None if delay_ms is None else delay_ms * MS)


def silent(from_ms: int, to_ms: int, *, asked: int, slow: int) -> Stalls:
    """Three seconds with ``asked`` queries in each 10 ms, and all answers but in the given time; ``slow``: of 6,000
    queries."""
    times = [START_NS + n * 10 * MS for n in range(300)]
    answered = [0 if from_ms <= n * 10 < to_ms else asked for n in range(300)]
    rows = pl.DataFrame(
        {
            "time_ns": times,
            "sent": [asked] * 300,
            "answered": answered,
            "first_ns": times,
            "last_ns": [time + 10 * MS for time in times],
        }
    )
    found = stalls(rows, Histogram.of({MS: 6_000 - slow, 500 * MS: slow}))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("to_ms", "asked", "slow", "stalled"),
    [
        (1_050, 20, 20, [(1_000, 1_050)]),
        (1_040, 20, 20, []),  # shorter than 50 ms
        (1_060, 5, 20, [(1_000, 1_060)]),  # ten queries in its first half
        (1_060, 4, 20, []),  # eight
        (1_060, 5, 3_000, []),  # every second query is as slow
    ],
)
def test_a_stall_is_long_and_asked_for_and_no_chance(
    to_ms: int, asked: int, slow: int, stalled: list[tuple[int, int]]
) -> None:
    found = silent(1_000, to_ms, asked=asked, slow=slow)
    told = [((each.start_ns - START_NS) // MS, (each.end_ns - START_NS) // MS) for each in found.found]
    assert told == stalled
    assert (found.start_ns, found.end_ns) == (START_NS, START_NS + 3_000 * MS)
    if stalled:
        (start, end) = stalled[0]
        assert found.total_ns == found.longest_ns == found.found[0].duration_ns == (end - start) * MS
        assert found.share == pytest.approx((end - start) / 3_000)
        assert found.found[0].asked == asked * (end - start) // 10 and found.found[0].ended
