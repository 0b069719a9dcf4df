"""Machines for tests that are reached over SSH: each a network namespace, a process namespace and a /run of its own,
with Debian's sshd in it, on a link of its own to the namespace that a run is started in. They may have a second
interface each, all on one switch, and clocks of their own."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import psutil

from dnsrig.lab import ledger
from dnsrig.servers import debian

SUITE = "bookworm"
"""Its sshd is one program: later ones start others, from where they were installed."""
PACKAGE = "openssh-server"
START_LIMIT_S = 30
VICTIMS = ("runner", "interrupted", "worker", "connection", "network")
INIT = """
set -e
mount -t tmpfs tmpfs /run
mkdir /run/netns /run/sshd
for name in passwd group shadow; do mount --bind {folder}/$name /etc/$name; done
exec {sshd} -D -r -e -f {folder}/sshd_config
"""
SSHD_CONFIG = """
ListenAddress {address}
HostKey {folder}/host_key
AuthorizedKeysFile {keys}
PidFile none
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
PasswordAuthentication no
LogLevel VERBOSE
SetEnv {environment}
{more}
"""
SSH_CONFIG = """
Host {name}
  HostName {address}
  User root
  IdentityFile {lab}/key
  IdentitiesOnly yes
  UserKnownHostsFile {lab}/known_hosts
  GlobalKnownHostsFile none
  StrictHostKeyChecking yes
