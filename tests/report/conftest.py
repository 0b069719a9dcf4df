from __future__ import annotations

from pathlib import Path

import pytest
from made_up import made_up_findings
from synthetic import Plan, build

from dnsrig import report, traps
from dnsrig.analysis.read import Run

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


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run.open(build(tmp_path_factory.mktemp("runs") / "run", PLAN))


@pytest.fixture(scope="session")
def page(run: Run) -> Path:
    """report.html of the synthetic run, with made-up findings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(traps, "examine", made_up_findings)
        return report.write_report(run.directory).path
