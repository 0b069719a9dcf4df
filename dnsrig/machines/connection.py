"""An SSH connection to another machine, at whose far end a Python of ours runs: what it lacks is brought through it.

`arrival` is what runs there first. It becomes what it is told to be: a worker that executes trials, or the end of a
trial that has hosts there.
"""

from __future__ import annotations

import collections
import contextlib
import getpass
import json
import shlex
import shutil
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dnsrig.errors import DnsrigError
from dnsrig.machines import arrival
from dnsrig.machines.document import MachineDocument
from dnsrig.machines.packages import Part

OPTIONS = {
    "BatchMode": "yes",
    "ConnectTimeout": "10",
    "ServerAliveInterval": "5",
    "ServerAliveCountMax": "3",
    "ExitOnForwardFailure": "yes",
    "ControlMaster": "no",
    "ControlPath": "none",
    "RemoteCommand": "none",
    "RequestTTY": "no",
}
"""Nobody is asked anything; a network that is gone is noticed after 15 s; and the connection is this run's own."""
ANSWER_LIMIT_S = 60.0
SENDING_LIMIT_S = 1800.0
LAST_WORDS_LIMIT_S = 10.0
END_LIMIT_S = 90.0
"""A trial there may take so long to remove what it made."""
ERROR_LINES_MAX = 50


