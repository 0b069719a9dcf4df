"""Signals that end dnsrig in order: SIGINT (Ctrl-C), SIGTERM, SIGHUP (the terminal is gone) and SIGQUIT (Ctrl-\\)."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


_waiting: list[int] | None = None
"""Signals that arrived while they are `deferred`; None: they are not deferred."""


class Interrupted(KeyboardInterrupt):
    """One of `SIGNALS` arrived. It is not an Exception, so that no handler of errors catches it."""


@contextlib.contextmanager
def caught() -> Iterator[None]:
    """The first of `SIGNALS` raises `Interrupted`, also while the main thread waits; the others are ignored, so that no
    removal is cut short.

    Begin it after polars is imported, and around whatever waits without a limit. The import of polars replaces the
    handler of SIGINT by one with SA_RESTART (sigaction(2)): a system call that waits then goes on, and Python, which
    runs handlers between two calls, never runs its own. A signal that dnsrig was started to ignore, as by nohup(1),
    stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers, and it has
        return
    owner = os.getpid()
    came: list[int] = []

    def interrupt(number: int, _frame: FrameType | None) -> None:
        if os.getpid() != owner:
            os._exit(128 + number)  # a forked helper of a library: it must not unwind our stack
        if number == signal.SIGHUP:
            _leave_terminal()
        if _waiting is not None:
            _waiting.append(number)
        elif not came:
            came.append(number)
            raise Interrupted(signal.Signals(number).name)

    before = {number: signal.getsignal(number) for number in SIGNALS}
    caught_here = [number for number in SIGNALS if before[number] is not signal.SIG_IGN]
    try:
        for number in caught_here:
            signal.signal(number, interrupt)
        yield
    finally:
        for number in caught_here:
            signal.signal(number, before[number])


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Let a signal that arrives meanwhile interrupt afterwards.

    Blocking it would not help: the kernel gives it to another thread, and Python runs the handler in this one.
    """
    global _waiting
    if threading.current_thread() is not threading.main_thread():
        yield  # nothing interrupts this thread
        return
    outer, _waiting = _waiting, []
    try:
        yield
    finally:
        came, _waiting = _waiting, outer
        if came:
            signal.raise_signal(came[0])


def _leave_terminal() -> None:
    """Discard output to a terminal that is gone. Otherwise every write would fail (EIO, termios(3))."""
    for handle in (1, 2):
        try:
            os.write(handle, b"")
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), handle)
