"""The logs of a trial's servers, read within limits: their size and what they contain are not ours."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dnsrig import files
from dnsrig.runs.trial import Trial

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
    """The logs of every server; only lines with each of ``words`` in them."""
    wanted = words.casefold().split()
    for host in trial.record.spec.hosts:
        for path in _files(trial.directory / "servers" / host):
            data, cut = files.beginning(path, MOST_BYTES, trial.run_dir)
            lines = data.decode(errors="replace").splitlines()
            found = [line for line in lines if all(word in line.casefold() for word in wanted)]
            if found or not wanted:
                yield Log(host, path.name, found[:MOST_LINES], len(found), cut)


def _files(folder: Path) -> list[Path]:
    """No links: a run may come from somebody else, and lead anywhere."""
    if folder.is_symlink() or folder.parent.is_symlink() or not folder.is_dir():
        return []
    with os.scandir(folder) as entries:
        names = [each.name for each in entries if each.is_file(follow_symlinks=False)]
    return [folder / name for name in sorted(names) if name.endswith(ENDINGS)]
