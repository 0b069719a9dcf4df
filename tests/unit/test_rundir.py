"""The run directory's files: whole or absent, versioned, and stable."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import synthetic
from golden_files import same
from pydantic import BaseModel, ValidationError

from dnsrig.errors import DnsrigError
from dnsrig.rundir import (
    SCHEMA_VERSION,
    DatasetSpec,
    Findings,
    Manifest,
    read_json,
    write_json,
)
from dnsrig.runs.run import Run


def test_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "findings.json"
    write_json(path, Findings(findings=[]))
    before = path.read_text()
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError):
        write_json(path, Findings(findings=[]))
    assert path.read_text() == before
    assert [p.name for p in tmp_path.iterdir()] == ["findings.json"], "no temporary file stays"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (f'{{"schema_version": {SCHEMA_VERSION + 1}}}', "newer dnsrig"),
        ('{"schema_version": 1, "find', "cannot be read"),
        ('{"schema_version": 1, "findings": [], "surprise": 1}', "surprise"),
        ("[]", "not what dnsrig writes"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "findings.json").write_text(content)
    with pytest.raises(DnsrigError, match=message):
        read_json(tmp_path / "findings.json", Findings)


def test_there_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(DnsrigError, match="there is no run"):
        Run.open(tmp_path / "nothing")


def test_run_without_some_trials_can_be_read(tmp_path: Path) -> None:
    directory = synthetic.build(tmp_path / "run")
    whole = len(Run.open(directory).trials)
    next(directory.glob("trials/*/*/trial.json")).unlink()
    assert len(Run.open(directory).trials) == whole - 1
    assert read_json(directory / "manifest.json", Manifest).schema_version == SCHEMA_VERSION


@pytest.mark.parametrize("key", ["../x", "/x", ".."])
def test_a_key_leads_nowhere_else(key: str) -> None:
    with pytest.raises(ValidationError):
        DatasetSpec(kind="tld", key=key, zones=1, records=2, serial=1)


GOLDEN = Path(__file__).parent / "golden/fields.json"
STORED = (
    *(f"dnsrig.rundir.{name}" for name in ("base", "findings", "manifest", "record", "spec")),
    *("dnsrig.certificate", "dnsrig.comparison.bisection.record", "dnsrig.comparison.bisection.state"),
    *("dnsrig.comparison.criterion", "dnsrig.experiment.model", "dnsrig.machines.document", "dnsrig.query_files"),
    *("dnsrig.runs.held", "dnsrig.runs.load_result", "dnsrig.servers.builds.kept"),
)
"""Modules with records that are stored, or that a user writes."""
LIMITS = ("gt", "ge", "lt", "le", "min_length", "max_length", "strict")


def documents() -> Iterator[type[BaseModel]]:
    for name in STORED:
        for kind in vars(importlib.import_module(name)).values():
            if isinstance(kind, type) and issubclass(kind, BaseModel) and kind.__module__ == name:
                yield kind


def test_defaults_and_limits_of_fields_are_what_they_were() -> None:
    """A document of an earlier version lacks later fields, and is read with their defaults. If a change is meant,
    ``DNSRIG_BLESS=1`` makes the file anew."""
    lines = []
    for kind in documents():
        fields = {}
        for name, field in kind.model_fields.items():
            limits = {
                limit: getattr(each, limit) for each in field.metadata for limit in LIMITS if hasattr(each, limit)
            }
            plain = isinstance(field.default, bool | int | float | str)
            told = [*([field.default] if plain else []), *([limits] if limits else [])]
            fields |= {name: told} if told else {}
        lines.append(f" {json.dumps(f'{kind.__module__}.{kind.__name__}')}: {json.dumps([kind.model_config, fields])}")
    assert same(GOLDEN, "{\n" + ",\n".join(lines) + "\n}\n")
