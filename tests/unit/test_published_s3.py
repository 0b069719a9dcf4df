"""S3's figures and what a run has of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from synthetic import Plan, build

from dnsrig.analysis.published import Measured, figures, held_against
from dnsrig.analysis.published.s3 import CARRIERS, CELLS
from dnsrig.analysis.read import Run
from dnsrig.analysis.statistics import Spread

OF_CARRIER = {carrier: name for name, carrier in CARRIERS.items()}


def opened(
    directory: Path, experiment: str, axes: dict[str, list[Any]], change: Callable[[dict[str, Any]], None]
) -> Run:
    """A synthetic run of one server under the name of ``experiment``, each spec and trial changed alike."""
    build(directory, Plan(servers=["knot@system"], zones=[100], repeats=2, samples=False, extra_axes=axes, baseline={}))
    path = directory / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["experiment"] = experiment
    for spec in manifest["specs"].values():
        spec["procedure"] = "carriers"
        change(spec)
    path.write_text(json.dumps(manifest))
    return Run.open(directory)


def cells(directory: Path, **sizes: int) -> Run:
    """All twelve cells, and one of pipelined transfers, which the source has not."""

    def change(spec: dict[str, Any]) -> None:
        chosen = spec["variant"]["parameters"]
        carrier, _, tls = chosen["carrier"].partition("+")
        spec["options"] = {"carrier": carrier}
        spec["transfer"]["transport"] = "xot" if tls else "tcp"
        spec["dataset"] |= {"kind": chosen["case"], **sizes}

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
    assert all("No far link was emulated here." in m.differs for m in other), "these links are plain"


def _of(found: list[Measured], experiment: str) -> list[Measured]:
    return [measured for measured in found if measured.figure.experiment == experiment]


def test_twice_the_workers_are_a_ratio_of_rates(tmp_path: Path) -> None:
    run = opened(tmp_path, "workers", {"workers": ["1", "2", "50", "100", "400"]}, lambda spec: None)
    for path in run.directory.glob("trials/*/*/trial.json"):
        record = json.loads(path.read_text())
        workers = int(record["spec"]["variant"]["parameters"]["workers"])
        record["metrics"]["zones_per_s"] = 3.0 * min(workers, 80)
        path.write_text(json.dumps(record))
    found = held_against(Run.open(run.directory))
    assert [m.subject for m in found] == [
        "1 to 2 workers, server knot@system, zones 100",
        "50 to 100 workers, server knot@system, zones 100",
    ]
    assert all(isinstance(m.values, Spread) for m in found)
    assert [m.middle[1] for m in found] == [pytest.approx(2), pytest.approx(1.6)]