"""
OTHER_CLOCK = """
import ctypes, os, sys
CLONE_NEWTIME = 0x80
assert ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWTIME) == 0, os.strerror(ctypes.get_errno())
open("/proc/self/timens_offsets", "w").write(f"monotonic {sys.argv[1]} {sys.argv[2]}")
os.execvp(sys.argv[3], sys.argv[3:])
"""
PYTHON = Path(sys.executable).resolve()
"""Outside of any venv: it has nothing of dnsrig."""


def having(word: str, processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """The processes with this word on their command line; not those that have ended meanwhile."""
    found = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            if word in process.cmdline():
                found.append(process)
    return found


class Lab:
    """``python``: a folder that has what was brought to machines of other tests."""

    def __init__(
        self, folder: Path, names: Sequence[str], python: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.folder = folder
        self.tag = os.environ[ledger.TAG_START]
        self.namespace = f"lab-{self.tag}"
        self._environment = environment or {}
        folder.mkdir(exist_ok=True)
        _call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "key"))
        self.machines = {name: Machine(self, name, number, python) for number, name in enumerate(names, start=1)}
        self.file = folder / "machines.toml"
        self.write()

    def wire(self, name: str = "nic0") -> None:
        """An interface for each machine, and one where runs are started, all on one switch."""
        _call("ip", "netns", "add", self.switch)
        _call("ip", "-n", self.switch, "link", "add", "switch", "type", "bridge")
        _call("ip", "-n", self.switch, "link", "set", "switch", "up")
        for number, namespace in enumerate([self.namespace, *(m.namespace for m in self.machines.values())]):
            port = f"port{number}"
            ends = ["type", "veth", "peer", "name", name, "netns", namespace]
            _call("ip", "-n", self.switch, "link", "add", port, *ends)
            _call("ip", "-n", self.switch, "link", "set", port, "master", "switch", "up")

    @property
    def switch(self) -> str:
        return f"{self.namespace}-switch"

    def start(self) -> None:
        _call("ip", "netns", "add", self.namespace)
        _call("ip", "-n", self.namespace, "link", "set", "lo", "up")
        for machine in self.machines.values():
            machine.connect()
            machine.start()

    def write(self, **keys: str) -> None:
        """The file of machines; ``keys``: by the name of a machine, lines below its own."""
        lines = ['config = "ssh_config"']
        for name, machine in self.machines.items():
            lines += [f"[machines.{name}]", f'ssh = "{name}"', f'cache = "{machine.cache}"']
            lines += [keys.get(name, f'python = "{PYTHON}"')]
        self.file.write_text("\n".join(lines) + "\n")
        (self.folder / "ssh_config").write_text("".join(m.ssh_config for m in self.machines.values()))
        known = (f"{m.address} {(m.folder / 'host_key.pub').read_text()}" for m in self.machines.values())
        (self.folder / "known_hosts").write_text("".join(known))

    @property
    def enter(self) -> list[str]:
        """Before a command: where a run is started."""
        return ["nsenter", f"--net=/run/netns/{self.namespace}"]

    @property
    def on(self) -> str:
        return str(self.file)

    def connections(self) -> list[psutil.Process]:
        """Processes of ssh where runs are started."""
        config = str(self.folder / "ssh_config")
        return [p for p in psutil.process_iter(["cmdline"]) if config in (p.info["cmdline"] or [])]

    def processes(self) -> list[psutil.Process]:
        """Of all machines."""
        return [process for machine in self.machines.values() for process in machine.processes()]

    def lose(self, victim: str, runner: subprocess.Popen[str], chance: random.Random) -> Callable[[], None]:
        """What brings it back is returned."""
        one = self.machines[chance.choice([*self.machines])]
        with contextlib.suppress(StopIteration, psutil.NoSuchProcess):  # the run has ended already
            if victim == "runner":
                runner.kill()
            elif victim == "interrupted":
                runner.send_signal(signal.SIGINT)
            elif victim == "worker":
                one.worker().kill()
            elif victim == "connection":
                next(p for p in self.connections() if one.name in p.cmdline()).kill()
            else:
                one.unplug()
                return one.plug
        return lambda: None

    @property
    def environment(self) -> Mapping[str, str]:
        return self._environment

    def end(self) -> None:
        for machine in self.machines.values():
            machine.end()
        for namespace in (self.switch, self.namespace):
            if Path("/run/netns", namespace).exists():
                _call("ip", "netns", "del", namespace)


@contextlib.contextmanager
def lab(
    folder: Path,
    names: Sequence[str],
    python: Path,
    environment: Mapping[str, str] | None = None,
    clocks_ns: Mapping[str, int] | None = None,
) -> Iterator[Lab]:
    made = Lab(folder, names, python, environment)
    for name, ahead_ns in (clocks_ns or {}).items():
        made.machines[name].clock_ns = ahead_ns
    try:
        made.start()
        yield made
    finally:
        made.end()


class Machine:
    _init: subprocess.Popen[bytes] | None = None

    def __init__(self, lab: Lab, name: str, number: int, python: Path) -> None:
        self.lab, self.name = lab, name
        self.folder = lab.folder / name
        self.cache = self.folder / "cache"
        self._number = number
        self.address = f"10.99.{number}.2"
        self.more = ""
        self.clock_ns = 0
        """How far its CLOCK_MONOTONIC is ahead."""
        self.namespace = f"lab-{lab.tag}-{number}"
        self.link = f"{lab.tag}{number}"
        self.cache.mkdir(parents=True)
        (self.cache / "python").symlink_to(python)
        _call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / "host_key"))
        (self.folder / "passwd").write_text(
            f"root:x:0:0:root:{self.folder}:/bin/sh\nsshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n"
            "nobody:x:65534:65534::/:/usr/sbin/nologin\n"
        )
        (self.folder / "shadow").write_text("root:*:19000:0:99999:7:::\n")
        (self.folder / "group").write_text("root:x:0:\nnogroup:x:65534:\n")

    def connect(self) -> None:
        """The link to where runs are started."""
        lab, number = self.lab, self._number
        _call("ip", "netns", "add", self.namespace)
        _call(
            "ip",
            "-n",
            lab.namespace,
            "link",
            "add",
            self.link,
            "type",
            "veth",
            "peer",
            "eth0",
            "netns",
            self.namespace,
        )
        for namespace, link, last in ((lab.namespace, self.link, 1), (self.namespace, "eth0", 2)):
            _call("ip", "-n", namespace, "addr", "add", f"10.99.{number}.{last}/30", "dev", link)
            _call("ip", "-n", namespace, "link", "set", link, "up")
        _call("ip", "-n", self.namespace, "link", "set", "lo", "up")

    @property
    def ssh_config(self) -> str:
        return SSH_CONFIG.format(name=self.name, address=self.address, lab=self.lab.folder)

    def start(self) -> None:
        environment = " ".join(f"{key}={value}" for key, value in self.lab.environment.items())
        config = SSHD_CONFIG.format(
            address=self.address, folder=self.folder, keys=self.lab.folder / "key.pub", more=self.more,
            environment=environment or "NOTHING=",
        )  # fmt: skip
        (self.folder / "sshd_config").write_text(config)
        init = INIT.format(folder=self.folder, sshd=sshd())
        with (self.folder / "sshd.log").open("wb") as log:
            self._init = subprocess.Popen(
                [
                    *("nsenter", f"--net=/run/netns/{self.namespace}"),
                    *self._other_clock(),
                    *("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", init),
                ],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        deadline = time.monotonic() + START_LIMIT_S
        while "Server listening" not in (told := (self.folder / "sshd.log").read_text()):
            assert time.monotonic() < deadline and self._init.poll() is None, told
            time.sleep(0.05)

    def _other_clock(self) -> list[str]:
        """A time namespace for what is started behind it (time_namespaces(7)); unshare(1) takes whole seconds only."""
        seconds, ns = divmod(self.clock_ns, 10**9)
        return [sys.executable, "-c", OTHER_CLOCK, str(seconds), str(ns)] if self.clock_ns else []

    def mount(self, *words: str) -> None:
        """Mount something in it."""
        _call("nsenter", f"--mount=/proc/{self._first().pid}/ns/mnt", "mount", *words)

    @property
    def init(self) -> int:
        """The pid of its first process, by which others enter it."""
        return self._first().pid

    def processes(self) -> list[psutil.Process]:
        """All but the sshd that listens."""
        return self._first().children(recursive=True)

    def left_behind(self) -> list[str]:
        """What trials would have left in it."""
        run = Path(f"/proc/{self._first().pid}/root/run")
        return [str(path) for path in run.rglob("*") if not path.is_dir() and path.name != ".lock"]

    def _first(self) -> psutil.Process:
        """The sshd that listens."""
        assert self._init is not None
        (first,) = psutil.Process(self._init.pid).children()
        return first

    def worker(self) -> psutil.Process:
        """The process that executes."""
        return next(p for p in self.processes() if "sys.stdin.buffer" in " ".join(p.cmdline()) and "-I" in p.cmdline())

    def unplug(self) -> None:
        _call("ip", "-n", self.lab.namespace, "link", "set", self.link, "down")

    def plug(self) -> None:
        _call("ip", "-n", self.lab.namespace, "link", "set", self.link, "up")

    def stop(self) -> None:
        if self._init is not None and self._init.poll() is None:
            self._first().kill()  # and with it all others of its namespace
            self._init.wait(30)

    def end(self) -> None:
        self.stop()
        if Path("/run/netns", self.namespace).exists():
            _call("ip", "netns", "del", self.namespace)


def sshd() -> str:
    """Of a root file system of its own, with its own libraries: nothing is installed."""
    root = next(iter(debian.roots(SUITE, PACKAGE)[-1:]), None) or debian.build(SUITE, PACKAGE, (PACKAGE,))
    loader = next((root.path / "usr").glob("lib*/ld-linux*"))
    libraries = next((root.path / "usr/lib").glob("*-linux-gnu"))
    return f"{loader} --library-path {libraries} {root.path}/usr/sbin/sshd"


def _call(*words: str) -> None:
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, timeout=30)
