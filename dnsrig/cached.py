"""Folders that one process at a time fills: runs, and the cache, in which things appear whole or not at all."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dnsrig import files
from dnsrig.errors import DnsrigError

UNFINISHED = ".unfinished-"
ENDING_LIMIT_S = 90.0
"""How long what a dead owner of a folder started may take to end."""
READABLE = 0o022
"""The umask (umask(2)) of files that everybody may read.

The folders above them decide who comes so far."""


@contextmanager
def locked(folder: Path) -> Iterator[int]:
    """One process at a time in ``folder``; others wait. Gives the lock's descriptor, as `only_one` does."""
    folder.mkdir(parents=True, exist_ok=True)
    with files.lock_file(folder) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock


@contextmanager
def only_one(folder: Path, otherwise: str, note: Callable[[str], None] = lambda text: None) -> Iterator[int]:
    """One process in ``folder``; for another, ``otherwise`` is the error.

    Gives the lock's descriptor: a child that inherits it has the folder, too, until it ends (flock(2)). If the owner
    died and only such a child is left, it is waited for, and ``note`` is called.
    """
    with files.lock_file(folder) as lock:
        _take(lock, otherwise, note)
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        yield lock


def _take(lock: int, otherwise: str, note: Callable[[str], None]) -> None:
    deadline = None
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            owner = os.pread(lock, 20, 0).decode("ascii", "replace")
            if not _has_died(owner) or (deadline is not None and time.monotonic() > deadline):
                raise DnsrigError(otherwise, hint="wait until it ends") from error
        if deadline is None:
            note("waiting for the end of what an earlier process started here")
            deadline = time.monotonic() + ENDING_LIMIT_S
        time.sleep(0.05)


def _has_died(owner: str) -> bool:
    """Whether there is no such process any more, or its parent has yet to learn of its end (proc_pid_stat(5))."""
    if not owner.isdecimal():
        return False
    try:
        return Path("/proc", owner, "stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@contextmanager
def held(folder: Path, otherwise: str) -> Iterator[Callable[[], bool]]:
    """``folder`` itself, which is there, is this process's; for another process, ``otherwise`` is the error.

    Gives a function: whether what has that name is still this folder.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def is_ours() -> bool:
        return folder.exists() and os.path.samestat(os.fstat(handle), folder.stat())

    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise DnsrigError(otherwise, hint="wait until it ends") from error
        if not is_ours():  # somebody renamed it just before
            raise DnsrigError(otherwise, hint="wait until it ends")
        yield is_ours
    finally:
        os.close(handle)


@contextmanager
def making(target: Path) -> Iterator[Path]:
    """A folder to build in, inside a ``locked`` parent; what is built there becomes ``target``.

    Servers, which have no rights, must be able to read it, whatever the umask of the user who runs us is.
    What an interrupted process left behind is removed first.
    """
    for leftover in target.parent.glob(f"{UNFINISHED}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=UNFINISHED) as temporary:
        made = Path(temporary, "made")
        before = os.umask(READABLE)
        try:
            yield made
        finally:
            os.umask(before)
        if target.exists():
            shutil.rmtree(target)
        made.rename(target)
