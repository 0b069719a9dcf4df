"""What dnsrig makes of the runs in docs/runs is what it was: their metrics, findings, checks and charts, the page, and
lines on a terminal.

With DNSRIG_BLESS=1 in the environment, what is found becomes what is expected. If a chart changed, its picture in the
docs is old: `make pictures` makes it anew.
"""

from __future__ import annotations

import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from drawn import GOLDEN, as_it_was, text, words_as_they_were
from golden_files import same

from dnsrig import checks
from dnsrig.experiment.trial import declared_checks
from dnsrig.metrics import all_metrics
from dnsrig.runs.run import Run
from dnsrig.traps import examine

STORED = Path(__file__).parents[2] / "docs/runs"


@pytest.fixture(scope="module", params=sorted(path.name.removesuffix(".tar.xz") for path in STORED.iterdir()))
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Run]]:
    folder = tmp_path_factory.mktemp("stored")
    with tarfile.open(STORED / f"{request.param}.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    (directory,) = folder.iterdir()
    yield request.param, Run.open(directory)


def test_each_metric_of_the_first_trial_of_each_variant(stored: tuple[str, Run]) -> None:
    name, run = stored
    found: dict[str, dict[str, float]] = {}
    for trial in run.trials:
        values = {metric: each.compute(trial) for metric, each in all_metrics().items()}
        known = {metric: value for metric, value in values.items() if value is not None}
        found.setdefault(trial.record.spec.variant.id, known)
    assert same(GOLDEN / f"stored/{name}.metrics.json", text(found))


@pytest.mark.parametrize("stored", ["tour", "long-distance"], indirect=True)
def test_each_finding_that_is_not_clear(stored: tuple[str, Run]) -> None:
    """And how many are clear. The other runs have many trials of one kind, which would take long."""
    name, run = stored
    findings = examine(run)
    clear = Counter(finding.trap for finding in findings if finding.verdict == "clear")
    told = [finding.model_dump(mode="json") for finding in findings if finding.verdict != "clear"]
    assert same(GOLDEN / f"stored/{name}.findings.json", text({"clear": clear, "others": told}))


def test_each_check_of_the_first_trial_of_each_variant(stored: tuple[str, Run]) -> None:
    name, run = stored
    found: dict[str, list[Any]] = {}
    for trial in run.trials:
        spec = trial.record.spec
        if spec.variant.id not in found:
            looked = checks.look(trial, declared_checks(spec))
            found[spec.variant.id] = [check.model_dump(mode="json", exclude_defaults=True) for check in looked]
    assert same(GOLDEN / f"stored/{name}.checks.json", text(found))


def test_each_chart(stored: tuple[str, Run]) -> None:
    name, run = stored
    assert as_it_was(f"stored/{name}.drawings", run)


def test_what_a_page_and_a_terminal_show(stored: tuple[str, Run]) -> None:
    name, run = stored
    assert words_as_they_were(f"stored/{name}.shown", run) and not list(run.failures)
