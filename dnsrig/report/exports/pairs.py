"""Versions of a server beside each other, as JSON: what each cost."""

from __future__ import annotations

import json
from pathlib import Path

from dnsrig.report import what_did_it
from dnsrig.runs.run import Run

SCHEMA_VERSION = 1
"""Raised by one whenever a reader of the old would misread the new."""


def write(run: Run, out: Path) -> list[Path]:
    path = out / "pairs.json"
    found = {"schema_version": SCHEMA_VERSION, "run": run.manifest.run, "pairs": what_did_it.as_json(run)}
    path.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return [path]
