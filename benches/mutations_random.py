"""What the tests notice: the code is broken at places drawn at random, one at a time, and all tests are run.

    .venv/bin/python benches/mutations_random.py [--seed N] [--count N] [--full] [--equivalent NUMBER ...]

A break changes one operator, one truth value or one small number. The tests of `make test` run, the fastest first,
until one fails: first the tests of the same crate, or the unit tests that import the module. With ``--full``, the rest
of `make test-full` follows. A break that does not compile is drawn again. So is a break that was shown to change
nothing: ``--equivalent`` takes its number in an earlier run with the same seed. A test that fails, and passes when it
is run again with the same break, has noticed nothing. The exit status is 1 if too few breaks were noticed: nine of ten
must be, and all of them with ``--full``. Works in a copy of the last commit. Needs root, and minutes for each break.
"""

from __future__ import annotations

import io
import random
import re
import shlex
import subprocess
import sys
import time
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mutations import PYTEST, TARGET, TEST_UNITS, copy_of_last_commit, execute, replaced
from smoke import SMOKE, parser, sized, status

LIMIT_S = 1800
SHARE_NOTICED = 0.9
BY_CHANCE_MAX = 3
"""Tests of a stage that may fail by chance; with one more, the stage counts as passed."""
COUNT = sized(20, smoke=1)
SMALLEST = Path("dnsrig/experiment/trial_specs.py")
"""Where the smoke run draws from, with the tests of this file."""
CHANGES = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "+": "-",
    "-": "+",
    "+=": "-=",
    "-=": "+=",
    "&&": "||",
    "||": "&&",
    "and": "or",
    "or": "and",
    "true": "false",
    "false": "true",
    "True": "False",
    "False": "True",
    "0": "1",
    "1": "2",
    "2": "3",
}
RUST = re.compile(r"(?<= )(<=?|>=?|[=!]=|[+-]=?|&&|\|\|)(?= )|\b(true|false)\b|(?<![\w.])[012](?![\w.])")
TEST_PROCESSES = "cargo test --quiet --release --test processes"


@dataclass(frozen=True)
class Break:
    """Where ``file`` is changed: in line ``line``, from column ``column`` on, ``old`` becomes ``new``."""

    file: Path
    line: int
    column: int
    old: str

    @property
    def new(self) -> str:
        return CHANGES[self.old]

    @property
    def is_of_engine(self) -> bool:
        return self.file.suffix == ".rs"

    @property
    def pytest(self) -> str:
        return f"DNSRIG_ENGINE={TARGET}/release/dnsrig-engine {PYTEST}" if self.is_of_engine else PYTEST

    def of(self, text: str) -> str:
        lines = text.splitlines(keepends=True)
        line = lines[self.line]
        lines[self.line] = line[: self.column] + self.new + line[self.column + len(self.old) :]
        return "".join(lines)


def of_python(file: Path, text: str) -> Iterator[Break]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.OP, tokenize.NAME, tokenize.NUMBER) and token.string in CHANGES:
            yield Break(file, token.start[0] - 1, token.start[1], token.string)


def of_rust(file: Path, text: str) -> Iterator[Break]:
    """Outside comments, texts and the tests at the end of a file."""
    code, _, _ = text.partition("#[cfg(test)]\nmod tests {")
    for number, line in enumerate(code.splitlines()):
        for found in RUST.finditer(line):
            before = line[: found.start()]
            if "//" not in before and before.count('"') % 2 == 0 and not line.lstrip().startswith("#["):
                yield Break(file, number, found.start(), found.group())


def places(root: Path) -> list[Break]:
    """Every place of the code, in a fixed order."""
    python = sorted((root / "dnsrig").rglob("*.py"))
    rust = sorted(path for path in (root / "engine").glob("dnsrig-*/src/**/*.rs") if "test" not in path.stem)
    if SMOKE:
        return [*of_python(SMALLEST, (root / SMALLEST).read_text())]
    return [
        *(place for path in python for place in of_python(path.relative_to(root), path.read_text())),
        *(place for path in rust for place in of_rust(path.relative_to(root), path.read_text())),
    ]


