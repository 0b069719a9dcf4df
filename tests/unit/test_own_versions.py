"""What procedures need of later versions of the user's own zones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dnsrig.errors import UsageError
from dnsrig.experiment import model, trial_specs
from dnsrig.procedures import cycle, procedure, versions
from dnsrig.rundir import DatasetSpec, Scalar, ServerSource, TrialSpec

EXPERIMENT = """\
title = "My zone"
question = "Does it work?"
procedure = "PROCEDURE"
limit_s = 60
dataset = { kind = "files", files = "*.zone", next = ["v1/*", "v2/*"] }
transfer = { ixfr = true, notify = true }
hosts.primary.server = "bind@forky"
"""
Build = Callable[..., TrialSpec]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    (tmp_path / "own.example.zone").write_text("")

    def spec(name: str, *settings: str, zones: int = 1, signed: int = 0, differ: bool = False) -> TrialSpec:
        experiment = tmp_path / "mine.toml"
        experiment.write_text(EXPERIMENT.replace("PROCEDURE", name))
        more = ["hosts.secondary.server=knot@forky"] if name in ("cycle", "update", "propagation") else []
        (point,) = model.points(model.load(experiment, "quick", [*more, *settings]))
        servers = {
            each: ServerSource(kind=each.split("@")[0], source="forky", version="9.20")
            for each in trial_specs.wanted_servers([point])
        }
        made = DatasetSpec(
            kind="files",
            key="x",
            zones=zones,
            records=9,
            serial=7,
            parameters=dict(trial_specs.wanted_dataset(point.document)[1]),
            signed_zones=signed,
            serials_differ=differ,
        )
        return trial_specs.spec("run", "mine", point, servers, [made, made, made], [0, 1])

    return spec


def numbers(name: str, values: dict[str, Scalar], **options: Scalar) -> list[Scalar]:
    kind = procedure(name)
    return [each["version"] for each in versions(kind, values, {**kind.OPTIONS, **options})]


def test_each_generation_is_a_version_of_its_own(build: Build) -> None:
    own = build("cycle", "options.generations=2").dataset.parameters
    assert numbers("cycle", own, generations=2) == [0, 1, 2]
    with pytest.raises(UsageError, match="needs version 3 of the zones"):
        numbers("cycle", own, generations=3)
    made = {**own, "next": ""}
    assert numbers("cycle", made, generations=5) == [0, 1]
    assert cycle.next_version(made, {**cycle.OPTIONS, "changed_percent": 5.0})["changed_share"] == 0.05  # type: ignore[call-overload]
    assert numbers("update", own) == numbers("ixfr-stream", own) == [0, 1]


@pytest.mark.parametrize(
    ("name", "more", "said"),
    [
        ("cycle", {"zones": 2}, "generations are of one zone"),
        ("fan-out", {"differ": True}, "the zones have different serials"),
        ("ixfr-stream", {"differ": True, "zones": 2}, "the zones have different serials"),
    ],
)
def test_what_zones_lack_is_refused(name: str, more: dict[str, int], said: str, build: Build) -> None:
    settings = ["options.generations=2"] if name == "cycle" else []
    assert build(name, *settings).procedure == name
    with pytest.raises(UsageError, match=said):
        build(name, *settings, **more)


def test_ixfr_of_a_given_size_needs_a_later_version(build: Build) -> None:
    with pytest.raises(UsageError, match="does not differ in a given number of records"):
        build("ixfr-stream", "dataset.next=")


def test_signed_zones_take_updates_only_if_the_user_wants_it(build: Build) -> None:
    updates = "transfer.updates=true"
    assert build("propagation", updates).dataset.signed_zones == 0
    with pytest.raises(UsageError, match="1 of its zones are signed"):
        build("propagation", updates, signed=1)
    assert build("propagation", updates, "dataset.unsigned_changes=true", signed=1).dataset.signed_zones == 1
