"""Ports, TIME_WAIT and the search for a free port: exhausted is not the same as full."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st
from trial_data import clean_trial, judge, log_of, measured, series, use

from dnsrig.rundir import ProfileRecord
from dnsrig.runs.trial import Trial
from dnsrig.traps import Conclusion, all_traps

BUCKETS = "net.ipv4.tcp_max_tw_buckets"
FAILURE = "no free port"


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return clean_trial(tmp_path / "run")


def host(trial: Trial, name: str, **sysctls: str) -> None:
    """Sysctls of net.ipv4 as read back from a host."""
    named = {f"net.ipv4.{key}": value for key, value in sysctls.items()}
    trial.record.read_back["hosts"].setdefault(name, {}).setdefault("sysctls", {}).update(named)


def wall(
    trial: Trial, zones: int, opened: list[int], seen: list[int], failures: int = 0, first_s: float | None = None
) -> Conclusion:
    """A sample a second from exec on: connections opened, all of them in TIME_WAIT soon, and zones seen."""
    trial.record.spec.dataset.zones = zones
    start = measured(trial, len(opened) - 1)
    seen_s = [second - 0.5 for second in range(1, len(seen)) for _ in range(seen[second] - seen[second - 1])]
    columns = {"secondary__sockets__tcp_time_wait": opened, "secondary__tcp__active_opens": opened}
    use(trial, series(start, **columns), seen_s)
    log_of(trial, {FAILURE: failures}, first_s)
    return judge("ports-exhausted", trial)


FULL = [0, 400, 800, *[1000] * 27]
"""Of 1,000 ports, all taken in 3 s and no more opened for as long as TIME_WAIT lasts."""


@pytest.fixture
def thousand_ports(trial: Trial) -> Trial:
    host(trial, "secondary", ip_local_port_range="40000 40999")
    return trial


def test_the_wall(thousand_ports: Trial) -> None:
    finding = wall(thousand_ports, 3000, FULL, FULL, failures=2000, first_s=2.6)
    assert finding.verdict == "found"
    evidence = finding.evidence
    assert (evidence["time_wait_peak_sockets"], evidence["ephemeral_ports"]) == (1000, 1000)
    assert (evidence["ports_full_s"], evidence["zones_then"]) == (3, 1000)
    assert evidence["first_failure_s"] == pytest.approx(2.6)
    assert evidence["log_resolution_s"] == 0.001
    assert "the log reports no free port 2,000 times, first 2.60 s after exec (±0.001 s)" in finding.summary
    assert evidence["log_line"] == f"a line that says {FAILURE}"


def test_the_default_range_is_that_of_the_source(trial: Trial) -> None:
    trial.record.read_back = {}
    finding = wall(trial, 30_000, [0, 14_000, *[28_232] * 5], [0] * 7, failures=1)
    assert finding.evidence["ephemeral_ports"] == 28_232, "S1's 28,231, counted inclusively"


def test_the_wall_is_found_without_a_log_that_says_so(thousand_ports: Trial) -> None:
    thousand_ports.record.outcome = "timeout"
    finding = wall(thousand_ports, 3000, FULL, FULL)
    assert finding.verdict == "found"
    assert finding.evidence["opens_per_s_before"] == pytest.approx(333.3)
    assert finding.evidence["opens_per_s_after"] == 0


def test_a_full_range_that_suffices_is_no_wall(thousand_ports: Trial) -> None:
    """995 zones and 1,000 ports: the last five come late for another reason, and ports were left for them."""
    opened = [0, 400, 800, *[990] * 27, 995]
    assert wall(thousand_ports, 995, opened, opened).verdict == "clear"


def test_a_full_range_in_which_ports_become_free_as_fast_as_they_are_taken_is_no_wall(thousand_ports: Trial) -> None:
    start = measured(thousand_ports, 60)
    thousand_ports.record.spec.dataset.zones = 20_000
    opened = [300 * second for second in range(62)]
    columns = {
        "secondary__sockets__tcp_time_wait": [min(1000, o) for o in opened],
        "secondary__tcp__active_opens": opened,
    }
    use(thousand_ports, series(start, **columns), [n / 300 for n in range(18_000)])
    log_of(thousand_ports, {})
    assert judge("ports-exhausted", thousand_ports).verdict == "clear"


@pytest.mark.parametrize("remedy", ["wider-range", "tw-reuse", "source-addresses", "fewer-buckets"])
def test_remedies(thousand_ports: Trial, remedy: str) -> None:
    """As found without them; with failures in the log they have not helped."""
    trial, spec = thousand_ports, thousand_ports.record.spec
    trial.record.outcome = "timeout"
    taken = FULL
    match remedy:
        case "wider-range":
            host(trial, "secondary", ip_local_port_range="1024 65535")
        case "tw-reuse":
            host(trial, "secondary", tcp_tw_reuse="1")
        case "source-addresses":
            spec.hosts["secondary"].source_addresses = ["198.18.1.1", "198.18.1.2"]
        case "fewer-buckets":
            taken = [min(200, opened) for opened in FULL]
    assert wall(trial, 3000, taken, FULL).verdict == "clear"


def test_source_addresses_have_ports_each(thousand_ports: Trial) -> None:
    thousand_ports.record.spec.hosts["secondary"].source_addresses = ["198.18.1.1"]
    finding = wall(thousand_ports, 3000, [0, 1000, *[2000] * 9], FULL[:11], failures=5)
    assert (finding.verdict, finding.evidence["ephemeral_ports"]) == ("found", 2000)


def test_tw_reuse_that_does_not_help_is_found(thousand_ports: Trial) -> None:
    host(thousand_ports, "secondary", tcp_tw_reuse="1")
    assert wall(thousand_ports, 3000, FULL, FULL, failures=7).verdict == "found"


def test_several_primaries_and_failures(thousand_ports: Trial) -> None:
    spec = thousand_ports.record.spec
    spec.hosts["primary2"] = spec.hosts["primary"].model_copy()
    finding = wall(thousand_ports, 3000, FULL, FULL, failures=7, first_s=3)
    assert finding.verdict == "found"
    assert "to each of 2 primaries" in finding.summary
    assert finding.evidence["ports_full_s"] is None, "samples cannot tell: a port may serve both"


@pytest.mark.parametrize(
    ("outcome", "taken", "verdict"),
    [("timeout", FULL, "cannot-tell"), ("done", FULL, "clear"), ("timeout", [0, *[900] * 29], "clear")],
)
def test_several_primaries_and_a_log_that_says_nothing(
    thousand_ports: Trial, outcome: Literal["done", "timeout"], taken: list[int], verdict: str
) -> None:
    """A full range that did not let all zones come may be the reason, or not."""
    spec = thousand_ports.record.spec
    spec.hosts["primary2"] = spec.hosts["primary"].model_copy()
    thousand_ports.record.outcome = outcome
    finding = wall(thousand_ports, 3000, taken, FULL)
    assert finding.verdict == verdict
    assert "1,000 of 1,000 ports" in finding.summary or verdict == "clear"


def test_failures_with_ports_to_spare_have_another_cause(thousand_ports: Trial) -> None:
    finding = wall(thousand_ports, 3000, [0, *[100] * 20], [0, *[100] * 20], failures=3)
    assert finding.verdict == "cannot-tell"
    assert "reports no free port 3 times" in finding.summary and "100 of 1,000" in finding.summary


@pytest.mark.parametrize(("peak", "verdict"), [(500, "found"), (499, "cannot-tell")])
def test_failures_belong_to_ports_if_half_of_them_are_taken(thousand_ports: Trial, peak: int, verdict: str) -> None:
    assert wall(thousand_ports, 3000, [0, *[peak] * 20], [0, *[peak] * 20], failures=3).verdict == verdict


@pytest.mark.parametrize(
    ("taken", "zones", "verdict"),
    [(950, 3000, "found"), (949, 3000, "clear"), (950, 1000, "clear"), (950, 1001, "found")],
)
def test_a_range_is_full_at_95_percent(thousand_ports: Trial, taken: int, zones: int, verdict: str) -> None:
    """The other 50 ports are free: with 1,000 zones there is one for each of the last."""
    thousand_ports.record.outcome = "timeout"
    opened = [0, 400, 800, *[taken] * 27]
    assert wall(thousand_ports, zones, opened, opened).verdict == verdict


@pytest.mark.parametrize(("later", "verdict"), [(0, "found"), (400, "found"), (450, "clear")])
def test_a_quarter_of_the_earlier_rate_is_a_stall(thousand_ports: Trial, later: int, verdict: str) -> None:
    """1,000 connections in three seconds, and then 80 or 90 a second for five: 83 are a quarter."""
    thousand_ports.record.outcome = "timeout"
    opened = [0, 400, 800, 1000, *[1000 + later * second // 5 for second in range(1, 6)], *[1000 + later] * 20]
    start = measured(thousand_ports, len(opened) - 1)
    thousand_ports.record.spec.dataset.zones = 3000
    columns = {
        "secondary__sockets__tcp_time_wait": [min(1000, count) for count in opened],
        "secondary__tcp__active_opens": opened,
    }
    use(thousand_ports, series(start, **columns), [n / 400 for n in range(1000)])
    log_of(thousand_ports, {})
    assert judge("ports-exhausted", thousand_ports).verdict == verdict


def test_ports_exhausted_without_data(trial: Trial) -> None:
    use(trial, series(0))
    trial.record.logs = {}
    assert judge("ports-exhausted", trial).verdict == "cannot-tell"


@given(zones=st.integers(min_value=1, max_value=1000), stop=st.integers(min_value=0, max_value=20))
def test_as_many_zones_as_ports_are_never_too_many(
    tmp_path_factory: pytest.TempPathFactory, zones: int, stop: int
) -> None:
    trial = clean_trial(tmp_path_factory.mktemp("ports") / "run", synthetic.Plan(servers=["bind@system"], repeats=1))
    host(trial, "secondary", ip_local_port_range="40000 40999")
    trial.record.outcome = "timeout"
    opened = [0, zones // 2, *[max(0, zones - stop)] * 20]
    assert wall(trial, zones, opened, opened).verdict == "clear"


@pytest.mark.parametrize(
    ("limit", "overflows", "verdict"),
    [("1000", 9000, "found"), ("1000", 0, "clear"), ("131072", 50, "clear"), ("262144", 0, "clear")],
)
def test_lowered_tw_buckets(trial: Trial, limit: str, overflows: int, verdict: str) -> None:
    start = measured(trial, 3)
    host(trial, "secondary", tcp_max_tw_buckets=limit)
    trial.record.spec.hosts["secondary"].sysctls = {BUCKETS: limit}
    use(trial, series(start, secondary__tcp__time_wait_overflow=[7, 7, 7 + overflows, 7 + overflows]))
    finding = judge("lowered-tw-buckets", trial)
    assert finding.verdict == verdict
    if verdict == "found":
        assert finding.evidence == {
            "kernel_limit_sockets": 131_072,
            "secondary_limit_sockets": 1000,
            "secondary_without_time_wait_sockets": 9000,
        }
        assert "9,000 on the secondary" in finding.summary


def test_lowered_tw_buckets_without_samples(trial: Trial) -> None:
    host(trial, "secondary", tcp_max_tw_buckets="1000")
    trial.record.spec.hosts["secondary"].sysctls = {BUCKETS: "1000"}
    use(trial, series(0))
    assert judge("lowered-tw-buckets", trial).verdict == "cannot-tell"


def test_a_resolver_has_buckets_too(trial: Trial) -> None:
    """With a simulated Internet there is neither a primary nor a secondary."""
    for spec, role in zip(trial.record.spec.hosts.values(), ("resolver", "world", None)):
        spec.role = role  # type: ignore[assignment]
    assert judge("lowered-tw-buckets", trial).verdict == "clear"


def test_lowered_tw_buckets_where_nothing_was_recorded(trial: Trial) -> None:
    trial.record.read_back = {}
    assert judge("lowered-tw-buckets", trial).verdict == "cannot-tell"


SEARCH = "main;connect;tcp_v4_connect;__inet_hash_connect"
OTHER = "main;read_zone"


def profiled(directory: Path, stacks: dict[str, int]) -> Trial:
    return clean_trial(directory / "run", synthetic.Plan(stacks=stacks))


@pytest.mark.parametrize(
    ("searching", "other", "verdict"),
    [
        (640, 360, "found"),
        (10, 90, "found"),
        (99, 901, "clear"),
        (0, 500, "clear"),
        (64, 35, "cannot-tell"),
        (334, 665, "found"),
    ],
)
def test_connect_port_search(tmp_path: Path, searching: int, other: int, verdict: str) -> None:
    finding = judge("connect-port-search", profiled(tmp_path, {f"{SEARCH};_raw_spin_lock": searching, OTHER: other}))
    assert finding.verdict == verdict
    if searching == 640:
        assert finding.evidence == {
            "port_search_percent": 64.0,
            "hottest_frame": "_raw_spin_lock",
            "hottest_frame_percent": 64.0,
            "samples": 1000,
        }


def test_connect_port_search_where_no_profile_was_asked_for(trial: Trial) -> None:
    assert all_traps()["connect-port-search"].after(trial) is None


def test_connect_port_search_says_why_there_is_no_profile(trial: Trial) -> None:
    trial.record.spec.hosts["secondary"].profile = True
    trial.record.profiles = {"secondary": ProfileRecord(reason="perf is not installed")}
    finding = judge("connect-port-search", trial)
    assert (finding.verdict, finding.summary) == ("cannot-tell", "perf is not installed")


def test_a_port_range_is_a_fact_of_the_host_under_test(thousand_ports: Trial) -> None:
    host(thousand_ports, "primary", ip_local_port_range="50000 50001")
    assert wall(thousand_ports, 3000, FULL, FULL, failures=1).evidence["ephemeral_ports"] == 1000
