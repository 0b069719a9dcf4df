"""A machine that has hosts of a trial, as the trial sees it: calls, programs and files go over one SSH connection."""

from __future__ import annotations

import base64
import contextlib
import getpass
import hashlib
import itertools
import json
import platform
import queue
import re
import secrets
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

from dnsrig import paths
from dnsrig.errors import DnsrigError
from dnsrig.lab import host_calls
from dnsrig.lab.remote_popen import LOST, Input, RemotePopen
from dnsrig.machines import far_end, folders, leases, packages
from dnsrig.machines.connection import Connection
from dnsrig.machines.document import MachineDocument
from dnsrig.machines.folders import Archive
from dnsrig.machines.packages import Part
from dnsrig.rundir import MachineSpec

START_LIMIT_S = 60.0
CALL_LIMIT_S = 120.0
"""Unpacking a root file system takes longest."""
Answers = queue.Queue[dict[str, Any]]


class SshMachine:
    """A `RemoteMachine`. ``directory`` is the folder of the trial on this machine; its files have a place there."""

    def __init__(self, name: str, spec: MachineSpec, directory: Path) -> None:
        self.name = name
        document = MachineDocument(ssh=spec.ssh, python=spec.python, cache=spec.cache)
        self._connection = Connection(name, document, spec.config)
        self._spec, self._directory = spec, directory
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Answers] = {}
        self._processes: dict[int, RemotePopen] = {}
        self._sending, self._closed = threading.Lock(), threading.Event()
        self.looked: dict[str, Any] = {}

    def open(self, run: str, parts: Sequence[Part]) -> None:
        """Connect, and hold the machine for ``run``; ``parts``: of dnsrig, which it may lack. Raises DnsrigError where
        it cannot be had."""
        self._run, self._parts = run, parts
        self._connect(run, parts)
        threading.Thread(target=self._listen, daemon=True).start()
        threading.Thread(target=self._stay, daemon=True).start()
        self.looked = self.call(host_calls.look)
        self._places = self._known()

    def _connect(self, run: str, parts: Sequence[Part]) -> None:
        """What begins there removes what another one left."""
        self._connection.dial([])
        self._connection.greet(parts)
        if self._spec.boot_id not in ("", self._connection.boot):
            raise DnsrigError(
                f"{self.name} was restarted since the run began", hint="start a new run: this one would mix two boots"
            )
        holder = f"{getpass.getuser()}@{platform.node()}, run {run}"
        becomes = far_end.__name__
        self._connection.ask(START_LIMIT_S, becomes=becomes, lease=secrets.token_hex(8), holder=holder)

    def close(self) -> None:
        """What was made there is removed; also where whatever was to do that was killed, if the machine answers."""
        self._closed.set()
        was_lost = self._connection.process is not None and self._connection.is_lost
        self._connection.hang_up()
        if was_lost and self.looked:
            with contextlib.suppress(DnsrigError):
                self._connect(self._run, self._parts)
                self._connection.hang_up()

    @property
    def boot(self) -> str:
        return self._connection.boot

    def call(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        number = next(self._numbers)
        answers = self._waiting[number] = queue.Queue()
        try:
            self._send(call=f"{function.__module__}:{function.__qualname__}", arguments=arguments, id=number)
            told = answers.get(timeout=CALL_LIMIT_S)
        except (queue.Empty, OSError, ValueError):
            raise self._lost() from None
        finally:
            del self._waiting[number]
        if told is LOST_ANSWER:
            raise self._lost()
        if "error" in told:
            raise DnsrigError(f"{self.name}: {told['error']}", hint=told["hint"])
        return told["value"]

    def start(
        self,
        host: str,
        command: Sequence[str],
        how: dict[str, Any],
        *,
        reads: bool,
        stdout: IO[Any] | int | None,
        stderr: IO[Any] | int | None,
    ) -> RemotePopen:
        number = next(self._numbers)
        popen = RemotePopen(
            lambda signal_number: self.call(host_calls.send_signal, number, signal_number),
            lambda: bool(self.call(host_calls.go_first, number)),
            stdin=Input(
                lambda text: self.call(host_calls.write, number, text),
                lambda: self.call(host_calls.close_input, number),
            )
            if reads
            else None,
            stdout=stdout,
            stderr=stderr,
        )
        self._processes[number] = popen
        words = [self.there(word) for word in command]
        there = {name: self._there(value) for name, value in how.items() if value is not None}
        popen.pid = self.call(host_calls.start, number, host, words, there, reads)
        return popen

    def there(self, word: str) -> str:
        return translated(word, self._places)

    def make_folder(self, folder: Path) -> None:
        self.call(host_calls.make_folder, self.there(str(folder)))

    def fetch(self, folder: Path) -> None:
        """The folder of the trial as it is there comes here, over what is here of it."""
        told = self.call(host_calls.pack, self.there(str(folder)))
        with tempfile.TemporaryDirectory(dir=self._directory, prefix=".arriving-") as place:
            path, made = Path(place, "archive"), Path(place, "made")
            for offset in range(0, int(told["size_bytes"]), folders.PART_BYTES):
                folders.add(path, offset, base64.b64decode(self.call(host_calls.part, told["path"], offset)))
            folders.unpack(Archive(path, int(told["size_bytes"]), str(told["sha256"])), made)
            shutil.copytree(made, folder, dirs_exist_ok=True)
        self.call(host_calls.forget, told["path"])

    def bring(self, folders: Sequence[str]) -> None:
        """What it lacks of folders of the cache."""
        for folder in self.call(host_calls.lacking, sorted(folders)):
            self._bring(paths.cache() / folder, folder)

    def bring_folder(self, folder: Path) -> None:
        """A folder that lies anywhere here: paths in it are known there from then on."""
        there = f"{self.looked['folder']}/brought/{len(self._places)}"
        self._bring(folder, there)
        self._places |= dict.fromkeys((str(folder), str(folder.resolve())), there)

    def _bring(self, folder: Path, target: str) -> None:
        with tempfile.TemporaryDirectory() as place:
            packed = folders.pack(folder, Path(place, "archive"))
            name = hashlib.sha256(target.encode()).hexdigest()
            for offset, data in folders.parts(packed):
                self.call(host_calls.receive, name, offset, base64.b64encode(data).decode())
            self.call(host_calls.install, name, packed.size_bytes, packed.sha256, target)

    def _known(self) -> dict[str, str]:
        """Where things lie here -> where they lie there."""
        return {
            str(self._directory): self.looked["folder"],
            str(self._directory.resolve()): self.looked["folder"],
            str(paths.cache()): self.looked["cache"],
            str(paths.engine()): self.looked["engine"],
        }

    def _there(self, value: Any) -> Any:
        """Paths within what a program is started with."""
        if isinstance(value, str):
            return self.there(value)
        if isinstance(value, list | tuple):
            return [self._there(one) for one in value]
        if isinstance(value, dict):
            return {name: self._there(one) for name, one in value.items()}
        return value

    def _send(self, **what: Any) -> None:
        process = self._connection.process
        assert process is not None and process.stdin is not None
        with self._sending:
            process.stdin.write(json.dumps(what).encode() + b"\n")
            process.stdin.flush()

    def _stay(self) -> None:
        while not self._closed.wait(leases.RENEWAL_S):
            with self._sending:
                self._connection.stay()

    def _listen(self) -> None:
        process = self._connection.process
        assert process is not None and process.stdout is not None
        for line in process.stdout:
            try:
                told = json.loads(line)
            except ValueError:
                break  # something else writes there: nothing that follows can be trusted
            if "answer" in told:
                if (answers := self._waiting.get(told["answer"])) is not None:
                    answers.put(told)
            elif (popen := self._processes.get(told.get("process", 0))) is not None:
                if "ended" in told:
                    popen.end(int(told["ended"]))
                else:
                    popen.take(told["stream"], told["line"])
        for popen in self._processes.values():
            if popen.poll() is None:
                popen.end(LOST)
        for answers in [*self._waiting.values()]:
            answers.put(LOST_ANSWER)

    def _lost(self) -> DnsrigError:
        return DnsrigError(
            f"the machine {self.name} does not answer",
            hint="check the machine and its network, then continue with --resume",
        )


LOST_ANSWER: dict[str, Any] = {}


def translated(word: str, places: Mapping[str, str]) -> str:
    """A word of a command line with its paths where ``places`` has them; of two that fit, the longer one counts.

    >>> translated("--zones=/a/b/z", {"/a": "/x", "/a/b": "/a/y"})
    '--zones=/a/y/z'
    """
    names = "|".join(re.escape(name) for name in sorted(places, key=len, reverse=True))
    return re.sub(rf"(^|[=,:])({names})(?=[/,:]|$)", lambda found: f"{found[1]}{places[found[2]]}", word)


@contextlib.contextmanager
def opened(machines: Mapping[str, MachineSpec], directory: Path, run: str) -> Iterator[dict[str, SshMachine]]:
    """All machines of a trial, as long as this lasts."""
    if not machines:
        yield {}
        return
    remotes = {name: SshMachine(name, spec, directory) for name, spec in machines.items()}
    parts = packages.parts()
    try:
        with ThreadPoolExecutor(len(remotes)) as pool:
            for opening in [pool.submit(remote.open, run, parts) for remote in remotes.values()]:
                opening.result()
        yield remotes
    finally:
        with ThreadPoolExecutor(len(remotes)) as pool:
            for closing in [pool.submit(remote.close) for remote in remotes.values()]:
                closing.result()
