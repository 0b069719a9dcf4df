"""Traps of resolvers, on rows made for the purpose. Each is provoked in tests/integration/test_resolver_traps.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
import replay_data
import synthetic
import world_data
from hypothesis import given
from hypothesis import strategies as st
from trial_data import SECOND, clean_trial, judge, measured

from dnsrig.experiment import model, trial_specs
from dnsrig.rundir import Level, Resolving, Scalar
from dnsrig.runs.row_files.statistics import STATISTICS
from dnsrig.runs.run import Run
from dnsrig.runs.trial import Trial
from dnsrig.servers import driver
from dnsrig.traps import Conclusion, all_traps
from dnsrig.traps.ttls_expire_together import peaks_of
from dnsrig.traps.unequal_settings import before, look, settings_of, stands_for

DURATION_S = 26


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    """A resolver that resolved from a world for 26 s."""
    trial = clean_trial(tmp_path / "run")
    replay_data.put(trial)
    measured(trial, DURATION_S)
    spec = trial.record.spec
    spec.hosts["internet"] = spec.hosts["primary"].model_copy(update={"role": "world"})
    spec.hosts[trial.subject].resolving = Resolving()
    return trial


@pytest.mark.parametrize("trap", ["warm-cache", "clock-outside-validity", "ttls-expire-together"])
def test_what_is_no_resolver_is_not_judged(trial: Trial, trap: str) -> None:
    trial.record.spec.hosts[trial.subject].resolving = None
    assert all_traps()[trap].after(trial) is None


# --- warm-cache ---


def counted(trial: Trial, misses: int, upstream: int) -> None:
    """From the start of `measure` to its end."""
    rows = [(0, "cache_misses", 7.0), (0, "upstream_queries", 40.0)]
    rows += [
        (DURATION_S * SECOND, "cache_misses", 7.0 + misses),
        (DURATION_S * SECOND, "upstream_queries", 40.0 + upstream),
    ]
    pl.DataFrame(rows, schema=dict(STATISTICS.schema), orient="row").write_ipc_stream(trial.directory / STATISTICS.name)


@pytest.mark.parametrize(
    ("misses", "upstream", "verdict"),
    [
        (1_400, 2_000, "clear"),
        (740, 2_000, "found"),
        (1_400, 740, "found"),
        (760, 760, "clear"),
        (750, 750, "clear"),
        (749, 750, "found"),
        (750, 749, "found"),
    ],
    ids=[
        "empty",
        "few misses",
        "few upstream",
        "a few names known by others",
        "three quarters",
        "fewer misses",
        "fewer upstream",
    ],
)
def test_warm_cache(trial: Trial, misses: int, upstream: int, verdict: str) -> None:
    """Of a thousand different questions."""
    counted(trial, misses, upstream)
    found = judge("warm-cache", trial)
    assert found.verdict == verdict
    if verdict == "found":
        assert list(found.evidence.values()) == [1_000, misses, upstream]


@pytest.mark.parametrize(("level", "verdict"), [("do-unvalidated", "found"), ("validating", "clear")])
def test_names_that_are_missing_may_be_denied_by_others(trial: Trial, level: Level, verdict: str) -> None:
    trial.record.spec.hosts[trial.subject].resolving = Resolving(level=level)
    trial.record.instruments["load"]["rcodes"] = {"NOERROR": 9_600, "NXDOMAIN": 400}
    counted(trial, 500, 500)
    assert judge("warm-cache", trial).verdict == verdict


def test_one_that_was_warmed_up_is_not_called_warm(trial: Trial) -> None:
    counted(trial, 1, 1)
    trial.record.spec.options["warmup_s"] = 10.0
    assert all_traps()["warm-cache"].after(trial) is None


@pytest.mark.parametrize(
    "told", [{"sent": 9_000}, {}, {"answered": 9_000}], ids=["a part of the stream", "no counters", "unanswered"]
)
def test_where_nothing_tells_whether_a_cache_was_warm(trial: Trial, told: dict[str, int]) -> None:
    if told:
        counted(trial, 1, 1)
    trial.record.instruments["load"] |= told
    assert judge("warm-cache", trial).verdict == "cannot-tell"


def test_few_questions_tell_nothing_of_a_cache(trial: Trial) -> None:
    counted(trial, 1, 1)
    trial.record.instruments["stream"]["holds"]["distinct_questions"] = 99
    assert judge("warm-cache", trial).verdict == "cannot-tell"


# --- clock-outside-validity ---


@pytest.mark.parametrize(
    ("level", "from_s", "until_s", "verdict"),
    [
        ("validating", -5, DURATION_S + 5, "clear"),
        ("validating", 5, DURATION_S + 5, "found"),
        ("validating", -5, DURATION_S - 5, "found"),
        ("do-unvalidated", 5, 10, "clear"),
        ("validating", 0, DURATION_S, "clear"),
        ("validating", 1, DURATION_S, "found"),
        ("validating", 0, DURATION_S - 1, "found"),
    ],
    ids=["within", "not yet", "no more", "nobody looks", "just within", "a second early", "a second late"],
)
def test_clock_outside_validity(trial: Trial, level: Level, from_s: int, until_s: int, verdict: str) -> None:
    assert trial.measure is not None
    begin_s = trial.measure.start.realtime_ns // SECOND
    trial.measure.end.realtime_ns = trial.measure.start.realtime_ns + DURATION_S * SECOND
    trial.record.spec.hosts[trial.subject].resolving = Resolving(level=level)
    trial.record.instruments["signatures"] = {"valid_from_s": begin_s + from_s, "valid_until_s": begin_s + until_s}
    found = judge("clock-outside-validity", trial)
    assert found.verdict == verdict and ("UTC" in found.summary) == (verdict == "found")


def test_a_trial_that_does_not_know_when_signatures_are_valid(trial: Trial) -> None:
    trial.record.spec.hosts[trial.subject].resolving = Resolving(level="validating")
    assert judge("clock-outside-validity", trial).verdict == "cannot-tell"


# --- ttls-expire-together ---


UNBOUND = [118, 171, 56, 20, 30, 46, 54, 26, 10, 25, 11, 44, 15, 18, 17, 14, 38, 14, 29, 14, 17, 34, 7, 21, 8]
"""Of a real trial with TTLs of 5 s, and of one of BIND with those that are drawn."""
AS_DRAWN = [64, 121, 53, 15, 15, 19, 17, 7, 6, 10, 11, 8, 3, 7, 10, 2, 11, 8, 9, 11, 5, 8, 6, 6, 2]


def asked(trial: Trial, seconds: list[int]) -> None:
    """So many upstream queries in each second of `measure`."""
    assert trial.measure is not None
    begin_ns = trial.measure.start.monotonic_ns
    rows: list[dict[str, Any]] = [
        {"time_ns": begin_ns + number * SECOND, "queries": count} for number, count in enumerate(seconds)
    ]
    world_data.write_queries(trial, *rows)


@pytest.mark.parametrize(
    ("seconds", "verdict"),
    [
        ([900, *[200, 60, 50, 55, 50] * 5], "found"),
        ([900, *[200, 210, 50, 55, 50] * 5], "found"),
        (UNBOUND, "found"),
        (AS_DRAWN, "clear"),
        ([900, 300, 250, 220, 190, 180, 170, 160, 150, 140, 140, 130, 130, 120, 120, 120, 110, 110, 110, 100], "clear"),
        ([900, *[200, 190, 210, 205, 195] * 5], "clear"),
        ([900, 200, 60, 50, 55, 50, 200, 60, 50, 55], "cannot-tell"),
        ([], "cannot-tell"),
    ],
    ids=[
        "peaks",
        "peaks over two seconds",
        "Unbound",
        "BIND, as drawn",
        "an empty cache fills",
        "steady",
        "too short",
        "no counts",
    ],
)
def test_ttls_expire_together(trial: Trial, seconds: list[int], verdict: str) -> None:
    asked(trial, seconds)
    found = judge("ttls-expire-together", trial)
    assert found.verdict == verdict
    if verdict == "found":
        assert found.evidence["period_s"] == 5


@given(st.lists(st.integers(0, 1000), max_size=60))
def test_peaks_are_of_three_periods_at_least(seconds: list[int]) -> None:
    peaks = peaks_of(seconds)
    assert peaks is None or (peaks.count >= 3 and 0 < peaks.share <= 1)


# --- unequal-settings ---


def compared(directory: Path, **of: tuple[dict[str, Any], dict[str, Scalar]]) -> Conclusion:
    """A run of these servers, each with what differs from the defaults, and its own settings."""
    run = Run.open(synthetic.build(directory, synthetic.Plan(servers=[f"{kind}@system" for kind in of], zones=[100])))
    for spec in run.manifest.specs.values():
        host = spec.hosts[spec.subject]
        assert host.server is not None
        resolving, host.settings = of[host.server.kind]
        host.resolving = Resolving(**resolving)
    return before(run.manifest, {})


@pytest.mark.parametrize(
    ("one", "other", "says"),
    [
        (({}, {}), ({}, {}), ""),
        (({"prefetch": True}, {}), ({"prefetch": True}, {}), ""),
        (({"prefetch": True}, {}), ({}, {}), "prefetch is True and False"),
        (({}, {}), ({}, {"qname-minimisation": False}), "qname_minimisation is True and qname-minimisation = False"),
        (({}, {"max-cache-size": "8M"}), ({}, {}), "cache_mb is max-cache-size = 8M and 256"),
        (({}, {"tcp-listen-queue": 10}), ({}, {"so-reuseport": True}), ""),
    ],
    ids=["defaults", "both", "one", "its own word", "the other's", "others"],
)
def test_unequal_settings(tmp_path: Path, one: Any, other: Any, says: str) -> None:
    found = compared(tmp_path / "run", bind=one, unbound=other)
    assert (found.verdict == "found") == bool(says) and says in found.summary


def test_a_setting_that_all_have_at_both_values_is_an_axis(tmp_path: Path) -> None:
    servers = ["bind@system", "unbound@system"]
    run = Run.open(synthetic.build(tmp_path / "run", synthetic.Plan(servers=servers, zones=[1, 2])))
    for spec in run.manifest.specs.values():
        spec.hosts[spec.subject].resolving = Resolving(prefetch=spec.dataset.zones == 1)
    assert before(run.manifest, {}).verdict == "clear"


@pytest.mark.parametrize("name", model.builtin())
def test_no_built_in_experiment_compares_unequal_resolvers(name: str) -> None:
    points = model.points(model.load(model.find(name), "standard", []))
    assert look(trial_specs.provisional(name, point, [0, 1]) for point in points).verdict == "clear"


def test_built_in_experiments_compare_resolvers() -> None:
    points = model.points(model.load(model.find("cold-minute"), "standard", []))
    assert all(settings_of(trial_specs.provisional("cold-minute", point, [0, 1])) for point in points)


def test_what_is_no_resolver_has_no_such_settings(tmp_path: Path) -> None:
    assert before(Run.open(synthetic.build(tmp_path / "run")).manifest, {}).verdict == "clear"


@pytest.mark.parametrize(
    ("kind", "own", "stands"),
    [
        ("bind", "max-cache-size", ["cache_mb"]),
        ("unbound", "serve-expired", ["serve_stale"]),
        ("powerdns-recursor", "recursor.qname_minimization", ["qname_minimisation"]),
        ("knot-resolver", "option.NO_MINIMIZE", ["qname_minimisation"]),
        ("knot-resolver", "option.NO_0X20", []),
    ],
)
def test_what_an_own_setting_stands_for(kind: str, own: str, stands: list[str]) -> None:
    able = driver(kind).as_resolver
    assert able is not None and stands_for(able.words, own) == stands
