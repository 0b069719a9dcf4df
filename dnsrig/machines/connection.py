"""An SSH connection to another machine, with a process of dnsrig at its far end.

`arrival` runs there first, and takes what the machine lacks of dnsrig. It then becomes `worker`, which executes trials,
or `far_end`, which has hosts of a trial. The far end lives as long as the connection: a byte every few seconds is the
sign of life of this side.
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
from dnsrig.machines import arrival, leases
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
"""ssh asks nothing, notices after 15 s that the network is gone, and shares its connection with no other run."""
ANSWER_LIMIT_S = 60.0
SENDING_LIMIT_S = 1800.0
LAST_WORDS_LIMIT_S = 10.0
END_LIMIT_S = 90.0
"""How long a trial there may take to remove what it made."""
ERROR_LINES_MAX = 50


class Connection:
    """A connection to one machine.

    ``config`` is a configuration of ssh that replaces the user's; empty: the user's. ``boot`` identifies the boot of
    the machine with which the run began; empty: the first one that is seen.
    """

    def __init__(self, name: str, machine: MachineDocument, config: str, boot: str = "") -> None:
        self.name, self._machine, self._config, self.boot = name, machine, config, boot
        self.process: subprocess.Popen[bytes] | None = None
        self._sending, self._ended = threading.Lock(), threading.Event()
        self.said: collections.deque[str] = collections.deque(maxlen=ERROR_LINES_MAX)

    def open(
        self, parts: Sequence[Part], module: str, limit_s: float, forwards: Sequence[str] = (), **asked: Any
    ) -> None:
        """Connect, bring what the machine lacks of ``parts``, and have the far end become ``module``, which gets
        ``asked``. Raises DnsrigError, with what to do, if that fails."""
        self.dial(forwards)
        self.greet(parts)
        self.ask(limit_s, becomes=module, **asked)
        threading.Thread(target=self._stay, args=(self.process, self._ended), daemon=True).start()

    def dial(self, forwards: Sequence[str]) -> None:
        self.said.clear()
        self._ended = threading.Event()
        # A session of its own: Ctrl-C is for this process, which ends the far end.
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
        """Check that the machine is like this one, and bring what it lacks."""
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
            raise DnsrigError(
                f"{self.name} was restarted since the run began", hint="start a new run: this one would mix two boots"
            )
        self.boot = found["boot"]
        for part in parts:
            if part.name in found["lacking"]:
                self._bring(part)

    def _bring(self, part: Part) -> None:
        files = [(name, path.stat().st_size, arrival.is_program(path)) for name, path in part.files.items()]
        assert self.process is not None and self.process.stdin is not None
        with _limit(self.process, SENDING_LIMIT_S), contextlib.suppress(BrokenPipeError):  # the answer says why
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
        with contextlib.suppress(BrokenPipeError):  # the answer says why
            self.write(data)

    def write(self, data: bytes) -> None:
        """Send ``data`` at once. Raises OSError or ValueError if the connection has ended."""
        assert self.process is not None
        self._write(self.process, data)

    def _write(self, process: subprocess.Popen[bytes], data: bytes) -> None:
        assert process.stdin is not None
        with self._sending:
            process.stdin.write(data)
            process.stdin.flush()

    def answer(self, limit_s: float) -> dict[str, Any]:
        """Wait for the next line of the far end. Raises DnsrigError if it reports an error, or if none comes."""
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

    def _stay(self, process: subprocess.Popen[bytes], ended: threading.Event) -> None:
        """Send a sign of life every few seconds: the far end takes silence for a lost network."""
        with contextlib.suppress(OSError, ValueError):
            while not ended.wait(leases.RENEWAL_S):
                self._write(process, b".")

    @property
    def is_lost(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def _why(self) -> DnsrigError:
        """Explain why there is no connection, or no Python, and what to do."""
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
        """End the far end, by the end of its standard input, and wait for it."""
        if (process := self.process) is None:
            return
        self._ended.set()
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
    """The command that starts `arrival` there. Its source follows on standard input, so no shell has to parse it."""
    options = [word for name, value in OPTIONS.items() for word in ("-o", f"{name}={value}")]
    # Every version of Python understands this, so that one that is too old can be named.
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
    """Kill the process if what happens inside takes longer; the event is then set."""
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
