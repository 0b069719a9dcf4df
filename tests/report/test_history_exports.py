"""Exports of a history: byte for byte as they were, and as the programs that they are for read them.

If a change of them is meant, make the golden files anew with ``DNSRIG_BLESS=1``.
"""

from __future__ import annotations

import csv
import json
import os
from dataclasses import replace
from pathlib import Path

import altair as alt
import pytest
from drawn import digest, pictures_as_they_were, text
from golden_files import same
from history_data import measured
from html_facts import lines
from test_terminal import printed

from dnsrig.comparison.history import History, history
from dnsrig.errors import UsageError
from dnsrig.report.history import chart, data, page, table
from dnsrig.report.history_exports import by_version, export, formats

GOLDEN = Path(__file__).parent / "golden/history"
FACTORS = {"9.18.9": 1.0, "9.18.10": 1.0, "9.18.11": 3.0, "9.18.12": 3.0}
ZONES = (50, 200)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> History:
    """Two series under two metrics; of one version only a bound is known, and one failed."""
    outcomes = {("9.18.11", repeat): "timeout" for repeat in (1, 2, 3)} | {("9.18.9", 1): "server-failed"}
    folder = tmp_path_factory.mktemp("history")
    run = measured(folder, FACTORS, zones=ZONES, outcomes=outcomes)  # type: ignore[arg-type]
    return history([run], metrics=["transfer_time_s", "zones_per_s"])


@pytest.mark.parametrize("format", sorted(formats()))
def test_an_export_is_as_it_was(made: History, format: str, tmp_path: Path) -> None:
    written = export(made, format, tmp_path)
    assert {path.name for path in written} == {path.name for path in tmp_path.iterdir()}
    golden = GOLDEN / format
    if "DNSRIG_BLESS" in os.environ:
        golden.mkdir(parents=True, exist_ok=True)
        for path in written:
            (golden / path.name).write_bytes(path.read_bytes())
    assert {p.name: p.read_text() for p in written} == {p.name: p.read_text() for p in golden.iterdir()}


def test_an_unknown_format_names_those_there_are(made: History, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        export(made, "hunter", tmp_path)
    assert "bencher, github-action-benchmark, openmetrics, otava" in raised.value.hint


def test_each_version_has_a_file_of_its_own_in_their_order(made: History) -> None:
    names = [name for name, _ in by_version(made)]
    assert names == ["001-bind-9.18.9", "002-bind-9.18.10", "003-bind-9.18.11", "004-bind-9.18.12"]


def test_bencher_has_a_median_between_its_ends(made: History, tmp_path: Path) -> None:
    export(made, "bencher", tmp_path)
    found = json.loads((tmp_path / "002-bind-9.18.10.json").read_text())
    assert list(found) == ["synthetic bind zones=50", "synthetic bind zones=200"]
    for measures in found.values():
        assert set(measures) == {"transfer_time_s", "zones_per_s"}
        for name, metric in measures.items():
            assert metric["lower_value"] <= metric["value"] <= metric["upper_value"], name
            assert len(name) <= 64, "the longest name of a measure that Bencher takes"


def test_a_median_that_is_only_a_bound_is_left_out(made: History, tmp_path: Path) -> None:
    """Of 9.18.11, three of five trials took longer than the limit."""
    export(made, "bencher", tmp_path)
    found = json.loads((tmp_path / "003-bind-9.18.11.json").read_text())
    assert "transfer_time_s" not in found["synthetic bind zones=50"]


def test_github_action_benchmark_has_a_file_for_each_direction(made: History, tmp_path: Path) -> None:
    export(made, "github-action-benchmark", tmp_path)
    lower = json.loads((tmp_path / "002-bind-9.18.10.smaller-is-better.json").read_text())
    higher = json.loads((tmp_path / "002-bind-9.18.10.bigger-is-better.json").read_text())
    assert {entry["name"].rpartition(": ")[2] for entry in lower} == {"transfer_time_s"}
    assert {entry["name"].rpartition(": ")[2] for entry in higher} == {"zones_per_s"}
    for entry in [*lower, *higher]:
        assert isinstance(entry["value"], float)
        assert entry["range"].startswith("± ")


def test_otava_has_a_row_a_trial_in_the_order_of_versions(made: History, tmp_path: Path) -> None:
    written = export(made, "otava", tmp_path)
    tests = json.loads(written[-1].read_text())["tests"]
    assert [test["file"] for test in tests.values()] == [path.name for path in written[:-1]]
    for test in tests.values():
        rows = list(csv.DictReader((tmp_path / test["file"]).open()))
        versions = [row["version"] for row in rows]
        assert versions == sorted(versions, key=[*FACTORS].index)
        for row in rows:
            assert set(row) == {test["time_column"], *test["attributes"], *test["metrics"]}
            assert all(float(row[metric["column"]]) > 0 for metric in test["metrics"].values())


def test_openmetrics_is_read_by_the_parser_of_prometheus(made: History, tmp_path: Path) -> None:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser", reason="`make setup` installs it")
    (path,) = export(made, "openmetrics", tmp_path)
    families = {family.name: family for family in parser.text_string_to_metric_families(path.read_text())}
    assert list(families) == [
        "dnsrig_transfer_time_s", "dnsrig_zones_per_s", "dnsrig_trials", "dnsrig_change_percent",
    ]  # fmt: skip
    medians = {
        sample.labels["version"]: sample.value
        for sample in families["dnsrig_transfer_time_s"].samples
        if sample.labels["statistic"] == "median" and sample.labels["parameters"] == "zones=50"
    }
    (series,) = [s for s in made.series if s.label == "bind zones=50" and s.metric.name == "transfer_time_s"]
    known = {point.label: point.samples.spread.median for point in series.points if point.samples.spread}
    assert medians == {label: known[label] for label in FACTORS if label != "9.18.11"}
    changed = {sample.labels["version"] for sample in families["dnsrig_change_percent"].samples}
    assert changed == {change.first.label for s in made.series for change in s.changes}


def test_text_from_outside_stays_within_its_quotes(made: History, tmp_path: Path) -> None:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser", reason="`make setup` installs it")
    odd = replace(made.series[0], parameters={"zones": 'a"b\\c\nd'})
    (path,) = export(replace(made, series=[odd]), "openmetrics", tmp_path)
    samples = [s for f in parser.text_string_to_metric_families(path.read_text()) for s in f.samples]
    assert {sample.labels["parameters"] for sample in samples} == {'zones=a"b\\c\nd'}


def test_a_terminal_shows_it_as_it_was(made: History) -> None:
    shown = "\n".join(printed(table.as_text(made), width) for width in (80, 140))
    assert same(GOLDEN / "terminal.txt", shown)


def test_the_charts_are_as_they_were(made: History, tmp_path: Path) -> None:
    charts: dict[str, alt.TopLevelMixin] = {metric.name: chart.draw(series) for metric, series in made.metrics}
    several = history([measured(tmp_path, {f"9.18.{n}": 2.0 ** (n // 3) for n in range(9)}, drift=1.02)])
    charts["changes"] = chart.draw(several.series)
    assert len(several.series[0].changes) > 1
    assert pictures_as_they_were("drawn/history", charts)


def test_the_page_and_the_json_are_as_they_were(made: History) -> None:
    folder = made.runs[0].directory.parents[2]
    pictures = {metric.name: '<svg xmlns="http://www.w3.org/2000/svg"/>' for metric, _ in made.metrics}
    shown = lines(page.render(made, pictures, folder))
    assert same(GOLDEN / "page.txt", f"{shown}{digest(text(data.as_json(made, folder)))} digest of the JSON\n")
