"""Times of the stages of `make test`, beside the budget of each.

    stages.py begin TARGET              forget the stages of an earlier run
    stages.py run STAGE COMMAND...      run COMMAND, note its time and CPU time, exit as COMMAND does
    stages.py report                    print the stages, the ten slowest tests, and the total beside its limit

A stage that exceeds its budget (tests/budget.toml) gets a remark and never fails. Needs the standard library only,
because the first stage installs everything else.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
import tomllib
import xml.etree.ElementTree as ElementTree
from pathlib import Path

NOTES = Path(__file__).resolve().parent.parent / ".stages"
BUDGET = Path(__file__).with_name("budget.toml")
SLOWEST_TESTS = 10
ENGINE = "engine build"
"""A run with this stage began with a fresh clone, or a changed engine."""


def begin(target: str) -> None:
    shutil.rmtree(NOTES, ignore_errors=True)
    NOTES.mkdir()
    _note("begin", target)


def run(stage: str, command: list[str]) -> int:
    NOTES.mkdir(exist_ok=True)
    file = NOTES / re.sub(r"\W+", "-", stage)
    started = time.time()
    status = subprocess.run(
        command, check=False, env=os.environ | {"PYTEST_ADDOPTS": f"--junitxml={file}.xml"}
    ).returncode
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    _note(file.name, stage, time.time() - started, used.ru_utime + used.ru_stime)
    return status


def _note(name: str, stage: str, seconds: float = 0, cpu_s: float = 0) -> None:
    note = {"stage": stage, "seconds": seconds, "cpu_s": cpu_s, "ended": time.time()}
    (NOTES / f"{name}.json").write_text(json.dumps(note))


def report() -> list[str]:
    """The lines of the report, from the notes that `begin` and `run` left."""
    notes = sorted((json.loads(file.read_text()) for file in NOTES.glob("*.json")), key=lambda note: note["ended"])
    (start, *stages) = notes
    budget = tomllib.loads(BUDGET.read_text())[start["stage"]]
    lines = ["stage                       seconds   budget  CPU seconds"]
    for note in stages:
        limit = budget["stages"].get(note["stage"], 0)
        remark = "  over its budget" if note["seconds"] > limit else ""
        lines.append(f"{note['stage']:25s} {note['seconds']:9.0f} {limit:8.0f} {note['cpu_s']:12.0f}{remark}")
    lines += ["", f"the {SLOWEST_TESTS} slowest tests", *_slowest_tests()]
    state = "fresh" if any(note["stage"] == ENGINE for note in stages) else "built"
    total, limit = time.time() - start["ended"], budget[state]
    verdict = f"{total - limit:.0f} s over" if total > limit else "within"
    return [*lines, "", f"make {start['stage']} ({state}): {_minutes(total)}, {verdict} the limit of {_minutes(limit)}"]


def _slowest_tests() -> list[str]:
    cases = [case for file in NOTES.glob("*.xml") for case in ElementTree.parse(file).iter("testcase")]
    cases.sort(key=lambda case: -float(case.attrib["time"]))
    return [f"{float(case.attrib['time']):9.1f} s  {_name(case.attrib)}" for case in cases[:SLOWEST_TESTS]]


def _name(case: dict[str, str]) -> str:
    return f"{case['classname'].replace('.', '/')}.py::{case['name']}"


def _minutes(seconds: float) -> str:
    return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def main(arguments: list[str]) -> int:
    match arguments:
        case ["begin", target]:
            begin(target)
        case ["run", stage, *command] if command:
            return run(stage, command)
        case ["report"]:
            print("\n".join(report()))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
