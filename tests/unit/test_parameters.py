"""Numbers of an experiment: each has a range, and is refused beyond it before anything is made."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from golden_files import same

from dnsrig import datasets, parameters, paths, streams
from dnsrig.errors import UsageError
from dnsrig.experiment import model, preparation
from dnsrig.procedures import all_procedures

GOLDEN = Path(__file__).parent / "golden/parameters.json"
TABLES: dict[str, tuple[Mapping[str, Any], Mapping[str, parameters.Range]]] = {
    **{f"dataset {name}": (kind.DEFAULTS, getattr(kind, "RANGES", {})) for name, kind in datasets.kinds().items()},
    **{f"stream {name}": (kind.DEFAULTS, getattr(kind, "RANGES", {})) for name, kind in streams.kinds().items()},
    **{f"procedure {name}": (kind.OPTIONS, getattr(kind, "RANGES", {})) for name, kind in all_procedures().items()},
}


@pytest.mark.parametrize("table", TABLES)
def test_each_number_has_a_range_with_its_default(table: str) -> None:
    defaults, own = TABLES[table]
    numbers = {name: value for name, value in defaults.items() if not isinstance(value, bool | str)}
    assert {name for name in numbers if parameters.range_of(name, own) == parameters.ANY} == set()
    for name, value in numbers.items():
        parameters.check("options", name, value, own)
    assert set(own) <= set(numbers) | {"timeout_s"}


@pytest.mark.parametrize(
    ("procedure", "option", "program", "flag"),
    [
        ("answers", "outstanding", "compare-answers", "--outstanding={}"),
        ("answers", "timeout_s", "compare-answers", "--timeout={}s"),
        ("answers", "ttl_limit_s", "compare-answers", "--ttl-limit={}"),
        *((name, "timeout_s", "load", "--timeout={}s") for name in ("capacity", "latency", "overload", "replay")),
    ],
)
def test_the_engine_takes_both_ends_of_a_range(procedure: str, option: str, program: str, flag: str) -> None:
    for value in all_procedures()[procedure].RANGES[option]:
        done = subprocess.run(
            [paths.engine(), program, flag.format(value), "--help"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("experiment", "setting", "says"),
    [
        ("tour", "dataset.zones=-1", "dataset.zones = -1: a number from 1 to 10,000,000 is expected"),
        ("tour", "dataset.zones=0", "dataset.zones = 0: a number from 1"),
        ("tour", f"dataset.zones={10**14}", f"dataset.zones = {10**14}: a number from 1"),
        ("tour", "dataset.records_per_zone=1", "dataset.records_per_zone = 1: a number from 2 to 1,000,000"),
        ("tour", "options.probe_rate_per_s=-5", "options.probe_rate_per_s = -5: a number from"),
        ("tour", "options.drain_s=1e6", "options.drain_s = 1000000.0: a number from 0 to 86,400"),
        ("tour", "options.drain_s=nan", "a number beyond all limits"),
        ("tour", "options.probe_rate_per_s=true", "must be a whole number"),
        ("capacity", "options.timeout_s=61", "options.timeout_s = 61: a number from 0.001 to 60"),
        ("replay-fidelity", "stream.clients=0", "stream.clients = 0: a number from 1"),
        ("replay-fidelity", "stream.qps=inf", "a number beyond all limits"),
        ("tour", "repeats=-1", "repeats = -1"),
        ("tour", "limit_s=1e9", "limit_s = 1000000000.0"),
    ],
)
def test_a_number_out_of_its_range_is_refused_before_the_run(experiment: str, setting: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        preparation.draft(preparation.Request(experiment, settings=[setting]))
    assert says in caught.value.message


@pytest.mark.parametrize(
    ("experiment", "settings", "says"),
    [
        ("tour", ["dataset.zones=10_000_000", "dataset.records_per_zone=1_000"], "10,000,000,000 records"),
        ("replay-fidelity", ["stream.qps=1e6", "stream.duration_s=86_400"], "86,400,000,000 queries"),
    ],
)
def test_numbers_that_are_too_many_together_are_refused(experiment: str, settings: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        preparation.draft(preparation.Request(experiment, settings=settings))


@pytest.mark.parametrize("experiment", model.builtin())
def test_published_numbers_are_within_their_ranges(experiment: str) -> None:
    preparation.draft(preparation.Request(experiment, scale="published", max_trials=1_000_000_000))


def test_defaults_and_ranges_are_what_they_were() -> None:
    """Each parameter and option has its default, and a number its least and most. If a change is meant,
    ``DNSRIG_BLESS=1`` makes the file anew."""
    found = {
        table: {
            name: [value, *(parameters.range_of(name, own) if not isinstance(value, bool | str) else ())]
            for name, value in defaults.items()
        }
        for table, (defaults, own) in TABLES.items()
    }
    lines = [f" {json.dumps(table)}: {json.dumps(values)}" for table, values in sorted(found.items())]
    assert same(GOLDEN, "{\n" + ",\n".join(lines) + "\n}\n")
