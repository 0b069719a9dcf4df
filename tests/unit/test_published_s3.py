"""S3's figures and what a run has of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from synthetic import Plan, build
from trial_data import clean_trial

from dnsrig.comparison.published import Measured, figures, held_against, s3
from dnsrig.comparison.published.s3 import CARRIERS, CELLS
from dnsrig.report.published import held
from dnsrig.rundir import LinkSpec, PathSpec
from dnsrig.runs.run import Run
from dnsrig.stats.statistics import Spread

WAY = {"rate_mbit": 20.0, "delay_ms": 125.0, "jitter_ms": 50.0, "loss_percent": 0.1}
"""The source's link, one way."""


def opened(
    directory: Path, experiment: str, axes: dict[str, list[Any]], change: Callable[[dict[str, Any]], None]
) -> Run:
    """A synthetic run of one server under the name of ``experiment``, each spec and trial changed alike."""
    build(directory, Plan(servers=["knot@system"], zones=[100], repeats=2, samples=False, extra_axes=axes, baseline={}))
    path = directory / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["experiment"] = experiment
    for spec in manifest["specs"].values():
        spec["procedure"] = "replication"
        change(spec)
    path.write_text(json.dumps(manifest))
    return Run.open(directory)


def cells(directory: Path, way: dict[str, Any] | None = WAY, **sizes: int) -> Run:
    """All twelve cells, and one of pipelined transfers, which the source has not; ``way``: both directions of the
    link."""

    def change(spec: dict[str, Any]) -> None:
        chosen = spec["variant"]["parameters"]
        carrier, _, tls = chosen["carrier"].partition("+")
        spec["options"] = {"carrier": carrier}
        spec["transfer"]["transport"] = "xot" if tls else "tcp"
        spec["dataset"] |= {"kind": chosen["case"], **sizes}
        spec["links"][0] |= {"kind": "tun" if way else "veth", "forward": way, "reverse": way}

    carriers = [carrier + tls for carrier in CARRIERS.values() for tls in ("", "+tls")] + ["pipelined"]
    return opened(directory, "long-distance", {"carrier": carriers, "case": ["tld", "tiny-zones"]}, change)


def test_each_of_the_twelve_cells_has_its_own_variant(tmp_path: Path) -> None:
    found = held_against(cells(tmp_path))
    wanted = [f for f in figures() if f.experiment.startswith("long-distance")]
    assert [measured.figure for measured in found] == wanted
    assert len(wanted) == 12 == 2 * len(CELLS)
    assert not any(measured.comparable for measured in found)


def test_at_the_sources_size_it_is_comparable_and_at_another_both_are_told(tmp_path: Path) -> None:
    same = held_against(cells(tmp_path / "same", zones=100_000, records=8_000_000))
    assert all(measured.comparable for measured in same)
    other = held_against(cells(tmp_path / "other", zones=2_000, records=200_000))
    (large, *_), (many, *_) = _of(other, "long-distance-big-zone"), _of(other, "long-distance-many-zones")
    assert large.differs[0].startswith("200,000 records here, 8,000,000 in the source: ")
    assert large.differs[0].endswith(" µs a record against 208.")
    assert many.differs[0].startswith("2,000 zones here, 100,000 in the source: ")
    assert all("does not state its congestion control" in " ".join(m.differs) for m in other)


def test_another_link_or_another_server_is_no_place_to_compare(tmp_path: Path) -> None:
    whole = {"zones": 100_000, "records": 8_000_000}
    plain = held_against(cells(tmp_path / "plain", None, **whole))
    assert len(plain) == 12 and not any(m.comparable for m in plain)
    assert all("No far link was emulated here." in m.differs for m in plain)
    near = held_against(cells(tmp_path / "near", {**WAY, "delay_ms": 60.0}, **whole))
    assert not any(m.comparable for m in near)
    assert "The far link here has 20 Mbit/s, 60 ± 50 ms and 0.1 % loss." in near[0].differs
    run = cells(tmp_path / "bind", **whole)
    for spec in run.manifest.specs.values():
        server = spec.hosts["secondary"].server
        assert server is not None
        server.kind = "bind"
    others = held_against(run)
    assert not any(m.comparable for m in others)
    assert all("The source had Knot DNS with Redis." in m.differs for m in others)


