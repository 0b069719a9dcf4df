"""The metrics and charts of the runs in docs/runs are what they were.

With DNSRIG_BLESS=1 in the environment, what is found becomes what is expected. If a chart changed, its picture in the
docs is old: `make pictures` makes it anew.
"""

from __future__ import annotations

import hashlib
import json
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from golden_files import same

from dnsrig.metrics import all_metrics
from dnsrig.report.draw import chosen
from dnsrig.runs.run import Run

STORED = Path(__file__).parents[2] / "docs/runs"
GOLDEN = Path(__file__).parent / "golden/stored"
NUMBERED = re.compile(r"\b(view|param|concat|layer)_\d+")
"""Names that altair counts through all charts of a process."""


@pytest.fixture(scope="module", params=sorted(path.name.removesuffix(".tar.xz") for path in STORED.iterdir()))
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Run]]:
    folder = tmp_path_factory.mktemp("stored")
    with tarfile.open(STORED / f"{request.param}.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    (directory,) = folder.iterdir()
    yield request.param, Run.open(directory)


def rounded(value: Any) -> Any:
    """``value`` without the last digits of its numbers, which depend on the order of sums."""
    if isinstance(value, dict):
        return {NUMBERED.sub(r"\1", str(key)): rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return list(map(rounded, value))
    if isinstance(value, str):
        return NUMBERED.sub(r"\1", value)
    return float(f"{value:.9g}") if isinstance(value, float) else value


def text(value: Any) -> str:
    return json.dumps(rounded(value), indent=1, sort_keys=True) + "\n"


def test_each_metric_of_the_first_trial_of_each_variant(stored: tuple[str, Run]) -> None:
    name, run = stored
    found: dict[str, dict[str, float]] = {}
    for trial in run.trials:
        values = {metric: each.compute(trial) for metric, each in all_metrics().items()}
        known = {metric: value for metric, value in values.items() if value is not None}
        found.setdefault(trial.record.spec.variant.id, known)
    assert same(GOLDEN / f"{name}.metrics.json", text(found))


def test_a_digest_of_each_drawing(stored: tuple[str, Run]) -> None:
    name, run = stored
    found = {}
    for chart in chosen(run):
        for drawing in chart.draw(run, []):
            spec = text(drawing.chart.to_dict())
            found[f"{chart.id}/{drawing.name}"] = hashlib.sha256(spec.encode()).hexdigest()[:16]
    assert same(GOLDEN / f"{name}.drawings.json", text(found))
