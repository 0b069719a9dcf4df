"""Signals that end dnsrig: each is heard also in a wait without a limit, once, and the end is reported."""

from __future__ import annotations

import ctypes
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from dnsrig import interruption
from dnsrig.cli import _app, run
from dnsrig.lab import host, ledger, network

LIMIT_S = 60.0
"""For what ends at once, on however busy a machine."""
SA_RESTART = 0x10000000
"""linux/asm-generic/signal-defs.h"""
WAITING = """
import queue
import polars
from dnsrig import interruption
for _ in interruption.SIGNALS:
    try:
        with interruption.caught():
            print("waiting", flush=True)
            queue.SimpleQueue().get()
    except KeyboardInterrupt as ended:
        print(ended, flush=True)
"""


@pytest.fixture
def handlers() -> Iterator[None]:
    """Afterwards signals do what they did before."""
    before = {number: signal.getsignal(number) for number in interruption.SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def asleep(pid: int) -> bool:
    """Whether the main thread waits in a futex, as for a queue (proc_pid_syscall(5))."""
    number = {"x86_64": "202", "aarch64": "98"}.get(os.uname().machine, "")
    return Path(f"/proc/{pid}/syscall").read_text().split()[0] == number


def test_each_signal_ends_a_wait_for_a_queue_although_polars_is_imported() -> None:
    with subprocess.Popen([sys.executable, "-c", WAITING], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        giving_up = threading.Timer(LIMIT_S, process.kill)
        giving_up.start()
        for number in interruption.SIGNALS:
            assert process.stdout.readline() == "waiting\n"
            while not asleep(process.pid):
                time.sleep(0.01)
            process.send_signal(number)
            assert process.stdout.readline() == f"{number.name}\n"
        giving_up.cancel()


def flags(number: int) -> int:
    """Flags of the handler that the kernel has (sigaction(2)); 64-bit glibc has them behind handler and mask."""

    class Action(ctypes.Structure):
        _fields_ = [
            ("handler", ctypes.c_void_p),
            ("mask", ctypes.c_ulong * 16),
            ("flags", ctypes.c_int),
            ("restorer", ctypes.c_void_p),
        ]

    action = Action()
    assert ctypes.CDLL(None).sigaction(number, None, ctypes.byref(action)) == 0
    return action.flags


def test_why_the_import_of_polars_comes_first() -> None:
    """If this fails, polars has changed, and `interruption.caught` may begin anywhere."""
    program = (
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "import signal, polars\nfrom test_interruption import SA_RESTART, flags\nfrom dnsrig import interruption\n"
        "print(bool(flags(signal.SIGINT) & SA_RESTART))\n"
        "with interruption.caught(): print(bool(flags(signal.SIGINT) & SA_RESTART))\n"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert told.split() == ["True", "False"]


@pytest.mark.parametrize("number", interruption.SIGNALS)
def test_only_the_first_signal_interrupts(handlers: None, number: signal.Signals) -> None:
    removed = False
    with interruption.caught():
        with pytest.raises(interruption.Interrupted, match=number.name):
            signal.raise_signal(number)
        for other in interruption.SIGNALS:
            signal.raise_signal(other)
        removed = True
    assert removed


def test_what_is_ignored_stays_ignored(handlers: None) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with interruption.caught():
        signal.raise_signal(signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_a_signal_waits_while_it_is_deferred(handlers: None) -> None:
    """Also if the kernel gives it to another thread: Python runs the handler in the main thread."""
    removed, ended = False, threading.Event()
    other = threading.Thread(target=ended.wait)
    other.start()
    with interruption.caught(), pytest.raises(interruption.Interrupted, match="SIGQUIT"), interruption.deferred():
        signal.pthread_kill(other.ident or 0, signal.SIGQUIT)
        time.sleep(0.01)
        removed = True
    ended.set()
    other.join()
    assert removed


def test_a_namespace_is_made_before_a_signal_interrupts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes it would go on, and it would come after the removal of what the ledger lists."""
    made = []

    def slowly(name: str) -> None:
        signal.raise_signal(signal.SIGTERM)
        made.append(name)

    monkeypatch.setattr(host.netns, "create", slowly)
    with interruption.caught(), pytest.raises(interruption.Interrupted):
        host.create("dnsrig-test")
    assert made == ["dnsrig-test"]


def test_a_ledger_is_known_before_a_signal_interrupts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The signal comes when the file of the ledger is there, and nobody holds the ledger yet."""

    appear = os.link

    def link(fresh: Path, path: Path) -> None:
        appear(fresh, path)
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(ledger, "FOLDER", tmp_path)
    monkeypatch.setattr(os, "link", link)
    with interruption.caught(), pytest.raises(interruption.Interrupted), network.Network({}, []):
        pass
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("number", interruption.SIGNALS)
def test_an_interrupted_command_says_so_and_ends_with_130(
    handlers: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    app = typer.Typer()
    app.command()(lambda: signal.raise_signal(number))
    monkeypatch.setattr(_app, "command_line", lambda: typer.main.get_command(app))
    monkeypatch.setattr(sys, "argv", ["dnsrig"])
    with pytest.raises(SystemExit) as ended:
        _app.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "dnsrig: interrupted\n"


ON_A_TERMINAL = """
import fcntl, signal, sys, termios
from pathlib import Path
from dnsrig import interruption
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
try:
    with interruption.caught():
        print("ready", flush=True)
        signal.pause()
except KeyboardInterrupt as ended:
    print("interrupted", file=sys.stderr, flush=True)
    print("interrupted", flush=True)
    Path(sys.argv[1]).write_text(str(ended))
"""


def test_the_end_is_as_clean_when_the_terminal_is_gone(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    written = tmp_path / "written"
    process = subprocess.Popen(
        [sys.executable, "-c", ON_A_TERMINAL, str(written)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    assert os.read(ours, 100).startswith(b"ready")
    os.close(ours)
    assert process.wait(LIMIT_S) == 0
    assert written.read_text() == "SIGHUP"


def test_an_interrupted_run_says_how_it_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever it does then: it reads the run, waits for somebody else, measures, or draws the report."""
    with pytest.raises(SystemExit) as ended, run.resumable(tmp_path):
        raise interruption.Interrupted("SIGHUP")
    assert ended.value.code == 130
    assert f"continue with `dnsrig run --resume {tmp_path}`" in capsys.readouterr().err.replace("\n", "")
