"""The smoke run: with `--smoke`, each bench takes the same paths with the smallest sizes, to show that it still works.

    ROUNDS = sized(5, smoke=1)

The figures of a smoke run mean nothing. Goals are therefore not judged.
"""

from __future__ import annotations

import argparse
import atexit
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from dnsrig.cli._exits import EXIT_NO_VALID_TRIAL

Size = TypeVar("Size")

SMOKE = "--smoke" in sys.argv[1:]
"""Read before the command line is parsed, because sizes are constants of modules, which other benches import."""


def sized(usual: Size, smoke: Size) -> Size:
    """A size of a bench: ``smoke`` in a smoke run, otherwise ``usual``."""
    return smoke if SMOKE else usual


def parser(doc: str | None) -> argparse.ArgumentParser:
    """A parser with `--smoke`; ``doc`` is the docstring of the bench. In a smoke run it prints a warning."""
    made = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    made.add_argument("--smoke", action="store_true", help="smallest sizes, in seconds: the figures mean nothing")
    if SMOKE:
        print("Smoke run with the smallest sizes: it shows that the bench works. Its figures mean nothing.", flush=True)
    return made


def add_parts(asking: argparse.ArgumentParser, known: Iterable[str]) -> None:
    """Let the command line name some parts of a bench: by default ``parts`` are all of them."""
    names = [*known]

    def part(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(names)}")
        return text

    asking.add_argument(
        "parts", nargs="*", type=part, default=names, metavar="PART", help=f"default: {' '.join(names)}"
    )


def parts(doc: str | None, known: Iterable[str]) -> list[str]:
    """What the command line of a bench names, if it has nothing but parts."""
    asking = parser(doc)
    add_parts(asking, known)
    chosen: list[str] = asking.parse_args().parts
    return chosen


def status(goals_met: bool) -> int:
    """The exit status of a bench that has goals."""
    return 0 if goals_met or SMOKE else 1


def new_run(experiment: str, settings: Iterable[str], *more: str, program: Sequence[str] = ("-m", "dnsrig")) -> Path:
    """Run an experiment with ``settings`` and ``more`` options, and return the folder of the run.

    ``program``: how Python is to start dnsrig.

    A variant without a valid trial is no failure: tables have a column for it. Raises CalledProcessError otherwise.
    """
    runs = scratch() or Path("runs")
    words = [word for setting in settings for word in ("--set", setting)]
    command = [sys.executable, *program, "run", experiment, "--runs", str(runs), "--quiet", *words, *more]
    ended = subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
    if ended.returncode not in (0, EXIT_NO_VALID_TRIAL):
        ended.check_returncode()
    return max((runs / experiment).iterdir())


def scratch() -> Path | None:
    """In a smoke run a new folder, which is removed at the end; otherwise None."""
    if not SMOKE:
        return None
    folder = tempfile.TemporaryDirectory(prefix="dnsrig-smoke-", ignore_cleanup_errors=True)
    atexit.register(folder.cleanup)
    return Path(folder.name)