@pytest.mark.parametrize(
    ("change", "said"),
    [({"ordered": False}, "ms out of order and"), ({"loss_over_time": [[0, 0.1]]}, "a loss that changes")],
)
def test_the_same_numbers_out_of_order_or_changing_are_another_link(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    found = held_against(cells(tmp_path, {**WAY, **change}, zones=100_000, records=8_000_000))
    assert not any(m.comparable for m in found) and all(said in m.differs[0] for m in found)


def test_a_cell_whose_server_failed_once_is_not_left_out(tmp_path: Path) -> None:
    run = cells(tmp_path, zones=100_000, records=8_000_000)
    for path in run.directory.glob("trials/*/01/trial.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"outcome": "server-failed"}))
    found = held_against(Run.open(run.directory))
    assert len(found) == 12 and not any(m.comparable for m in found)
    assert all(m.values and m.values.n == 1 for m in found)
    assert all("In 1 of 2 repeats a server failed" in m.differs[0] for m in found)


@pytest.mark.parametrize(
    ("outcome", "said"),
    [("server-failed", "In 2 of 2 repeats a server failed"), ("invalid", "2 of 2 repeats were invalid")],
)
def test_a_cell_of_which_no_repeat_counts_says_that_it_was_asked_for(tmp_path: Path, outcome: str, said: str) -> None:
    run = cells(tmp_path, zones=2_000, records=200_000)
    for path in run.directory.glob("trials/*/*/trial.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"outcome": outcome}))
    found = Run.open(run.directory)
    assert len(held_against(found)) == 12
    assert all(m.values is None and not m.comparable and said in m.differs[0] for m in held_against(found))
    rows = [row for cell in held(found) for row in cell.rows]
    assert {(row.measured, row.repeats) for row in rows} == {("–", "0 repeats")}
    assert all(row.sentence.startswith(f"There is no measured figure to compare with it. {said}") for row in rows)


def test_a_cell_that_was_not_tried_yet_has_no_row(tmp_path: Path) -> None:
    run = cells(tmp_path)
    shutil.rmtree(run.directory / "trials")
    assert held_against(Run.open(run.directory)) == []


def _of(found: list[Measured], experiment: str) -> list[Measured]:
    return [measured for measured in found if measured.figure.experiment == experiment]


@pytest.mark.parametrize("outcome", ["done", "invalid"])
def test_twice_the_workers_are_a_ratio_of_rates_of_what_counts(tmp_path: Path, outcome: str) -> None:
    run = opened(tmp_path, "workers", {"workers": ["1", "2", "50", "100", "400"]}, lambda spec: None)
    for path in run.directory.glob("trials/*/*/trial.json"):
        record = json.loads(path.read_text())
        workers = int(record["spec"]["variant"]["parameters"]["workers"])
        second = record["spec"]["repeat"] == 2
        record["metrics"]["zones_per_s"] = 3.0 * min(workers, 80) * (5 if second and workers == 100 else 1)
        record["outcome"] = outcome if second else "done"
        path.write_text(json.dumps(record))
    found = held_against(Run.open(run.directory))
    assert [m.subject for m in found] == [
        "1 to 2 workers, server knot@system, zones 100",
        "50 to 100 workers, server knot@system, zones 100",
    ]
    (doubled, bound) = (m.values for m in found)
    assert isinstance(doubled, Spread) and isinstance(bound, Spread)
    assert (doubled.median, doubled.n) == (pytest.approx(2), 2 if outcome == "done" else 1)
    assert (bound.low, bound.high) == (pytest.approx(1.6), pytest.approx(8 if outcome == "done" else 1.6))


def test_a_size_is_told_for_each_and_as_the_source_had_it() -> None:
    size = s3.Size(2_000, 100_000, "zone")
    assert size.sentence(1.0, 250.0) == "2,000 zones here, 100,000 in the source: 500 µs a zone against 2,500."
    assert size.extrapolated(3.0) == 150.0
    assert s3.Size(0, 100, "zone").extrapolated(3.0) == 300.0
    assert not size.same and s3.Size(100_000, 100_000, "zone").same


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ({}, "no limit of its rate, 0 ± 0 ms and 0 % loss"),
        (WAY, "20 Mbit/s, 125 ± 50 ms and 0.1 % loss"),
        ({**WAY, "ordered": False}, "20 Mbit/s, 125 ± 50 ms out of order and 0.1 % loss"),
        ({**WAY, "loss_over_time": [(0, 0.1)]}, "20 Mbit/s, 125 ± 50 ms and a loss that changes"),
    ],
)
def test_a_link_is_described(way: dict[str, Any], said: str) -> None:
    assert s3._described(PathSpec(**way)) == said
    assert s3._is_the_sources(PathSpec(**way)) == (way == WAY)


@pytest.mark.parametrize("name", ["rate_mbit", "delay_ms", "jitter_ms", "loss_percent"])
def test_each_property_of_the_link_counts_in_either_direction(tmp_path: Path, name: str) -> None:
    other = PathSpec(**{**WAY, name: 7.0})
    assert not s3._is_the_sources(other)
    spec = clean_trial(tmp_path / "run").record.spec
    same = PathSpec(**WAY)
    for forward, reverse, sentences in ((same, same, 0), (other, same, 1), (same, other, 1), (None, same, 1)):
        spec.links = [LinkSpec(ends=("primary", "secondary"), kind="tun", forward=forward, reverse=reverse)]
        assert len(s3.path(spec)) == sentences
    spec.links = [LinkSpec(ends=("primary", "secondary"), kind="tun", forward=same, reverse=other)]
    assert s3.path(spec) == [f"The far link here has {s3._described(same)}; back {s3._described(other)}."]
