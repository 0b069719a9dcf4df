from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from made_up import made_up_findings, once, reported, validated
from synthetic import Plan, build

from dnsrig.report import svg
from dnsrig.runs.run import Run

PLAN = Plan(
    servers=["bind@system", "knot@system", "nsd@system"],
    zones=[50, 200],
    repeats=5,
    limit_s=10.0,
    outcomes={
        ("bind@system", 200, 2): "timeout",
        ("knot@system", 200, 1): "invalid",
        ("nsd@system", 200, 3): "server-failed",
    },
    slow={("knot@system", 50, 3): 2.0},
)

SMALL = Plan(servers=["knot@system"], zones=[50, 200], repeats=2, baseline={})


@pytest.fixture(autouse=True)
def charts_are_valid(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """In tests of charts; the shared reports have the other charts (`reported`)."""
    if any(word in request.path.stem for word in ("chart", "flame")):
        monkeypatch.setattr(svg, "render", validated)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the synthetic run and its report."""
    return once(tmp_path_factory, "reported", partial(reported, PLAN, made_up_findings))


@pytest.fixture(scope="session")
def run(made: Path) -> Run:
    return Run.open(made)


@pytest.fixture(scope="session")
def page(made: Path) -> Path:
    """report.html of the synthetic run, with made-up findings."""
    return made / "report.html"


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of one server, whose drawings take little time."""
    return Run.open(build(tmp_path_factory.mktemp("small") / "run", SMALL))
