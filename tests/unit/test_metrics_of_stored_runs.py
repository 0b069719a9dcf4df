"""Every metric that the runs in docs/runs have, of the first trial of each variant, is what it was."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
from golden_files import same

from dnsrig.metrics import all_metrics
from dnsrig.runs.run import Run

RUNS = sorted((Path(__file__).parents[2] / "docs/runs").glob("*.tar.xz"))
GOLDEN = Path(__file__).parent / "golden/metrics"


@pytest.mark.parametrize("stored", RUNS, ids=lambda path: path.name.removesuffix(".tar.xz"))
def test_each_metric_of_a_stored_run_is_what_it_was(stored: Path, tmp_path: Path) -> None:
    """With DNSRIG_BLESS=1 in the environment, what is computed becomes what is expected."""
    with tarfile.open(stored) as packed:
        packed.extractall(tmp_path, filter="data")
    (directory,) = tmp_path.iterdir()
    run, found = Run.open(directory), {}
    for trial in run.trials:
        values = {name: metric.compute(trial) for name, metric in sorted(all_metrics().items())}
        # The last digits depend on the order of sums.
        known = {name: float(f"{value:.12g}") for name, value in values.items() if value is not None}
        found.setdefault(trial.record.spec.variant.id, known)
    assert same(
        GOLDEN / f"{stored.name.removesuffix('.tar.xz')}.json", json.dumps(found, indent=1, sort_keys=True) + "\n"
    )
