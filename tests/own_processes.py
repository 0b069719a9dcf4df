"""The engine's processes below this one: what tests and benches stop, or enter the network of."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def engines() -> Iterator[tuple[int, list[str]]]:
    """(process, words of the command after the program) of each engine below this process."""
    for pid in _descendants(os.getpid()):
        try:
            program, *words = Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if program.endswith("dnsrig-engine"):
            yield pid, words


def measuring_loads() -> list[int]:
    """Each `load` that writes its rows: not the warm-up."""
    return [pid for pid, words in engines() if words[0] == "load" and "--out" in " ".join(words)]


def _descendants(root: int) -> list[int]:
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                waiting += [int(child) for child in task.read_text().split()]
            except (FileNotFoundError, ProcessLookupError):
                continue
        found.append(pid)
    return found[1:]