def main() -> int:
    asking = parser(__doc__)
    asking.add_argument("--seed", type=int, default=random.randrange(1_000_000), help="default: a new one")
    asking.add_argument("--count", type=int, default=COUNT, help=f"how many breaks (default: {COUNT})")
    asking.add_argument("--full", action="store_true", help="also run what only `make test-full` runs")
    asking.add_argument("--equivalent", type=int, nargs="*", default=[], metavar="NUMBER", help="breaks to draw again")
    asked = asking.parse_args()
    print(f"seed {asked.seed}", flush=True)
    with copy_of_last_commit() as copy:
        drawn = places(copy)
        random.Random(asked.seed).shuffle(drawn)
        noticed = [*judged(copy, drawn, asked.count, {*asked.equivalent}, asked.full)]
    print(f"{sum(noticed)} of {len(noticed)} noticed")
    return status(sum(noticed) >= (1 if asked.full else SHARE_NOTICED) * len(noticed))


def judged(copy: Path, drawn: list[Break], count: int, equivalent: set[int], full: bool) -> Iterator[bool]:
    """Whether each of the first ``count`` breaks that count is noticed."""
    left = count
    for number, one in enumerate(drawn, 1):
        if not left:
            return
        if number in equivalent:
            continue
        path, began_s = copy / one.file, time.monotonic()
        with replaced(path, one.of(path.read_text())):
            by = noticed_by(one, copy, full)
        where = f"{one.file}:{one.line + 1}:{one.column + 1} {one.old} -> {one.new}"
        what = {None: "MISSED ", "": "invalid"}.get(by, "noticed")
        print(f"{number:3} {what} {where}  {by or ''}  ({time.monotonic() - began_s:.0f} s)", flush=True)
        if by != "":
            left -= 1
            yield by is not None


def noticed_by(one: Break, copy: Path, full: bool) -> str | None:
    """The first test that fails, "" if the code does not compile, or None."""
    try:
        for command in stages(one, copy, full):
            if (failed := failing(one, command, copy)) is not None:
                return failed
    except subprocess.TimeoutExpired:
        return f"{LIMIT_S} s were not enough"
    return None


def failing(one: Break, command: str, copy: Path) -> str | None:
    """As `noticed_by`, of one stage. A test of pytest must fail twice; one that does not is left out."""
    for _ in range(1 + BY_CHANCE_MAX):
        done = execute(command, copy, LIMIT_S)
        if not done.returncode:
            return None
        if "error: could not compile" in done.stderr:
            return ""
        failed = first_failure(done.stdout + done.stderr)
        again = f"{one.pytest} -m 'full or not full' {shlex.quote(failed)}"
        if not failed.startswith("tests/") or execute(again, copy, LIMIT_S).returncode:
            return failed
        print(f"    {failed} failed, and then passed with the same break", flush=True)
        command += f" --deselect {shlex.quote(failed)}"
    return None


def stages(one: Break, copy: Path, full: bool) -> list[str]:
    """Commands that test the break, the fastest first."""
    near = tests_of_part(one, copy)
    if SMOKE:
        return near
    several = f"{one.pytest} --numprocesses 6 --dist worksteal --ignore tests/unit"
    quick = [
        f"{one.pytest} --numprocesses 2 tests/unit",
        f"{several} -m 'not alone and not full'",
        f"{one.pytest} --ignore tests/unit -m 'alone and not full'",
    ]
    slow = [f"{several} -m 'full and not alone'", f"{one.pytest} -m 'full and alone'"] if full else []
    return [*near, *([TEST_UNITS, TEST_PROCESSES] if one.is_of_engine else []), *quick, *slow]


def tests_of_part(one: Break, copy: Path) -> list[str]:
    """The tests of the same crate, or the unit tests that import the module; they also run later, with all others."""
    if one.is_of_engine:
        return [TEST_UNITS.replace("--workspace", f"--package {one.file.parts[1]}")]
    package, module = ".".join(one.file.parent.parts), one.file.stem
    imported = re.compile(rf"{re.escape(package)}(\.{module}\b| import [^\n]*\b{module}\b)")
    tests = [
        str(path.relative_to(copy))
        for path in sorted((copy / "tests/unit").glob("test_*.py"))
        if imported.search(path.read_text())
    ]
    return [f"{one.pytest} --numprocesses 2 {' '.join(tests)}"] if tests else []


def first_failure(output: str) -> str:
    found = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$|^---- (\S+) stdout", output, re.MULTILINE)
    return (found.group(1) or found.group(2)) if found else output[-300:]


if __name__ == "__main__":
    sys.exit(main())
