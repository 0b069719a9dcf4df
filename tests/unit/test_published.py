"""The sources' figures, and what a run has of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from synthetic import EXEC_NS, SECOND, Plan, build

from dnsrig.comparison.published import Kind, Measured, figures, held_against, sources
from dnsrig.report import published as shown_published
from dnsrig.rundir import Outcome
from dnsrig.runs.run import Run
from dnsrig.stats.statistics import Bound, PercentSpread, Spread

BIND, KNOT = "bind@system", "knot@system"
TRANSPORTS = ["tcp", "tcp+tsig", "xot", "xot+tsig"]


def opened(directory: Path, plan: Plan, experiment: str, change: Callable[[dict[str, Any]], None] | None = None) -> Run:
    """A synthetic run under the name of ``experiment``, each spec changed as asked; transports as the axis says."""
    build(directory, plan)
    path = directory / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["experiment"] = experiment
    for spec in manifest["specs"].values():
        spec["transfer"]["transport"] = spec["variant"]["parameters"].get("transport", "tcp")
        if change:
            change(spec)
    path.write_text(json.dumps(manifest))
    return Run.open(directory)


def of(found: list[Measured], metric: str, variant: str) -> list[Measured]:
    return [m for m in found if (m.figure.metric, m.figure.variant) == (metric, variant)]


def tld(directory: Path, records: int = 14_000_000, outcomes: dict[tuple[str, int, int], Outcome] | None = None) -> Run:
    plan = Plan(
        zones=[1], repeats=5, samples=False, extra_axes={"transport": list(TRANSPORTS)}, outcomes=outcomes or {}
    )
    return opened(directory, plan, "tld-transfer", lambda spec: spec["dataset"].update(records=records))


def test_every_figure_has_numbers_that_fit_its_kind_and_a_source() -> None:
    assert len(figures()) > 40
    assert {figure.source.id for figure in figures()} == set(sources())
    for figure in figures():
        ends = {
            "about": figure.value is not None,
            "spread": figure.value is not None and figure.low is not None and figure.high is not None,
            "range": figure.low is not None and figure.high is not None,
            "at-most": figure.high is not None,
            "at-least": figure.low is not None,
        }
        assert ends[figure.kind], figure
        inside = [end for end in (figure.low, figure.value, figure.high) if end is not None]
        assert inside == sorted(inside), figure


def test_each_transport_is_held_in_percent_of_its_servers_tcp(tmp_path: Path) -> None:
    found = held_against(tld(tmp_path))
    for transport in TRANSPORTS:
        measured = of(found, "relative_time", transport)
        assert [m.subject for m in measured] == ["bind@system 1.2.3", "knot@system 1.2.3"]
        assert all(
            isinstance(m.values, PercentSpread) and m.values.mean == pytest.approx(100, rel=0.01) for m in measured
        )
        assert all(m.differs == [] and m.comparable for m in measured)


def test_the_time_of_a_tld_is_comparable_at_its_size_only(tmp_path: Path) -> None:
    same, small = tld(tmp_path / "same"), tld(tmp_path / "small", records=1_000_000)
    assert all(m.comparable for m in of(held_against(same), "time", "tcp"))
    measured = of(held_against(small), "time", "tcp")
    assert len(measured) == 2
    assert not any(m.comparable for m in measured)
    assert "1,000,000 records here, 14,000,000 in the source: 40" in measured[0].differs[0]
    assert measured[0].differs[0].endswith("ns a record against 1,893.")


def test_a_limit_makes_a_percentage_a_bound(tmp_path: Path) -> None:
    """All variants of a server share the outcome here; of two bounds no ratio is known."""
    found = held_against(tld(tmp_path, outcomes={(BIND, 1, 2): "timeout"}))
    assert [m.bound for m in of(found, "time", "tcp")] == ["≥", ""]
    assert [m.subject for m in of(found, "relative_time", "xot")] == ["knot@system 1.2.3"]


def test_a_server_that_failed_has_no_figure(tmp_path: Path) -> None:
    found = held_against(tld(tmp_path, outcomes={(BIND, 1, 2): "server-failed"}))
    assert {m.subject for m in found if m.values is not None} == {"knot@system 1.2.3"}
    (failed,) = (m for m in found if m.values is None)
    assert (failed.figure.metric, failed.subject, failed.comparable) == ("time", "bind@system 1.2.3", False)
    assert failed.differs[0].startswith("In 1 of 5 repeats a server failed") and "biased" in failed.differs[1]


def many_zones(directory: Path, change: Callable[[dict[str, Any]], None] | None = None) -> Run:
    """Claims 30,000 zones, for making so many rows would take long."""

    def claim(spec: dict[str, Any]) -> None:
        if spec["variant"]["parameters"]["zones"] == 300:
            spec["dataset"]["zones"] = 30_000
        if change:
            change(spec)

    return opened(directory, Plan(zones=[100, 300], repeats=2, samples=False), "many-zones", claim)


def test_30k_zones_have_a_time_and_no_other_number_of_zones_has(tmp_path: Path) -> None:
    measured = of(held_against(many_zones(tmp_path)), "time", "30k zones")
    assert len(measured) == 2
    assert measured[0].subject == "bind@system 1.2.3, zones 300"
    assert isinstance(measured[0].values, Spread)
    assert measured[0].values.n == 2


def test_catalog_zones_are_not_what_the_source_had(tmp_path: Path) -> None:
    run = many_zones(tmp_path, lambda spec: spec["transfer"].update(provisioning="catalog"))
    assert held_against(run) == []


def edit_trials(run: Run, change: Callable[[dict[str, Any]], None]) -> None:
    for path in run.directory.glob("trials/*/*/trial.json"):
        record = json.loads(path.read_text())
        change(record)
        path.write_text(json.dumps(record))


def test_the_first_failure_is_counted_from_exec(tmp_path: Path) -> None:
    run = many_zones(tmp_path)

    def fail(record: dict[str, Any]) -> None:
        start = record["phases"][1]["start"]
        offset_ns = start["realtime_ns"] - start["monotonic_ns"]
        first = {"no free port": EXEC_NS + offset_ns + 38 * SECOND}
        record["logs"]["secondary"]["first_failure_realtime_ns"] = first

    assert of(held_against(run), "first_connect_failure", "30k zones") == []
    edit_trials(run, fail)
    measured = of(held_against(Run.open(run.directory)), "first_connect_failure", "30k zones")
    assert len(measured) == 2
    assert isinstance(measured[0].values, Spread)
    assert measured[0].values.median == pytest.approx(38)
    assert measured[0].differs == ["Known to ±0.001 s, as the log's clock is."]


def test_the_share_of_the_port_search_comes_from_the_profile(tmp_path: Path) -> None:
    run = many_zones(tmp_path)
    for folder in run.directory.glob("trials/*/*"):
        (folder / "profile-secondary.folded").write_text("named;connect;__inet_hash_connect 3\nnamed;read 1\n")
    measured = of(held_against(run), "cpu_share_of_hottest_frame", "30k zones")
    assert isinstance(measured[0].values, Spread)
    assert (measured[0].values.median, measured[0].values.n) == (75, 2)
    assert "flame graph" in measured[0].differs[0]


def test_trials_that_failed_have_no_share_and_no_first_failure(tmp_path: Path) -> None:
    run = many_zones(tmp_path)

    def spoil(record: dict[str, Any]) -> None:
        record["outcome"] = "invalid" if record["spec"]["repeat"] == 1 else "timeout"
        record["logs"]["secondary"]["first_failure_realtime_ns"] = {
            "no free port": record["phases"][1]["start"]["realtime_ns"] + record["spec"]["repeat"] * SECOND
        }

    edit_trials(run, spoil)
    for folder in run.directory.glob("trials/*/*"):
        (folder / "profile-secondary.folded").write_text("named;connect;__inet_hash_connect 3\nnamed;read 1\n")
    found = held_against(Run.open(run.directory))
    for metric in ("cpu_share_of_hottest_frame", "first_connect_failure"):
        assert [m.values and m.values.n for m in of(found, metric, "30k zones")] == [1, 1]
    (first, _) = of(found, "first_connect_failure", "30k zones")
    assert first.middle == ("median", pytest.approx(1.9)), "of the second repeat; measure begins 0.1 s before exec"


def test_30k_zones_tell_what_the_source_does_not_state(tmp_path: Path) -> None:
    def lift(spec: dict[str, Any]) -> None:
        spec["storage"] = "memory"
        spec["hosts"]["secondary"]["settings"] = {"transfers-in": 100, "transfers-per-ns": 50}

    measured = of(held_against(many_zones(tmp_path, lift)), "time", "30k zones")
    assert measured[0].differs == [
        "The secondary's own limits are lifted here (transfers-in = 100, transfers-per-ns = 50); the source does not state its settings.",
        "Servers store in memory here; the source does not state where.",
    ]


def test_a_negative_delay_is_shown_as_the_log_tells_it(tmp_path: Path) -> None:
    run = opened(tmp_path, Plan(zones=[1], repeats=2, samples=False), "smallest-zone")

    def early(record: dict[str, Any]) -> None:
        start = record["phases"][1]["start"]
        offset_ns = start["realtime_ns"] - start["monotonic_ns"]
        record["logs"]["secondary"] |= {
            "last_realtime_ns": EXEC_NS + offset_ns - 354_000_000,
            "resolution_ns": SECOND,
        }

    assert held_against(run) == []
    edit_trials(run, early)
    measured = held_against(Run.open(run.directory))
    assert len(measured) == 2
    assert isinstance(measured[0].values, Spread)
    assert measured[0].values.median == pytest.approx(-0.354)
    assert measured[0].differs == ["The log's clock resolves 1 s here, 1 s in the source."]


def test_fewer_buckets_are_in_percent_of_the_defaults(tmp_path: Path) -> None:
    def narrow(spec: dict[str, Any]) -> None:
        fewer = spec["variant"]["parameters"]["host"] == "fewer-buckets"
        spec["hosts"]["secondary"]["sysctls"] = {
            "net.ipv4.ip_local_port_range": "40000 40999",
            "net.ipv4.tcp_max_tw_buckets": "35" if fewer else "262144",
        }

    plan = Plan(zones=[100], repeats=2, samples=False, extra_axes={"host": ["defaults", "fewer-buckets", "tw-reuse"]})
    found = held_against(opened(tmp_path, plan, "time-wait", narrow))
    fewer = of(found, "relative_time", "tcp_max_tw_buckets=1000")
    defaults = of(found, "relative_time", "tcp_max_tw_buckets=262144")
    assert len(found) == len(fewer) + len(defaults) == 4
    assert not fewer[0].comparable
    assert fewer[0].differs == [
        "100 zones here, 30,000 in the source.",
        "Ports 40000-40999 here, 32768-60999 in the source.",
        "tcp_max_tw_buckets = 35 here, 1000 in the source.",
    ]
    assert defaults[0].values is not None and defaults[0].values.n == 2
    assert defaults[0].differs == fewer[0].differs[:2], "it has the buckets of the source"
    assert defaults[0].middle == ("mean", pytest.approx(100))


def test_defaults_at_their_limit_make_the_remedy_at_most_that(tmp_path: Path) -> None:
    plan = Plan(
        servers=[BIND], zones=[100], repeats=2, samples=False, extra_axes={"host": ["defaults", "fewer-buckets"]}
    )
    run = opened(tmp_path, plan, "time-wait")

    def stop(record: dict[str, Any]) -> None:
        if record["spec"]["variant"]["parameters"]["host"] == "defaults":
            record["outcome"], record["metrics"]["transfer_time_s"] = "timeout", None

    edit_trials(run, stop)
    (fewer,) = of(held_against(Run.open(run.directory)), "relative_time", "tcp_max_tw_buckets=1000")
    assert fewer.bound == "≤"
    assert fewer.middle[1] == pytest.approx(1, rel=0.1), "0.6 s of at least 60 s"


@pytest.mark.parametrize("experiment", ["smallest-zone", "tld-transfer", "many-zones", "time-wait", "of-my-own"])
def test_a_run_without_what_a_figure_needs_shows_nothing(tmp_path: Path, experiment: str) -> None:
    assert held_against(opened(tmp_path, Plan(zones=[7], repeats=0), experiment)) == []


@pytest.mark.parametrize(
    ("kind", "low", "value", "high", "unit", "text"),
    [
        ("range", 66, None, 181, "s", "66..181 s"),
        ("at-most", None, None, 5, "s", "at most 5 s"),
        ("at-least", 1500, None, None, "zones", "at least 1,500 zones"),
        ("about", None, 26.5, None, "s", "about 26.5 s"),
        ("spread", None, 26.5, None, "s", "about 26.5 s"),
        ("spread", 26.34, 26.5, 26.66, "s", "26.5 s [26.34..26.66]"),
        ("spread", 108, 111, 114, "percent of tcp", "111 ±3 % of tcp"),
    ],
)
def test_a_figure_is_shown_as_its_source_has_it(
    kind: Kind, low: float | None, value: float | None, high: float | None, unit: str, text: str
) -> None:
    figure = replace(figures()[0], kind=kind, low=low, value=value, high=high, unit=unit)
    assert shown_published.published(figure) == text


ABOUT, RANGE = {"kind": "about", "value": 10.0}, {"kind": "range", "low": 10.0, "high": 20.0}
AT_MOST, AT_LEAST = {"kind": "at-most", "high": 20.0}, {"kind": "at-least", "low": 10.0}
BOUND = "A bound only: repeats that hit their limit would have taken longer."


@pytest.mark.parametrize(
    ("figure", "median", "bound", "sentence"),
    [
        (ABOUT, 25.0, "", "The median is 2.5 times the published figure."),
        (ABOUT, 25.0, "≥", ""),
        (ABOUT, 0.0, "", ""),
        ({"kind": "about", "value": None}, 25.0, "", ""),
        (RANGE, 9.99, "", "The median lies below the published range."),
        (RANGE, 10.0, "", "The median lies within the published range."),
        (RANGE, 20.0, "", "The median lies within the published range."),
        (RANGE, 20.01, "", "The median lies above the published range."),
        (RANGE, 20.01, "≥", "The median lies above the published range."),
        (RANGE, 20.01, "≤", BOUND),
        (RANGE, 9.99, "≥", BOUND),
        (RANGE, 9.99, "≤", "The median lies below the published range."),
        (RANGE, 15.0, "≥", BOUND),
        (AT_MOST, 21.0, "", "The median lies above the published bound."),
        (AT_LEAST, 9.0, "", "The median lies below the published bound."),
        (AT_LEAST, 99.0, "", "The median lies within the published bound."),
    ],
)
def test_where_the_measured_lies(figure: dict[str, Any], median: float, bound: Bound, sentence: str) -> None:
    published = replace(figures()[0], **{"low": None, "value": None, "high": None, **figure})
    values = Spread(3, median, median, median, median)
    assert shown_published.lies(Measured(published, "BIND 9", values, bound)) == sentence
    other = "Not compared with the published figure, which is for another size or other conditions."
    assert shown_published.lies(Measured(published, "BIND 9", values, bound, comparable=False)) == other
