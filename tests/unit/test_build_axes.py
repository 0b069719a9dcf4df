"""Versions of servers in an experiment: ranges of commits and build options as axes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from repository_data import commit, releases

from dnsrig.errors import UsageError
from dnsrig.experiment import builds, model, preparation, trial_specs
from dnsrig.rundir import ServerSource
from dnsrig.servers import sources
from dnsrig.servers.builds import repository

ONE = ("zones=3",)
OVERLAID = 'server=["bind@bullseye", "bind@git:v9.18.0..v9.18.2"]'


@pytest.fixture(autouse=True)
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with BIND's name and tags."""
    releases(tmp_path / "mirrors/bind9", "9.18.0", "9.18.1", "9.18.2")
    monkeypatch.setenv(repository.FOLDER_VARIABLE, str(tmp_path / "mirrors"))
    monkeypatch.setenv("DNSRIG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(repository, "_chosen", {})
    return tmp_path / "mirrors/bind9"


def draft(*settings: str) -> list[model.Point]:
    return preparation.draft(preparation.Request("tour", settings=[*ONE, *settings])).points


def servers(points: list[model.Point]) -> list[object]:
    return [point.parameters["server"] for point in points]


def test_a_range_on_an_axis_is_its_versions() -> None:
    found = draft('server=["bind@forky", "bind@git:v9.18.0..v9.18.2"]')
    assert servers(found) == ["bind@forky", *(f"bind@git:v9.18.{number}" for number in range(3))]
    assert len({trial_specs.variant(point).id for point in found}) == 4
    assert servers(draft("server=bind@git:v9.18.0..v9.18.2 steps=2")) == ["bind@git:v9.18.0", "bind@git:v9.18.2"]


def test_a_version_of_a_range_can_be_left_out() -> None:
    found = draft("server=bind@git:v9.18.0..v9.18.2", 'exclude=[{server = "bind@git:v9.18.1"}]')
    assert servers(found) == ["bind@git:v9.18.0", "bind@git:v9.18.2"]
    assert trial_specs.wanted_servers(found).count("bind@git:v9.18.1") == 0


def test_a_hosts_range_is_an_axis_of_its_own() -> None:
    document = model.load(model.find("tour"), "quick", [*ONE, "server=bind@forky"])
    said = document.hosts["primary"].model_copy(update={"server": "bind@git:v9.18.1..v9.18.2 --x"})
    found = builds.expand(document.model_copy(update={"hosts": {**document.hosts, "primary": said}}))
    assert found.matrix["hosts.primary.server"] == ["bind@git:v9.18.1 --x", "bind@git:v9.18.2 --x"]
    assert model.count(found) == 2


def test_a_range_among_named_overlays() -> None:
    churn = preparation.Request("catalog-churn", settings=[OVERLAID, "changes=catalog", "baseline={}"])
    made = preparation.draft(churn)
    document, found = made.document, made.points
    names = ["bind@bullseye", *(f"bind@git:v9.18.{number}" for number in range(3))]
    assert [point.parameters["server"] for point in found] == names == [*document.matrix["server"]]
    assert [point.document.hosts["secondary"].server for point in found] == names
    assert [point.document.dataset.get("catalog_schema", 2) for point in found] == [1, 2, 2, 2]


def test_only_a_server_is_a_new_name_among_overlays() -> None:
    for text in ("server=fast", "server=9"):
        with pytest.raises(UsageError, match="axis server has no"):
            preparation.draft(preparation.Request("catalog-churn", settings=[text]))


def test_a_version_twice_on_an_axis() -> None:
    with pytest.raises(UsageError, match=r"bind@git:v9\.18\.1 appears twice on an axis"):
        draft('server=["bind@git:v9.18.1", "bind@git:v9.18.0..v9.18.2"]')


def test_build_options_are_an_axis() -> None:
    axis = 'matrix."hosts.secondary.build_options"=["", "--without-jemalloc", "+libmaxminddb-dev --with-maxminddb"]'
    found = draft("server=bind@git:v9.18.1", axis)
    assert [point.parameters["build_options"] for point in found][:2] == ["", "--without-jemalloc"]
    wanted = trial_specs.wanted_servers(found)
    assert "bind@git:v9.18.1 --without-jemalloc" in wanted
    assert "bind@git:v9.18.1 +libmaxminddb-dev --with-maxminddb" in wanted
    assert len({trial_specs.variant(point).id for point in found}) == 3
    specs = [trial_specs.provisional("tour", point, [0, 1]) for point in found]
    assert {spec.hosts["secondary"].server.source for spec in specs} == {  # type: ignore[union-attr]
        name.removeprefix("bind@") for name in wanted if name.startswith("bind@git:")
    }


def test_build_options_of_what_is_not_built() -> None:
    with pytest.raises(UsageError, match="bind@forky is not built by dnsrig"):
        draft("server=bind@forky", "hosts.secondary.build_options=--x")


def test_symbols_are_for_what_is_built() -> None:
    found = draft('server=["bind@forky", "bind@git:v9.18.1"]', "debug=symbols")
    assert {name for name in trial_specs.wanted_servers(found) if name.startswith("bind@")} == {
        "bind@forky",
        "bind@git:v9.18.1 debug=symbols",
    }
    plain = draft('server=["bind@forky", "bind@git:v9.18.1"]')
    assert {trial_specs.variant(point).id for point in found}.isdisjoint(
        trial_specs.variant(point).id for point in plain
    )


def test_a_ref_that_does_not_exist_is_told_before_anything_is_made(mirror: Path) -> None:
    with pytest.raises(UsageError, match=r"has no commit 'v9\.19\.0' of BIND 9"):
        draft("server=bind@git:v9.18.0..v9.19.0")
    commit(mirror, {})
    assert len(draft("server=bind@git:v9.18.0..main")) == 6


def test_what_is_missing_is_installed_before_the_first_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    there = ServerSource(kind="bind", source="git:a", version="1")

    def install(name: str, own: object) -> ServerSource:
        made.append(name)
        return there

    played = SimpleNamespace(
        find=lambda name, own: there if name.endswith("a") else None,
        install=install,
        how=lambda name, own: "it is built",
    )
    monkeypatch.setattr(preparation, "sources", played)
    notes: list[str] = []
    found = preparation._all_installed(["bind@git:a", "bind@git:b", "bind@git:c"], notes.append, {})
    assert list(found) == ["bind@git:a", "bind@git:b", "bind@git:c"] and made == ["bind@git:b", "bind@git:c"]
    assert notes == ["installing bind@git:b (2 of 3): it is built", "installing bind@git:c (3 of 3): it is built"]


def test_how_a_server_comes_about() -> None:
    assert "Debian mirror" in sources.how("bind@forky") and "built from its repository" in sources.how("bind@git:v1")
