"""The logs of a trial's servers, read within limits: their size and what they contain are not ours."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dnsrig.analysis.read import Trial

MOST_BYTES = 1 << 20
"""Read of one log, from its beginning."""
MOST_LINES = 400
"""Shown of one log."""
ENDINGS = (".log", ".log.gz", ".stderr")


@dataclass(frozen=True)
class Log:
    host: str
    name: str
    lines: list[str]
    matching: int
    """Lines as asked, of those read."""
    cut: bool
    """Whether there is more than was read."""


def logs(trial: Trial, words: str = "") -> Iterator[Log]:
    """Of every server; lines with each of ``words`` in them."""
    wanted = words.casefold().split()
    for host in trial.record.spec.hosts:
        for path in _files(trial.directory / "servers" / host):
            text, cut = _beginning(path)
            found = [line for line in text.splitlines() if all(word in line.casefold() for word in wanted)]
            if found or not wanted:
                yield Log(host, path.name, found[:MOST_LINES], len(found), cut)


def _files(folder: Path) -> list[Path]:
    """No links: a run may come from somebody else, and lead anywhere."""
    if folder.is_symlink() or folder.parent.is_symlink() or not folder.is_dir():
        return []
    with os.scandir(folder) as entries:
        names = [each.name for each in entries if each.is_file(follow_symlinks=False)]
    return [folder / name for name in sorted(names) if name.endswith(ENDINGS)]


def _beginning(path: Path) -> tuple[str, bool]:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, EOFError):
        return "", False
    return data[:MOST_BYTES].decode(errors="replace"), len(data) > MOST_BYTES
