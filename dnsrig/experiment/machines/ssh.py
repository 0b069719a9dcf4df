"""The machines of a TOML file, reached over SSH: a scheduler in this process, a Dask worker on each of them.

All traffic goes through the SSH connections, so no machine listens on anything but loopback; there it is encrypted by a
key of this run, because a machine may have users who should not become root by its worker.
"""

from __future__ import annotations

import collections
import contextlib
import datetime
import difflib
import getpass
import json
import logging
import random
import shlex
import shutil
import socket
import subprocess
import sys
import sysconfig
import threading
import time
import tomllib
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from dnsrig.errors import DnsrigError, UsageError
from dnsrig.experiment.machines import arrival, closure, dask, leases
from dnsrig.experiment.machines.closure import Part
from dnsrig.experiment.machines.dask import Worker
from dnsrig.rundir import NAME

if TYPE_CHECKING:
    from distributed import Security

SUFFIX = ".toml"
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
PORTS = range(20_000, 32_768)
"""Of a machine's loopback, below those that Linux gives out by itself (ip(7), ip_local_port_range)."""
PORT_TAKEN = ("Address already in use", "forwarding failed")
ATTEMPTS = 3
"""With other ports."""
ANSWER_LIMIT_S = 60.0
SENDING_LIMIT_S = 1800.0
START_LIMIT_S = 120.0
LAST_WORDS_LIMIT_S = 10.0
END_LIMIT_S = 90.0
"""A trial there may take so long to remove what it made."""
LOOK_S = 1.0
"""How often it is looked whether a connection is lost."""
PAUSE_LIMIT_S = 30.0
"""Each failed attempt to make it again doubles the pause before the next one, up to this."""
ERROR_LINES_MAX = 50
ROLES = ("client", "scheduler")
"""That this process has in Dask."""
QUIET = {
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.http.routes": [],
    **dask.SHORT_LOGS,
}


def _absolute(path: str) -> str:
    if path and not path.startswith("/"):
        raise ValueError("it begins with /, as it is a folder of that machine")
    return path


def _no_option(destination: str) -> str:
    if destination.startswith("-") or len(destination.split()) != 1:
        raise ValueError("it is one word, as ssh takes it")
    return destination


class MachineDocument(BaseModel):
    """One machine."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ssh: Annotated[str, AfterValidator(_no_option)]
    """Where ssh goes: a name, user@name, ssh://user@name:port, or a Host of its configuration."""
    python: str = Field("python3", min_length=1)
    """What starts Python there, as its shell understands it."""
    cache: Annotated[str, AfterValidator(_absolute)] = ""
    """Where dnsrig keeps there what is brought; empty: where it does by itself."""


class Document(BaseModel):
    """A file of machines."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    config: str = ""
    """A configuration of ssh beside this file, in place of the user's."""
    machines: dict[Annotated[str, Field(pattern=f"^{NAME}$")], MachineDocument] = Field(min_length=1)


def read(path: Path) -> Document:
    """Raises UsageError where it is no such file."""
    try:
        document = Document.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", hint="--on takes a file of machines") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from error
    except ValidationError as error:
        raise _explained(error, path) from error
    names = dict[MachineDocument, str]()
    for name, machine in document.machines.items():
        place = machine.model_copy(update={"python": ""})
        if other := names.get(place):
            raise UsageError(
                f"{path}: {other} and {name} are one machine: trials would measure each other", hint="name it once"
            )
        names[place] = name
    config = str(path.parent.resolve() / document.config) if document.config else ""
    return document.model_copy(update={"config": config})


@contextlib.contextmanager
def workers(path: Path) -> Iterator[list[Worker]]:
    """The machines of the file at ``path``, each with a worker as long as this lasts."""
    document = read(path)
    if shutil.which("ssh") is None:
        raise DnsrigError("the program ssh is missing", hint="install OpenSSH's client (openssh-client)")
    keys = Keys()
    dask.check_installed()
    with _scheduler(keys.security) as address:
        links = [Link(name, told, document.config, address, keys) for name, told in document.machines.items()]
        try:
            start(links, closure.parts())
            with _cluster(address, keys) as places:
                yield places
        finally:
            end(links)


@contextlib.contextmanager
def _cluster(address: str, keys: Keys) -> Iterator[list[Worker]]:
    from distributed.versions import VersionMismatchWarning

    with contextlib.ExitStack() as stack:
        with warnings.catch_warnings():
            # Of packages that nobody needs: what is needed was brought from here.
            warnings.simplefilter("ignore", VersionMismatchWarning)
            places = stack.enter_context(dask.workers(address, keys.security))
        yield places


