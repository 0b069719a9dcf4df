"""A machine that has hosts of a trial: calls, programs and folders go over one SSH connection, to `far_end` there."""

from __future__ import annotations

import contextlib
import getpass
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
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, Any, get_type_hints

from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from dnsrig import paths
from dnsrig.errors import DnsrigError
from dnsrig.lab import host_calls
from dnsrig.lab.remote_machine import LOST, Arguments, Input, Program, RemotePopen, Result
from dnsrig.machines import document, far_end, folders, packages
from dnsrig.machines.connection import Connection
from dnsrig.machines.document import MachineDocument
from dnsrig.machines.packages import Part
from dnsrig.rundir import MachineSpec

START_LIMIT_S = 60.0
CALL_LIMIT_S = 120.0
"""Unpacking a root file system takes longest."""
Answers = queue.Queue[dict[str, Any]]


@dataclass(frozen=True)
class HostingMachine:
    """A machine that hosts of a run may be on, beside the one that the run is started on."""

    spec: MachineSpec
    cpus: list[int]
    conditions: dict[str, Any] = field(default_factory=dict)


class SshMachine:
    """A `RemoteMachine`. ``directory`` is the folder of the trial on this machine; its files have a place there."""

    def __init__(self, name: str, spec: MachineSpec, directory: Path) -> None:
        self.name = name
        machine = MachineDocument(ssh=spec.ssh, python=spec.python, cache=spec.cache)
        self._connection = Connection(name, machine, spec.config, spec.boot_id)
        self._directory = directory
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Answers] = {}
        self._processes: dict[int, RemotePopen] = {}
        self._is_silent = threading.Event()
        """Set when nothing more can come from there."""
        self.looked: dict[str, Any] = {}

    def open(self, run: str, parts: Sequence[Part]) -> None:
        """Connect, and hold the machine for ``run``; ``parts`` of dnsrig are brought if it lacks them. Raises
        DnsrigError if the machine cannot be had."""
        self._run, self._parts = run, parts
        self._connect()
        threading.Thread(target=self._listen, daemon=True).start()
        self.looked = self.call(host_calls.look)
        self._places = self._known()

    def _connect(self) -> None:
        """Connect. The process that begins there removes what another one left."""
        holder = f"{getpass.getuser()}@{platform.node()}, run {self._run}"
        lease = secrets.token_hex(8)
        self._connection.open(self._parts, far_end.__name__, START_LIMIT_S, lease=lease, holder=holder)

    def close(self) -> None:
        """Remove what was made there, also if the process that should do so was killed, as long as the machine
        answers."""
        # A far end that was killed is gone before ssh is: it removed nothing.
        was_lost = self._is_silent.is_set() or (self._connection.process is not None and self._connection.is_lost)
        self._connection.hang_up()
        if was_lost and self.looked:
            with contextlib.suppress(DnsrigError):
                self._connect()
                self._connection.hang_up()

    @property
    def boot(self) -> str:
        return self._connection.boot

    def call(
        self, function: Callable[Arguments, Result], /, *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        number = next(self._numbers)
        answers = self._waiting[number] = queue.Queue()
        called = {"call": f"{function.__module__}:{function.__qualname__}", "arguments": arguments, "named": named}
        try:
            if self._is_silent.is_set():  # ssh may still take what nobody reads any longer
                raise self._lost()
            self._send(to_jsonable_python({**called, "id": number}, bytes_mode="base64"))
            answer = answers.get(timeout=CALL_LIMIT_S)
        except (queue.Empty, OSError, ValueError):
            raise self._lost() from None
        finally:
            del self._waiting[number]
        if answer is LOST_ANSWER:
            raise self._lost()
        if "error" in answer:
            raise DnsrigError(f"{self.name}: {answer['error']}", hint=answer["hint"])
        value: Result = _returned(function).validate_python(answer["value"])
        return value

    def start(
        self, host: str, program: Program, *, reads: bool, stdout: IO[Any] | int | None, stderr: IO[Any] | int | None
    ) -> RemotePopen:
        number = next(self._numbers)
        popen = RemotePopen(
            lambda signal_number: self.call(host_calls.send_signal, number, signal_number),
            lambda: self.call(host_calls.go_first, number),
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
        popen.pid = self.call(host_calls.start, number, host, self._there(to_jsonable_python(program)), reads)
        return popen

    def there(self, word: str) -> str:
        """Translate the paths in a word of a command line to paths of that machine."""
        return translated(word, self._places)

    def make_folder(self, folder: Path) -> None:
        self.call(host_calls.make_folder, Path(self.there(str(folder))))

    def fetch(self, folder: Path) -> None:
        packed = Path(self.looked["folder"], f"{secrets.token_hex(8)}.tar")
        archive = self.call(folders.pack, Path(self.there(str(folder))), packed)
        with folders.fetched(self.call, archive, self._directory) as made:
            shutil.copytree(made, folder, dirs_exist_ok=True)
        self.call(folders.remove, archive.path)

    def bring(self, names: Sequence[str]) -> None:
        """Bring those folders of the cache that the machine lacks."""
        for name in self.call(folders.lacking, sorted(names)):
            folders.send(self.call, paths.cache() / name, name, self.looked["folder"])

    def bring_folder(self, folder: Path) -> None:
        there = f"{self.looked['folder']}/brought/{len(self._places)}"
        folders.send(self.call, folder, there, self.looked["folder"])
        self._places |= dict.fromkeys((str(folder), str(folder.resolve())), there)

    def _known(self) -> dict[str, str]:
        """Where things lie here -> where they lie there."""
        return {
            str(self._directory): self.looked["folder"],
            str(self._directory.resolve()): self.looked["folder"],
            str(paths.cache()): self.looked["cache"],
            str(paths.engine()): self.looked["engine"],
        }

    def _there(self, value: Any) -> Any:
        """Translate the paths within a value as JSON has it."""
        if isinstance(value, str):
            return self.there(value)
        if isinstance(value, list):
            return [self._there(one) for one in value]
        if isinstance(value, dict):
            return {name: self._there(one) for name, one in value.items()}
        return value

    def _send(self, message: dict[str, Any]) -> None:
        self._connection.write(json.dumps(message).encode() + b"\n")

    def _listen(self) -> None:
        process = self._connection.process
        assert process is not None and process.stdout is not None
        try:
            # If something else writes there, nothing that follows can be trusted.
            with contextlib.suppress(ValueError, TypeError, AttributeError, KeyError):
                for line in process.stdout:
                    self._take(json.loads(line))
        finally:
            self._is_silent.set()
            for answers in [*self._waiting.values()]:
                answers.put(LOST_ANSWER)
            for popen in [*self._processes.values()]:  # another thread may start a program meanwhile
                if popen.poll() is None:
                    popen.end(LOST)

    def _take(self, message: dict[str, Any]) -> None:
        """Take an answer, or a line or the end of a program."""
        if "answer" in message:
            if (answers := self._waiting.get(message["answer"])) is not None:
                answers.put(message)
        elif (popen := self._processes.get(message.get("process", 0))) is not None:
            if "ended" in message:
                popen.end(int(message["ended"]))
            else:
                popen.take(message["stream"], message["line"])

    def _lost(self) -> DnsrigError:
        return DnsrigError(
            f"the machine {self.name} does not answer",
            hint="check the machine and its network, then continue with --resume",
        )


LOST_ANSWER: dict[str, Any] = {}


@cache
def _returned(function: Callable[..., Any]) -> TypeAdapter[Any]:
    """What ``function`` is annotated to return."""
    return TypeAdapter(get_type_hints(function, include_extras=True)["return"])


def translated(word: str, places: Mapping[str, str]) -> str:
    """Replace the paths in a word of a command line by those that ``places`` has for them; of two that fit, the longer
    one counts.

    >>> translated("--zones=/a/b/z", {"/a": "/x", "/a/b": "/a/y"})
    '--zones=/a/y/z'
    """
    names = "|".join(re.escape(name) for name in sorted(places, key=len, reverse=True))
    return re.sub(rf"(^|[=,:])({names})(?=[/,:]|$)", lambda found: f"{found[1]}{places[found[2]]}", word)


@contextlib.contextmanager
def opened(machines: Mapping[str, MachineSpec], directory: Path, run: str) -> Iterator[dict[str, SshMachine]]:
    """Connect to all other machines of a trial; what was made there is removed at the end of the context."""
    if not machines:
        yield {}
        return
    found = {name: SshMachine(name, spec, directory) for name, spec in machines.items()}
    parts = packages.parts()
    try:
        with ThreadPoolExecutor(len(found)) as pool:
            for opening in [pool.submit(machine.open, run, parts) for machine in found.values()]:
                opening.result()
        yield found
    finally:
        with ThreadPoolExecutor(len(found)) as pool:
            for closing in [pool.submit(machine.close) for machine in found.values()]:
                closing.result()


def look(names: list[str], file: Path | None, note: Callable[[str], None]) -> dict[str, HostingMachine]:
    """Connect to the machines that hosts of a run name, before its first trial; bring what they lack of dnsrig, and
    look at them. Raises DnsrigError if one cannot be had."""
    if not names:
        return {}
    specs = document.named(names, file)
    note(f"looking at {', '.join(names)}")
    with tempfile.TemporaryDirectory() as folder, opened(specs, Path(folder), "that begins") as found:
        return {
            name: HostingMachine(
                specs[name].model_copy(update={"boot_id": one.boot}), one.looked["cpus"], one.looked["conditions"]
            )
            for name, one in found.items()
        }
