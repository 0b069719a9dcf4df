"""Folders that only one process at a time may fill: runs, and the cache, where folders appear whole or not at all."""

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
"""How long the children of a dead owner of a folder may take to end."""
READABLE = 0o022
"""The umask (umask(2)) of files that everybody may read. The folders above them decide who can reach them."""


@contextmanager
def locked(folder: Path) -> Iterator[int]:
    """Lock ``folder``; other processes wait. Yields the descriptor of the lock, as `only_one` does."""
    folder.mkdir(parents=True, exist_ok=True)
    with files.lock_file(folder) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock


@contextmanager
def only_one(folder: Path, otherwise: str, note: Callable[[str], None] = lambda text: None) -> Iterator[int]:
    """Lock ``folder``; for another process, ``otherwise`` is the error.

    Yields the descriptor of the lock: a child that inherits it holds the lock, too, until it ends (flock(2)). If the
    owner has died and only such a child is left, this function calls ``note`` and waits for it.
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
    """Whether the process has ended, or is a zombie (proc_pid_stat(5))."""
    if not owner.isdecimal():
        return False
    try:
        return Path("/proc", owner, "stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@contextmanager
def held(folder: Path, otherwise: str) -> Iterator[Callable[[], bool]]:
    """Lock the existing ``folder`` itself; for another process, ``otherwise`` is the error.

    Yields a function that returns whether the path still leads to this folder.
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
    """A folder to build in, below a ``locked`` parent. At the end it becomes ``target``.

    Servers, which have no rights, can read it, whatever the umask of the user is. Leftovers of an interrupted process
    are removed first.
    """
    with workshop(target.parent) as temporary:
        made = temporary / "made"
        before = os.umask(READABLE)
        try:
            yield made
        finally:
            os.umask(before)
        if target.exists():
            shutil.rmtree(target)
        made.rename(target)


@contextmanager
def workshop(folder: Path) -> Iterator[Path]:
    """A temporary folder within ``folder``, which is ``locked``: all others there are leftovers, and are removed."""
    for leftover in folder.glob(f"{UNFINISHED}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=UNFINISHED) as temporary:
        yield Path(temporary)
