"""Things in the cache appear whole or not at all, made by one process at a time."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dnsrig.errors import DnsrigError

UNFINISHED = ".unfinished-"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One process at a time in ``folder``; others wait."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def only_one(folder: Path, otherwise: str) -> Iterator[None]:
    """One process in ``folder``; another is told ``otherwise``."""
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise DnsrigError(otherwise, hint="wait until it ends") from error
        yield


@contextmanager
def making(target: Path) -> Iterator[Path]:
    """A folder to build in, inside a ``locked`` parent; what is built there becomes ``target``.

    What an interrupted process left behind is removed first.
    """
    for leftover in target.parent.glob(f"{UNFINISHED}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=UNFINISHED) as temporary:
        made = Path(temporary, "made")
        yield made
        if target.exists():
            shutil.rmtree(target)
        made.rename(target)