class Connection:
    """To one machine. ``config``: of ssh, in place of the user's; empty: the user's."""

    def __init__(self, name: str, machine: MachineDocument, config: str) -> None:
        self.name, self._machine, self._config = name, machine, config
        self.boot = ""
        self.process: subprocess.Popen[bytes] | None = None
        self.said: collections.deque[str] = collections.deque(maxlen=ERROR_LINES_MAX)

    def dial(self, forwards: Sequence[str]) -> None:
        self.said.clear()
        # A session of its own: Ctrl-C is for us, and we tell the worker.
        self.process = subprocess.Popen(
            command(self._machine, self._config, forwards),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._listener = threading.Thread(target=self._listen, args=(self.process,), daemon=True)
        self._listener.start()

    def greet(self, parts: Sequence[Part]) -> None:
        """See that it is like this machine, and bring what it lacks."""
        python = self.answer(ANSWER_LIMIT_S)["python"]
        if python != (ours := [*sys.version_info[:2]]):
            raise self._other("Python", ".".join(map(str, python)), ".".join(map(str, ours)))
        self.send(source())
        found = self.ask(ANSWER_LIMIT_S, cache=self._machine.cache, parts=[part.name for part in parts])
        if found["soabi"] != (soabi := sysconfig.get_config_var("SOABI")):
            raise self._other("kind of Python", found["soabi"], soabi)
        if not found["root"]:
            raise DnsrigError(
                f"on {self.name} dnsrig is not root",
                hint=f'make it root@… in the file of machines, or write python = "sudo -n {self._machine.python}"',
            )
        if self.boot not in ("", found["boot"]):
            raise DnsrigError(f"{self.name} was restarted", hint="start a new run: this one would mix two boots")
        self.boot = found["boot"]
        for part in parts:
            if part.name in found["lacking"]:
                self._bring(part)

    def _bring(self, part: Part) -> None:
        files = [(name, path.stat().st_size, arrival.is_program(path)) for name, path in part.files.items()]
        assert self.process is not None and self.process.stdin is not None
        with _limit(self.process, SENDING_LIMIT_S), contextlib.suppress(BrokenPipeError):  # it says why, see below
            self.send(_line(files=files))
            for path in part.files.values():
                with path.open("rb") as file:
                    shutil.copyfileobj(file, self.process.stdin, arrival.PIECE_BYTES)
            self.process.stdin.flush()
        self.answer(SENDING_LIMIT_S)

    def ask(self, limit_s: float, **what: Any) -> dict[str, Any]:
        self.send(_line(**what))
        return self.answer(limit_s)

    def send(self, data: bytes) -> None:
        assert self.process is not None
        with contextlib.suppress(BrokenPipeError):  # what it said last tells why
            _write(self.process, data)

    def answer(self, limit_s: float) -> dict[str, Any]:
        """Its next line. Raises DnsrigError where it tells of an error, or nothing comes."""
        assert self.process is not None and self.process.stdout is not None
        with _limit(self.process, limit_s) as late:
            for line in self.process.stdout:
                if line.startswith(arrival.OURS.encode()):
                    told: dict[str, Any] = json.loads(line.removeprefix(arrival.OURS.encode()))
                    break
            else:
                told = {}
        if late.is_set():
            raise DnsrigError(f"{self.name} does not answer within {limit_s:.0f} s", hint=f"try `{self._by_hand}`")
        if not told:
            raise self._why()
        if "error" in told:
            hint = "go on with --resume, or start it again"
            if told["full"]:
                hint = f'make room in {told["folder"]} there, or choose another folder in the file: cache = "/…"'
            raise DnsrigError(f"{self.name}: {told['error']}", hint=hint)
        return told

    def stay(self) -> None:
        """A byte says that we live."""
        assert self.process is not None
        with contextlib.suppress(OSError):
            _write(self.process, b".")

    @property
    def is_lost(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def _why(self) -> DnsrigError:
        """There is no connection, or no Python: what is to be done."""
        assert self.process is not None
        try:
            self.process.wait(LAST_WORDS_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._listener.join(LAST_WORDS_LIMIT_S)
        name, lines = self.name, [line for line in self.said if line.strip()]
        last = lines[-1] if lines else f"ssh ended with status {self.process.returncode}"
        for words, message, hint in (
            (
                ("Host key verification failed", "HOST IDENTIFICATION HAS CHANGED"),
                f"the host key of {name} is unknown, or another one than before",
                f"compare the fingerprint that `{self._by_hand}` shows with the machine's, and accept it",
            ),
            (
                ("Permission denied (",),
                f"{name} accepts none of the keys of {getpass.getuser()}",
                f"`{self._by_hand}` has to work without a password: ssh-add, or ssh-copy-id",
            ),
            (
                ("forwarding failed", "administratively prohibited"),
                f"{name} forwards no ports",
                "its sshd needs AllowTcpForwarding yes (sshd_config(5))",
            ),
        ):
            if any(word in line for line in lines for word in words):
                return DnsrigError(message, hint=hint)
        if self.process.returncode == 255:
            return DnsrigError(f"{name} cannot be reached: {last}", hint=f"try `{self._by_hand}`")
        if self.process.returncode in (126, 127):
            return DnsrigError(
                f"{name} cannot start {self._machine.python}: {last}",
                hint='set a command that can: python = "…" in the file',
            )
        return DnsrigError(f"the worker on {name} ended: {last}", hint=f"try `{self._by_hand}`")

    def _other(self, what: str, theirs: str, ours: str) -> DnsrigError:
        return DnsrigError(
            f"{self.name} has a different {what}: {theirs}, here {ours}",
            hint=f'dnsrig copies its packages from here: install Python {sys.version_info[0]}.{sys.version_info[1]} there, and set its command in the file: python = "…"',
        )

    @property
    def _by_hand(self) -> str:
        return shlex.join(["ssh", *(["-F", self._config] if self._config else []), self._machine.ssh])

    def hang_up(self) -> None:
        """The end of its standard input tells the worker to end."""
        if (process := self.process) is None:
            return
        with contextlib.suppress(OSError):
            if process.stdin is not None:
                process.stdin.close()
        try:
            process.wait(END_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stderr is not None
        for line in process.stderr:
            self.said.append(line.decode(errors="replace").rstrip())


def command(machine: MachineDocument, config: str, forwards: Sequence[str]) -> list[str]:
    """What starts `arrival` there. Its source follows on standard input, so no shell there has to understand it."""
    options = [word for name, value in OPTIONS.items() for word in ("-o", f"{name}={value}")]
    # What every Python understands: a version that is too old has to be told.
    begin = (
        f'import sys, json; print("{arrival.OURS}" + json.dumps(dict(python=sys.version_info[:2])), flush=True); '
        f"exec(sys.stdin.buffer.read({len(source())}))"
    )
    there = f"{machine.python} -I -c {shlex.quote(begin)}"
    return ["ssh", *(["-F", config] if config else []), "-T", "-a", "-x", *options, *forwards, "--", machine.ssh, there]


def source() -> bytes:
    return Path(arrival.__file__).read_bytes()


@contextlib.contextmanager
def _limit(process: subprocess.Popen[bytes], limit_s: float) -> Iterator[threading.Event]:
    """Kill it where what happens inside takes longer; the event is then set."""
    late = threading.Event()

    def kill() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(limit_s, kill)
    timer.daemon = True
    timer.start()
    try:
        yield late
    finally:
        timer.cancel()


def _line(**what: Any) -> bytes:
    return json.dumps(what).encode() + b"\n"


def _write(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.flush()
