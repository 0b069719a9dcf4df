"""Versions as an axis of an experiment, and which trials of them a history lacks."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import output
from history_data import measured

from dnsrig.cli import _history
from dnsrig.cli.history import split
from dnsrig.comparison import versions
from dnsrig.comparison.versions import Version
from dnsrig.errors import UsageError
from dnsrig.experiment import model, preparation
from dnsrig.experiment.versions import cases, lacking, of_versions, runs_in, unlike
from dnsrig.rundir import ServerSource
from dnsrig.runs.run import Run

VERSIONS = ["bind@bookworm", "bind@forky"]


def loaded(experiment: str, *settings: str) -> model.Document:
    return model.load(model.find(experiment), "quick", list(settings))


@pytest.mark.parametrize("experiment", ["startup", "catalog-churn", "zone-load"])
def test_versions_take_the_place_of_the_servers_under_test(experiment: str) -> None:
    before, document = loaded(experiment), of_versions(loaded(experiment), VERSIONS)
    assert model.axes(document) == {**model.axes(before), "server": VERSIONS}
    points = model.points(document)
    for point in points:
        under_test = {host.server for host in point.document.hosts.values()} & set(VERSIONS)
        assert under_test == {point.parameters["server"]}
    assert all("server" not in dict(case) for case in cases(points, VERSIONS))


@pytest.mark.parametrize("setting", ["options.primaries='x'", "options.primaries=20000", "options.prim=1"])
def test_wrong_options_are_refused_as_in_a_run(setting: str) -> None:
    with pytest.raises(UsageError, match="option"):
        of_versions(loaded("tour", setting), VERSIONS)


def test_what_an_axis_says_of_one_server_only_is_said_of_no_version() -> None:
    """In catalog-churn, bullseye has its catalog in the older schema, which would make its trials others."""
    document = of_versions(loaded("catalog-churn"), ["bind@bullseye", "bind@forky"])
    assert {point.document.dataset.get("catalog_schema") for point in model.points(document)} == {None}


def test_every_builtin_experiment_can_have_versions() -> None:
    for name in model.builtin():
        document = of_versions(loaded(name), ["bind@bookworm"])
        assert "bind@bookworm" in [value for values in model.axes(document).values() for value in values]


def test_a_baseline_that_is_a_server_is_dropped() -> None:
    document = loaded("startup", 'baseline.server="bind@forky"')
    assert of_versions(document, ["nsd@forky"]).baseline == {}
    assert model.points(of_versions(document, ["nsd@forky"]))


def test_a_version_named_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="twice"):
        of_versions(loaded("startup"), ["bind@forky", "bind@forky"])


def test_a_request_with_versions_is_drafted_with_them() -> None:
    points = preparation.draft(preparation.Request("startup", versions=["nsd@bookworm"])).points
    assert {point.parameters["server"] for point in points} == {"nsd@bookworm"}


def version(number: str) -> Version:
    return versions.of(ServerSource(kind="bind", source=number, version=number))


def test_a_new_version_lacks_all_and_an_interrupted_one_the_rest(tmp_path: Path) -> None:
    runs = [measured(tmp_path, {"9.18.9": 1.0, "9.18.10": 1.0}, repeats=3)]
    trial = runs[0].trials[0].directory
    (trial / "trial.json").unlink()
    gone = runs[0].trials[0].record.spec.variant.parameters["server"]
    again = [Run.open(runs[0].directory)]
    wanted = {f"bind@{number}": version(number) for number in ("9.18.9", "9.18.10", "9.18.11")}
    case = (("zones", "50"),)
    assert lacking(again, {**wanted, "bind@git:v9": None}, [case], 3) == {
        1: [str(gone)],
        3: ["bind@9.18.11", "bind@git:v9"],
    }
    assert lacking(again, {"bind@9.18.9": wanted["bind@9.18.9"]}, [(("zones", "200"),)], 3) == {3: ["bind@9.18.9"]}
    more = lacking(again, {name: wanted[name] for name in ("bind@9.18.9", "bind@9.18.10")}, [case], 5)
    assert sorted(more) == [2, 3]


def test_runs_are_found_the_oldest_first(tmp_path: Path) -> None:
    for name in "ba":
        measured(tmp_path, {"9.18.9": 1.0}, repeats=1, name=name)
    assert [run.manifest.run for run in runs_in(tmp_path / "runs")] == ["synthetic/a", "synthetic/b"]
    assert runs_in(tmp_path / "none") == []


def test_other_values_of_the_experiment_are_told(tmp_path: Path) -> None:
    run = measured(tmp_path, {"9.18.9": 1.0}, repeats=1)
    document = loaded("startup")
    run.manifest.document.update(document.model_dump())
    assert unlike(document, run) == []
    assert unlike(of_versions(loaded("startup", "limit_s=7"), VERSIONS), run) == ["limit_s"]


@pytest.mark.parametrize(
    ("texts", "named"),
    [
        (["bind@bookworm,bind@forky"], VERSIONS),
        (["bind@bookworm", "bind@forky"], VERSIONS),
        (["bind@git:v9.18.1 --with=a,b, knot@forky"], ["bind@git:v9.18.1 --with=a,b", "knot@forky"]),
        ([], []),
    ],
)
def test_versions_are_split_at_commas_between_servers(texts: list[str], named: list[str]) -> None:
    assert split(texts) == named


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["startup", "--versions", "bind@forky", "--metric", "redy"], "there is no metric 'redy'"),
        (["startup"], "no versions are given"),
        (["--versions", "bind@forky"], "no experiment is given"),
        (["--dry-run"], "nothing is measured"),
    ],
)
def test_bad_input_is_told_before_anything_is_measured(
    words: list[str],
    complaint: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def reached(*_: object) -> int:
        raise AssertionError("it was measured")

    monkeypatch.setattr(_history, "measure_lacking", reached)
    code, text, said = output(monkeypatch, capsys, "history", *words, "--out", tmp_path)
    assert (code, text) == (2, "")
    assert complaint in said