@contextlib.contextmanager
def _scheduler(security: Security) -> Iterator[str]:
    """Its address. It is a thread of this process, so whatever happens, it ends with the run."""
    import dask as settings
    from distributed import Scheduler, SpecCluster

    options = {
        "protocol": "tls://",
        "host": "127.0.0.1",
        "port": 0,
        "security": security,
        "dashboard": False,
        "dashboard_address": "127.0.0.1:0",
    }
    with (
        settings.config.set(QUIET),
        SpecCluster(
            scheduler={"cls": Scheduler, "options": options},
            security=security,
            silence_logs=logging.CRITICAL,  # what is lost, the run tells
        ) as cluster,
    ):
        yield cluster.scheduler_address


class Keys:
    """What all sides of one run show each other."""

    @cached_property
    def pem(self) -> tuple[str, str]:
        """A certificate and its key. It never ends: machines' clocks may be wrong, and nobody keeps it."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "dnsrig")])
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(datetime.datetime(2000, 1, 1))
            .not_valid_after(datetime.datetime(9999, 12, 31))
            .sign(key, hashes.SHA256())
        )
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return certificate.public_bytes(serialization.Encoding.PEM).decode(), private.decode()

    @cached_property
    def security(self) -> Security:
        from distributed import Security

        certificate, key = self.pem
        own = {f"tls_{role}_cert": certificate for role in ROLES} | {f"tls_{role}_key": key for role in ROLES}
        return Security(require_encryption=True, tls_ca_file=certificate, **own)


def start(links: Sequence[Link], parts: Sequence[Part]) -> None:
    """All side by side. Raises where one cannot."""
    with ThreadPoolExecutor(len(links)) as pool:
        started = [pool.submit(link.start, parts) for link in links]
        done, _ = wait(started, return_when=FIRST_EXCEPTION)
        if failed := [error for one in done if (error := one.exception())]:
            end(links)
            raise failed[0]


def end(links: Sequence[Link]) -> None:
    """Tell all, then wait for all."""
    for link in links:
        link.tell_end()
    for link in links:
        link.wait()


class Link:
    """The SSH connection to one machine, with the worker at its far end. Where it is lost, it is made again."""

    def __init__(self, name: str, machine: MachineDocument, config: str, scheduler: str, keys: Keys) -> None:
        self.name, self._machine, self._config = name, machine, config
        self._scheduler, self._keys = scheduler, keys
        self._boot = ""
        self._ended = threading.Event()
        self._keeper: threading.Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._said: collections.deque[str] = collections.deque(maxlen=ERROR_LINES_MAX)

    def start(self, parts: Sequence[Part]) -> None:
        """Raises DnsrigError where there is no worker afterwards."""
        self._connect(parts)
        self._keeper = threading.Thread(target=self._keep, args=(parts,), daemon=True)
        self._keeper.start()

    def tell_end(self) -> None:
        self._ended.set()
        if self._keeper is None:
            self._hang_up()

    def wait(self) -> None:
        if self._keeper is not None:
            self._keeper.join(2 * END_LIMIT_S)

    def _keep(self, parts: Sequence[Part]) -> None:
        """A byte now and then says that we live; see `worker`."""
        pause_s, said_s = LOOK_S, 0.0
        while not self._ended.wait(pause_s):
            if self._process is None or self._process.poll() is not None:
                try:
                    self._connect(parts)
                    pause_s = LOOK_S
                except Exception:  # whatever it is, the run says that the machine is lost
                    pause_s = min(2 * pause_s, PAUSE_LIMIT_S)
            elif time.monotonic() > said_s + leases.RENEWAL_S:
                said_s = time.monotonic()
                with contextlib.suppress(OSError):
                    _write(self._process, b".")
        self._hang_up()

    def _connect(self, parts: Sequence[Part]) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            there, contact, here = random.sample(PORTS, 2), free_port(), port_of(self._scheduler)
            forwards = [f"-R127.0.0.1:{there[0]}:127.0.0.1:{here}", f"-L127.0.0.1:{contact}:127.0.0.1:{there[1]}"]
            try:
                self._dial(forwards)
                self._greet(parts)
                certificate, key = self._keys.pem
                self._ask(
                    START_LIMIT_S, name=self.name, scheduler=f"tls://127.0.0.1:{there[0]}", port=there[1],
                    contact=f"tls://127.0.0.1:{contact}", certificate=certificate, key=key,
                )  # fmt: skip
                return
            except DnsrigError:
                self._hang_up()
                if attempt == ATTEMPTS or not any(word in line for line in self._said for word in PORT_TAKEN):
                    raise

    def _dial(self, forwards: Sequence[str]) -> None:
        self._said.clear()
        # A session of its own: Ctrl-C is for us, and we tell the worker.
        self._process = subprocess.Popen(
            command(self._machine, self._config, forwards),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._listener = threading.Thread(target=self._listen, args=(self._process,), daemon=True)
        self._listener.start()

    def _greet(self, parts: Sequence[Part]) -> None:
        """See that it is like this machine, and bring what it lacks."""
        python = self._answer(ANSWER_LIMIT_S)["python"]
        if python != (ours := [*sys.version_info[:2]]):
            raise self._other("Python", ".".join(map(str, python)), ".".join(map(str, ours)))
        self._send(source())
        found = self._ask(ANSWER_LIMIT_S, cache=self._machine.cache, parts=[part.name for part in parts])
        if found["soabi"] != (soabi := sysconfig.get_config_var("SOABI")):
            raise self._other("kind of Python", found["soabi"], soabi)
        if not found["root"]:
            raise DnsrigError(
                f"on {self.name} dnsrig is not root",
                hint=f'make it root@… in the file of machines, or write python = "sudo -n {self._machine.python}"',
            )
        if self._boot not in ("", found["boot"]):
            raise DnsrigError(f"{self.name} was restarted", hint="start the run anew: its rounds would be of two boots")
        self._boot = found["boot"]
        for part in parts:
            if part.name in found["lacking"]:
                self._bring(part)

    def _bring(self, part: Part) -> None:
        files = [(name, path.stat().st_size, arrival.is_program(path)) for name, path in part.files.items()]
        assert self._process is not None and self._process.stdin is not None
        with _limit(self._process, SENDING_LIMIT_S), contextlib.suppress(BrokenPipeError):  # it says why, see below
            self._send(_line(files=files))
            for path in part.files.values():
                with path.open("rb") as file:
                    shutil.copyfileobj(file, self._process.stdin, arrival.PIECE_BYTES)
            self._process.stdin.flush()
        self._answer(SENDING_LIMIT_S)

    def _ask(self, limit_s: float, **what: Any) -> dict[str, Any]:
        self._send(_line(**what))
        return self._answer(limit_s)

    def _send(self, data: bytes) -> None:
        assert self._process is not None
        with contextlib.suppress(BrokenPipeError):  # what it said last tells why
            _write(self._process, data)

    def _answer(self, limit_s: float) -> dict[str, Any]:
        """Its next line. Raises DnsrigError where it tells of an error, or nothing comes."""
        assert self._process is not None and self._process.stdout is not None
        with _limit(self._process, limit_s) as late:
            for line in self._process.stdout:
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

    def _why(self) -> DnsrigError:
        """There is no connection, or no Python: what is to be done."""
        assert self._process is not None
        try:
            self._process.wait(LAST_WORDS_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join(LAST_WORDS_LIMIT_S)
        name, lines = self.name, [line for line in self._said if line.strip()]
        last = lines[-1] if lines else f"ssh ended with status {self._process.returncode}"
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
        if self._process.returncode == 255:
            return DnsrigError(f"{name} cannot be reached: {last}", hint=f"try `{self._by_hand}`")
        if self._process.returncode in (126, 127):
            return DnsrigError(
                f"{name} cannot start {self._machine.python}: {last}", hint='say what can: python = "…" in the file'
            )
        return DnsrigError(f"the worker on {name} ended: {last}", hint=f"try `{self._by_hand}`")

    def _other(self, what: str, theirs: str, ours: str) -> DnsrigError:
        return DnsrigError(
            f"{self.name} has another {what}: {theirs}, here {ours}",
            hint=f'packages are brought as they are here: install Python {sys.version_info[0]}.{sys.version_info[1]} there, and say how it starts: python = "…" in the file',
        )

    @property
    def _by_hand(self) -> str:
        return shlex.join(["ssh", *(["-F", self._config] if self._config else []), self._machine.ssh])

    def _hang_up(self) -> None:
        """The end of its standard input tells the worker to end."""
        if (process := self._process) is None:
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
            self._said.append(line.decode(errors="replace").rstrip())


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


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
    return port


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


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


def _explained(error: ValidationError, path: Path) -> UsageError:
    """The first problem as one sentence."""
    first = error.errors()[0]
    location = [str(part) for part in first["loc"] if part != "[key]"]
    where = ".".join(location)
    known = [*(MachineDocument if len(location) == 3 else Document).model_fields]
    if first["type"] == "extra_forbidden":
        close = difflib.get_close_matches(location[-1], known, 1, cutoff=0.5)
        hint = f"did you mean {close[0]}?" if close else f"known keys: {', '.join(known)}"
        return UsageError(f"{path}: unknown key {where}", hint=hint)
    if first["type"] == "missing":
        hint = 'write [machines.NAME] and below it ssh = "root@…"'
        return UsageError(f"{path}: the key {where} is missing", hint=hint)
    said = str(first["msg"]).removeprefix("Value error, ")
    return UsageError(f"{path}: {where} = {first['input']!r}: {said[0].lower()}{said[1:]}")
