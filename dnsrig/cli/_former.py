"""Options that had another name in earlier versions. The former name is still read, and no help shows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from typer.core import TyperCommand

FORMER: Mapping[str, Mapping[str, str]] = {
    "bisect": {"--metric": "--bad-if", "--axis": "--vary"},
    "browse": {"--host": "--listen"},
    "calibrate": {"--from": "--other-end", "--folder": "--certificates"},
    "history": {"--order": "--sort"},
    "import": {"--timeout-s": "--timeout"},
    "plan": {"--from": "--from-run", "--rate": "--bandwidth", "--set": "--setting"},
}
"""Command -> former name of an option -> its name."""
SECONDS = "-s"
"""End of former names whose value was a number of seconds without a unit."""


class Command(TyperCommand):
    """A command that reads the former names of its options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(renamed(args, FORMER.get(self.name or "", {}))))


def renamed(arguments: Sequence[str], names: Mapping[str, str]) -> Iterator[str]:
    """``arguments`` with the names of today.

    >>> list(renamed(["dnsperf", "--timeout-s", "5", "--as", "a"], {"--timeout-s": "--timeout"}))
    ['dnsperf', '--timeout', '5s', '--as', 'a']
    """
    rest = iter(arguments)
    for argument in rest:
        former, equals, value = argument.partition("=")
        if argument == "--":
            yield argument
            break
        if former not in names:
            yield argument
            continue
        if not equals and (value := next(rest, "")) == "":
            yield names[former]
            break
        yield from (names[former], f"{value}s" if former.endswith(SECONDS) else value)
    yield from rest
