"""A history: trials of several runs, version by version; which runs may stand in it; what is said of a change."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from history_data import measured
from repository_data import git, releases
from test_compare import edit

from dnsrig.cli._order import check, order
from dnsrig.comparison import versions
from dnsrig.comparison.history import History, history
from dnsrig.comparison.summary import describe
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.metrics import all_metrics
from dnsrig.report.history import write_history
from dnsrig.report.history.table import sentence
from dnsrig.rundir import ServerSource
from dnsrig.runs.run import Run
from dnsrig.servers.builds import repository
from dnsrig.servers.builds.repository import Repository

STEADY_THEN_SLOW = {"9.18.9": 1.0, "9.18.10": 1.0, "9.18.11": 3.0, "9.18.12": 3.0}


def of(*runs: Run, **arguments: object) -> History:
    return history(list(runs), **arguments)  # type: ignore[arg-type]


def changed(run: Run, change: Callable[[dict[str, Any]], None]) -> Run:
    edit(run.directory, change)
    return Run.open(run.directory)


def labels(found: History) -> list[str]:
    (series,) = found.series
    return [point.label for point in series.points]


def test_versions_stand_in_the_order_of_their_numbers_whatever_run_they_are_from(tmp_path: Path) -> None:
    newer = measured(tmp_path, {"9.18.10": 1.0, "9.18.11": 3.0}, name="a")
    older = measured(tmp_path, {"9.18.12": 3.0, "9.18.9": 1.0}, name="b")
    found = of(newer, older)
    assert labels(found) == list(STEADY_THEN_SLOW)
    (series,) = found.series
    (change,) = series.changes
    assert (change.last.label, change.first.label, change.kind) == ("9.18.10", "9.18.11", "worse")
    assert [point.label for point in change.before] == ["9.18.9", "9.18.10"]
    assert change.comparison.percent == pytest.approx(300, rel=0.15)
    assert not change.apart


def test_a_change_between_two_runs_says_so(tmp_path: Path) -> None:
    runs = [measured(tmp_path, {"9.18.9": 1.0}, name="a"), measured(tmp_path, {"9.18.10": 3.0}, name="b")]
    (series,) = of(*runs).series
    assert series.changes[0].apart
    assert "measured in different runs" in sentence(series.changes[0])


def test_trials_of_one_version_in_several_runs_are_one_version(tmp_path: Path) -> None:
    runs = [measured(tmp_path, {"9.18.9": 1.0, "9.18.10": 1.0}, repeats=3, name=name) for name in "ab"]
    (series,) = of(*runs).series
    assert [len(point.values) for point in series.points] == [6, 6]
    assert {value.run.manifest.run for value in series.points[0].values} == {"synthetic/a", "synthetic/b"}
    assert series.changes == []


def test_each_other_parameter_has_a_series_of_its_own_and_its_share_of_alpha(tmp_path: Path) -> None:
    found = of(measured(tmp_path, STEADY_THEN_SLOW, zones=(50, 200)))
    assert [series.parameters for series in found.series] == [{"zones": 50}, {"zones": 200}]
    assert found.alpha == 0.025
    assert [series.changes[0].first.label for series in found.series] == ["9.18.11", "9.18.11"]


def test_a_version_whose_server_failed_is_shown_and_not_searched(tmp_path: Path) -> None:
    (series,) = of(measured(tmp_path, STEADY_THEN_SLOW, outcomes={("9.18.10", 2): "server-failed"})).series
    failed = series.points[1]
    assert (failed.label, failed.counts, len(failed.values), len(failed.trials)) == ("9.18.10", False, 4, 5)
    assert [point.label for point in series.changes[0].before] == ["9.18.9"]


def test_a_trial_at_its_limit_counts_as_the_slowest(tmp_path: Path) -> None:
    outcomes = {(version, 1): "timeout" for version in ("9.18.11", "9.18.12")}
    (series,) = of(measured(tmp_path, STEADY_THEN_SLOW, outcomes=outcomes)).series  # type: ignore[arg-type]
    slow = series.points[2]
    assert [sample.at_least for sample in slow.samples] == [True, False, False, False, False]
    assert slow.samples.interval is None
    assert slow.counts
    assert series.changes[0].first is slow


@pytest.mark.parametrize(("lower_share", "kind"), [(0.9, "worse"), (0.2, "different")])
def test_a_change_counts_the_lateness_of_the_instrument(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lower_share: float, kind: str
) -> None:
    """Three times as slow at the upper ends counts only if it is slower at the lower ends, too."""
    run, metric = measured(tmp_path, STEADY_THEN_SLOW), describe("transfer_time_s")
    (exact,) = of(run).series[0].changes
    late = replace(metric, lower=lambda trial: lower_share * (trial.value(metric.name) or 0.0))
    monkeypatch.setitem(all_metrics(), metric.name, late)
    (change,) = of(run).series[0].changes
    assert change.kind == kind
    assert change.comparison.percent == exact.comparison.percent
    interval, of_exact = change.comparison.interval, exact.comparison.interval
    assert interval is not None and of_exact is not None and interval.low < of_exact.low


def test_a_version_of_which_the_slow_trials_have_no_figure_is_not_searched(tmp_path: Path) -> None:
    """Of a rate of zones a trial at its limit says nothing here: the two that are done are the fastest."""
    outcomes = {("9.18.11", repeat): "timeout" for repeat in (1, 2, 3)}
    run = measured(tmp_path, STEADY_THEN_SLOW, outcomes=outcomes)  # type: ignore[arg-type]
    (series,) = of(run, metrics=["zones_per_s"]).series
    assert [point.counts for point in series.points] == [True, True, False, True]
    assert series.changes[-1].first.label == "9.18.12"


def test_a_run_on_another_machine_is_refused_by_name(tmp_path: Path) -> None:
    here, there = measured(tmp_path, {"9.18.9": 1.0}), measured(tmp_path, {"9.18.10": 1.0}, name="b")
    other = changed(there, lambda manifest: manifest["conditions"]["kernel"].update(release="6.2.0"))
    with pytest.raises(DnsrigError, match=r"synthetic/b does not belong.*machine\.kernel\.release: 6\.1.*6\.2\.0"):
        of(here, other)
    assert labels(of(here, other, may_differ=["machine.kernel"])) == ["9.18.9", "9.18.10"]


def test_trials_that_were_asked_for_something_else_are_refused(tmp_path: Path) -> None:
    one, other = measured(tmp_path, {"9.18.9": 1.0}), measured(tmp_path, {"9.18.10": 1.0}, name="b")
    unlike = changed(other, lambda manifest: manifest["specs"]["v00"].update(limit_s=61.0))
    with pytest.raises(DnsrigError, match="limit_s: 60 in the base, 61 in the new run"):
        of(one, unlike)


def test_variants_of_one_run_that_differ_beside_the_server_are_refused(tmp_path: Path) -> None:
    run = measured(tmp_path, {"9.18.9": 1.0, "9.18.10": 1.0})
    unlike = changed(run, lambda manifest: manifest["specs"]["v01"]["dataset"]["parameters"].update(catalog_schema=1))
    with pytest.raises(DnsrigError, match="catalog_schema"):
        of(unlike)


def test_there_is_no_history_of_nothing() -> None:
    with pytest.raises(DnsrigError, match="no run"):
        of()


def source(version: str, at: str = "", key: str = "", commit: str = "") -> versions.Version:
    return versions.of(ServerSource(kind="bind", source=at or version, version=version, key=key, commit=commit))


@pytest.mark.parametrize(
    "ordered",
    [
        ["9.9.1", "9.18.9", "9.18.10", "9.20.0"],
        ["9.18.0rc1", "9.18.0", "9.18.0.1", "9.18.1"],
        ["3.5.dev0", "3.5.0", "3.5.1"],
        ["5.0.0-alpha1", "5.0.0-beta1", "5.0.0-rc2", "5.0.0"],
        ["9.18.11-dev", "9.18.11"],
        ["1.0~rc1", "1.0", "1.0a", "1.0+deb1"],
    ],
)
def test_numbers_are_sorted_as_debian_does(ordered: list[str]) -> None:
    found = versions.by_number([source(version) for version in reversed(ordered)])
    assert [version.server.version for version in found] == ordered


def test_two_builds_of_one_number_need_another_order() -> None:
    with pytest.raises(UsageError, match=r"call themselves 9\.18\.1"):
        versions.by_number([source("9.18.1", key="a"), source("9.18.1", key="b")])


def test_labels_say_what_tells_versions_apart() -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    known = [source("9.18.1", "forky", "k1"), source("9.18.1", "git:main", "k2", commit), source("9.20.1")]
    assert versions.labels(known) == ["9.18.1 (forky)", "9.18.1 (0123456789)", "9.20.1"]
    twice = [source("9.18.1", "forky", "k1"), source("9.18.1", "forky", "k2")]
    assert versions.labels(twice) == ["9.18.1 (forky, k1)", "9.18.1 (forky, k2)"]


def test_json_links_changes_to_trials_and_commits(tmp_path: Path) -> None:
    written = write_history(of(measured(tmp_path, STEADY_THEN_SLOW)), tmp_path)
    assert [path.name for path in written] == ["history.json", "history.html", "history-transfer_time_s.svg"]
    (metric,) = json.loads(written[0].read_text())["metrics"]
    (change,) = metric["series"][0]["change_points"]
    assert (change["from"], change["to"], change["change"]) == ("9.18.10", "9.18.11", "worse")
    assert len(change["before"]["trials"]) == len(change["after"]["trials"]) == 10
    for path in [*change["before"]["trials"], *change["after"]["trials"]]:
        assert (tmp_path / path / "trial.json").is_file()
    page = written[1].read_text()
    assert "from 9.18.10 to 9.18.11: worse" in page
    assert all(f'href="{path}/"' in page for path in change["after"]["trials"])


def test_commits_stand_after_what_they_are_built_upon_whatever_their_dates(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    made = {}
    for name, date in {"first": "2025-01-01", "second": "2025-01-02", "old": "2001-01-01"}.items():
        git(tmp_path, "commit", "-q", "--allow-empty", "-m", name, when=f"{date}T00:00:00Z")
        made[name] = git(tmp_path, "rev-parse", "HEAD")
    builds = {name: source("9.19.1-dev", f"git:{name}", name, commit) for name, commit in made.items()}
    shuffled = [builds["old"], builds["first"], builds["second"]]
    places = Repository(tmp_path).places(list(made.values()))
    assert versions.by_commit(shuffled, places) == [builds["first"], builds["second"], builds["old"]]
    with pytest.raises(UsageError, match="not built from the repository"):
        versions.by_commit([source("9.18.1", "forky")], places)
    with pytest.raises(DnsrigError, match="git rev-list: bad object"):
        Repository(tmp_path).places(["0" * 40])
    assert Repository(tmp_path).places([]) == {}


class TestOrderOfVersions:
    """By their commits, if all are built from one repository that is there; otherwise by their numbers."""

    @pytest.fixture(autouse=True)
    def hashes(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """The commits of two releases of BIND."""
        monkeypatch.setenv(repository.FOLDER_VARIABLE, str(tmp_path / "mirrors"))
        monkeypatch.setenv("DNSRIG_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(repository, "_chosen", {})
        return releases(tmp_path / "mirrors/bind9", "9.18.0", "9.18.1")

    @pytest.mark.parametrize(("name", "numbers"), [("auto", ["9.20.0", "9.18.0"]), ("number", ["9.18.0", "9.20.0"])])
    def test_commits_go_before_numbers_unless_numbers_are_asked_for(
        self, hashes: list[str], name: str, numbers: list[str]
    ) -> None:
        built = [source("9.18.0", "git:b", "b", hashes[1]), source("9.20.0", "git:a", "a", hashes[0])]
        assert [version.server.version for version in order(name)(built)] == numbers

    def test_a_version_without_a_commit_has_a_number(self, hashes: list[str]) -> None:
        built = [source("9.20.0", "git:a", "a", hashes[0]), source("9.18.0", "git:b", "b", hashes[1])]
        package = source("9.19.0", "forky", "c")
        found = order("auto")([*built, package])
        assert [version.server.version for version in found] == ["9.18.0", "9.19.0", "9.20.0"]

    def test_a_server_that_dnsrig_does_not_build_has_numbers(self, hashes: list[str]) -> None:
        echo = [
            versions.of(ServerSource(kind="echo", source="engine", version=number, key=number, commit=hashes[0]))
            for number in ("2.0", "1.0")
        ]
        assert order("auto")(echo) == echo[::-1]

    def test_without_the_repository_numbers_decide(self, tmp_path: Path, hashes: list[str]) -> None:
        (tmp_path / "mirrors").rename(tmp_path / "gone")
        built = [source("9.20.0", "git:a", "a", hashes[0]), source("9.18.0", "git:b", "b", hashes[1])]
        assert order("auto")(built) == built[::-1]

    def test_nothing_is_sorted_too(self) -> None:
        assert order("auto")([]) == []

    def test_another_order_is_refused(self) -> None:
        with pytest.raises(UsageError, match="there is no order 'age'"):
            check("age")
