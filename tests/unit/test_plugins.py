"""Another package adds to dnsrig by its entry points; one that is broken is named and left out."""

from __future__ import annotations

import logging
import tomllib
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
import synthetic
from placement_data import ZONES, placed
from trial_data import clean_trial

from dnsrig import checks, discovery
from dnsrig.checks import all_checks
from dnsrig.datasets import kinds
from dnsrig.experiment.executors import all_executors
from dnsrig.procedures import all_procedures
from dnsrig.report import draw
from dnsrig.report.charts import all_charts
from dnsrig.report.exports import formats
from dnsrig.runs.row_files import RowFile
from dnsrig.runs.rows import DamagedFile
from dnsrig.runs.run import Run
from dnsrig.servers import all_drivers, driver, sources
from dnsrig.traps import all_traps, examine

EXAMPLE = Path(__file__).parents[1] / "plugin_example"
FOUND = (
    all_charts,
    all_checks,
    all_drivers,
    all_procedures,
    all_traps,
    all_executors,
    formats,
    kinds,
    sources.all_sources,
)


@pytest.fixture(autouse=True)
def looked_for_again() -> Iterator[None]:
    yield
    forget()


def forget() -> None:
    for found in FOUND:
        found.cache_clear()


def install(folder: Path, name: str, groups: dict[str, dict[str, str]]) -> None:
    """As an installer leaves it: a package's name, version and entry points, in a folder of Python's path."""
    lines = [
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in points.items())
        for group, points in groups.items()
    ]
    made = folder / f"{name}-1.0.dist-info"
    made.mkdir(parents=True)
    (made / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (made / "entry_points.txt").write_text("\n".join(lines))
    forget()


def names() -> list[list[str]]:
    found = (
        all_drivers(),
        all_traps(),
        formats(),
        all_procedures(),
        all_checks(),
        kinds(),
        sources.all_sources(),
        all_executors(),
    )
    return [*map(list, found), [chart.id for chart in all_charts()]]


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    monkeypatch.syspath_prepend(EXAMPLE)
    monkeypatch.syspath_prepend(tmp_path / "site")
    install(tmp_path / "site", project["name"], project["entry-points"])


@pytest.mark.usefixtures("example")
def test_a_package_adds_a_server(tmp_path: Path) -> None:
    place = placed(tmp_path, "coredns", "primary", settings={"cache": 30})
    driver("coredns").configure(place)
    text = (place.directory / "Corefile").read_text()
    assert all(f"file /mnt/dataset/{zone.file}" in text for zone in ZONES) and "cache 30" in text
    assert "coredns" in sources.installed()
    assert discovery.packages() == {"dnsrig-example": "1.0"}


@pytest.mark.usefixtures("example")
def test_a_package_adds_a_trap_and_a_chart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = {("coredns@system", 10, 1): 3.0}
    made = synthetic.Plan(servers=["coredns@system"], zones=[10], slow=slow, baseline={})
    run = Run.open(synthetic.build(tmp_path / "run", made))
    (finding,) = (finding for finding in examine(run) if finding.trap == "first-repeat")
    assert finding.verdict == "found" and finding.source == "an example"
    (chart,) = (chart for chart in all_charts() if chart.id == "by-order")
    monkeypatch.setattr(draw, "chosen", lambda run: [chart])
    (drawn,) = draw.draw_all(run, [finding])
    assert drawn.name == "by-order-all" and drawn.svg.startswith("<svg")


def test_rows_of_another_packages_instrument_are_read_like_ours(tmp_path: Path) -> None:
    trial = clean_trial(tmp_path / "run")
    file = RowFile("temperature.arrow", {"time_ns": pl.Int64, "celsius": pl.Float64, "fan": pl.UInt32}, later=("fan",))
    assert trial.rows(file).is_empty() and trial.rows(file).schema == pl.Schema(file.schema)
    path = trial.directory / file.name
    pl.DataFrame({"celsius": [40.5], "time_ns": [7]}).write_ipc_stream(path)
    assert trial.rows(file).rows() == [(7, 40.5, 0)]
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DamagedFile):
        trial.rows(file)


A_CHECK = """from dnsrig.checks import Seen, check

@check(title="a thing", applies=lambda spec: True)
def {name}(trial):
    return Seen(1, least=1)
"""


def test_a_package_adds_a_check_to_every_procedure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = clean_trial(tmp_path / "run")
    (tmp_path / "their_checks.py").write_text(A_CHECK.format(name="thing"))
    monkeypatch.syspath_prepend(tmp_path)
    all_checks()  # so that ours are registered before the copy
    monkeypatch.setattr(checks, "_registry", dict(checks._registry))
    install(tmp_path, "theirs", {"dnsrig.checks": {"theirs": "their_checks"}})
    assert checks.for_any_procedure(trial.record.spec)[-1] == "thing"
    (verdict,) = checks.look(trial, ["thing"])
    assert verdict.verdict == "passed"


BROKEN = {
    "dnsrig.traps": {"gone": "nowhere_to_be_found", "bare": "bare", "cpu-contention": "bare"},
    "dnsrig.servers": {"bare": "bare"},
    "dnsrig.charts": {"fails": "fails"},
    "dnsrig.checks": {"bare": "bare", "twice": "twice"},
    "dnsrig.exports": {"bare": "bare"},
    "dnsrig.procedures": {"bare": "bare"},
    "dnsrig.sources": {"bare": "bare"},
    "dnsrig.executors": {"bare": "bare"},
}


def test_what_is_broken_is_named_and_the_rest_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before = names()
    (tmp_path / "bare.py").write_text("")
    (tmp_path / "fails.py").write_text("1 / 0\n")
    (tmp_path / "twice.py").write_text(A_CHECK.format(name="rate"))
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "theirs", BROKEN)
    with caplog.at_level(logging.WARNING):
        after = names()
    assert after == before
    said = sorted(caplog.messages)
    assert len(said) == sum(map(len, BROKEN.values()))
    assert "plug-in fails (dnsrig.charts) of theirs 1.0 left out: ZeroDivisionError: division by zero" in said
    assert (
        "plug-in gone (dnsrig.traps) of theirs 1.0 left out: ModuleNotFoundError: No module named 'nowhere_to_be_found'"
        in said
    )
    assert "plug-in cpu-contention (dnsrig.traps) of theirs 1.0 left out: ValueError: the name is taken" in said
