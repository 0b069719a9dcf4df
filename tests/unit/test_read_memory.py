"""What is the same in many trials of a run is kept once, and is what each of them recorded."""

from __future__ import annotations

from pathlib import Path

import synthetic

from dnsrig.rundir import TrialRecord, read_json, write_json
from dnsrig.runs.row_files import watch
from dnsrig.runs.rows import read
from dnsrig.runs.run import Run


def test_repeats_of_a_variant_share_its_spec(tmp_path: Path) -> None:
    directory = synthetic.build(tmp_path / "run", synthetic.Plan(servers=["bind@system"], zones=[5], repeats=3))
    files = sorted(directory.glob("trials/*/*/trial.json"))
    other = read_json(files[2], TrialRecord)
    other = other.model_copy(update={"spec": other.spec.model_copy(update={"experiment": "another"})})
    write_json(files[2], other)
    trials = sorted(Run.open(directory).trials, key=lambda trial: trial.directory)
    assert [trial.record for trial in trials] == [read_json(path, TrialRecord) for path in files]
    first, second, third = (trial.record.spec for trial in trials)
    assert first.repeat != second.repeat and first.hosts is second.hosts and first.hosts is not third.hosts


def test_files_that_are_not_there_share_a_frame_without_rows(tmp_path: Path) -> None:
    one, other = (read(tmp_path / name / watch.SOCKETS.name, None, watch.SOCKETS.schema).frame for name in "ab")
    assert one is other and one.height == 0 and dict(one.schema) == dict(watch.SOCKETS.schema)
