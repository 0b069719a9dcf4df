"""Confinement of foreign programs: they run as a user without rights, in PID and mount namespaces of their own.

These programs are servers, the programs that come with servers, and builds. They run as the user and the group nobody,
with few capabilities or none, and can never get more (no_new_privs, prctl(2)). Each sees a read-only root file system,
even if it is the machine's own. In it, `/home`, `/root`, `/tmp`, `/var/tmp`, `/mnt`, `/run` and `/dev` are empty except
for the files that the program needs. Only the folders that it may write are mounted writable. In `/proc` it sees the
processes of its host. The engine's `enter` does this for one program. All programs of a host end with the host's PID
namespace.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from dnsrig import cached, paths
from dnsrig.errors import DnsrigError

USER = 65534
"""nobody, and nogroup: the user and the group that every Linux has for programs without rights."""
NET_BIND_SERVICE, NET_ADMIN = "CAP_NET_BIND_SERVICE", "CAP_NET_ADMIN"
"""Capabilities that servers keep (capabilities(7)): to listen on port 53; to have larger socket buffers than the
machine's limit (SO_RCVBUFFORCE and SO_SNDBUFFORCE, socket(7))."""
_NUMBERS = {10: NET_BIND_SERVICE, 12: NET_ADMIN}
"""linux/capability.h."""
MACHINE = Path("/")
"""The machine's own root file system."""
FRESH = tuple(map(Path, ("/run", "/mnt", "/tmp", "/var/tmp", "/home", "/root")))
"""Folders that `enter` makes empty for every program."""
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "HOME": "/root",
}
"""Environment variables of programs on hosts."""
HOME = "/tmp"
"""The home of that user."""
END_LIMIT_S = 2.0
READ_MOST_BYTES = 1 << 16
CLONE_NEWPID = 0x20000000
# A process that ignores SIGCHLD has no children to wait for: the kernel removes them when they end (sigaction(2)).
_FIRST = ("sh", "-c", "trap '' CHLD; exec cat")
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class BindMount:
    """A folder of the machine, and its path for the program: below /mnt or /run of its root file system."""

    machine: Path
    seen: str
    read_only: bool = False

    def arguments(self) -> list[str]:
        """Arguments of `enter`."""
        return ["--bind", f"{self.machine}:{self.seen}{':ro' if self.read_only else ''}"]


@dataclass(frozen=True)
class Confinement:
    """The root file system, the mounts and the capabilities of one program."""

    root: Path
    binds: Sequence[BindMount] = ()
    capabilities: Sequence[str] = ()
    as_root: bool = False
    """For tools that tests and benches take from Debian, such as tcpdump: they only see another root file system."""

    def arguments(self) -> list[str]:
        """Arguments of `enter`."""
        words = ["--root", str(self.root), *(word for bind in self.binds for word in bind.arguments())]
        if self.as_root:
            return words
        return [*words, f"--user={USER}", *(f"--capability={name}" for name in self.capabilities)]

    def give(self) -> None:
        """Change the owner of the folders that the program may write, and of everything in them.

        A folder that already belongs to the user is not changed: a program may have written there.
        """
        for bind in self.binds:
            if not bind.read_only and bind.machine.stat().st_uid != USER:
                own(bind.machine, USER)


def capabilities(mask: int) -> list[str]:
    """The names of a set of capabilities, as /proc writes the set.

    >>> capabilities(0x1400)
    ['CAP_NET_BIND_SERVICE', 'CAP_NET_ADMIN']
    """
    numbers = (number for number in range(mask.bit_length()) if mask >> number & 1)
    return [_NUMBERS.get(number, f"capability {number}") for number in numbers]


def own(folder: Path, user: int) -> None:
    """Make ``folder`` and everything below it ``user``'s, without following links; the folder itself comes last."""
    for _, folders, files, here in os.fwalk(folder):
        for name in (*folders, *files):
            os.chown(name, user, user, dir_fd=here, follow_symlinks=False)
    os.chown(folder, user, user)


@contextlib.contextmanager
def as_user(folder: Path) -> Iterator[Path]:
    """A path to ``folder`` for this thread, which inside accesses files with the rights of the user only.

    It is for folders in which confined programs have written: a link of such a program leads only where the user may
    go. Files that are made inside belong to the user. The user need not have access to the folders above.
    """
    with contextlib.ExitStack() as undoing:
        before = _libc.setfsgid(0), _libc.setfsuid(0)  # inside another, whose user cannot go there
        undoing.callback(_libc.setfsgid, before[0])
        undoing.callback(_libc.setfsuid, before[1])
        handle = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        undoing.callback(os.close, handle)
        _libc.setfsgid(USER)
        _libc.setfsuid(USER)  # setfsuid(2): of this thread, and with it what root may
        yield Path(f"/proc/thread-self/fd/{handle}")


@dataclass
class PidNamespace:
    """A PID namespace, made when it is first entered (pid_namespaces(7)).

    Its first process only waits until its standard input ends, which it does when we end, however we end; then the
    kernel kills all other processes of the namespace. No server is the first process, because the kernel withholds
    signals from that one which it does not handle: a server that calls abort(3) would end by another signal. The first
    process stays root. If it were the servers' user, they could see the machine's files as /proc/1/root.
    """

    _first: subprocess.Popen[bytes] | None = None
    _handle: int = -1
    _making: threading.Lock = field(default_factory=threading.Lock)

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Let the processes that this thread starts be in the namespace. It cannot start threads inside."""
        own_handle = os.open("/proc/thread-self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        try:
            with self._making:
                if self._first is None:
                    self._make(own_handle)
            _succeeded(_libc.setns(self._handle, CLONE_NEWPID))
            try:
                yield
            finally:
                _succeeded(_libc.setns(own_handle, CLONE_NEWPID))
        finally:
            os.close(own_handle)

    def _make(self, own_handle: int) -> None:
        _succeeded(_libc.unshare(CLONE_NEWPID))
        try:
            self._first = subprocess.Popen(
                _FIRST, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
            )
            self._handle = os.open("/proc/thread-self/ns/pid_for_children", os.O_RDONLY | os.O_CLOEXEC)
        finally:
            _succeeded(_libc.setns(own_handle, CLONE_NEWPID))

    def close(self) -> None:
        """Kill all processes in it. Wait for those that were started here before: the namespace ends after them."""
        if self._first is None:
            return
        assert self._first.stdin is not None
        self._first.kill()
        self._first.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._first.wait(END_LIMIT_S)
        os.close(self._handle)
        self._first, self._handle = None, -1


def run(
    command: Sequence[str],
    *,
    confinement: Confinement,
    workdir: str = "/",
    environment: Mapping[str, str],
    output: IO[bytes],
    limit_s: float,
) -> int:
    """Run ``command`` without network until it ends, and end all processes that it leaves behind.

    Returns the command's exit status, negative for a signal. Standard output and error go to ``output``. Raises
    subprocess.TimeoutExpired after ``limit_s``, and DnsrigError if this process is not root.
    """
    if os.geteuid() != 0:
        raise DnsrigError(
            "running a program confined, as builds of servers are, needs root", hint="run it again with sudo"
        )
    words = [str(paths.engine()), "enter", "--no-network", *confinement.arguments(), "--workdir", workdir]
    namespace = PidNamespace()
    try:
        with namespace.inside():
            process = subprocess.Popen(
                [*words, "--", *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                start_new_session=True,
                umask=cached.READABLE,  # of the folders that `enter` makes for the user to go through
            )
        try:
            return process.wait(limit_s)
        finally:
            process.kill()
            process.wait()
    finally:
        namespace.close()


def run_and_read(
    command: Sequence[str],
    *,
    confinement: Confinement,
    workdir: str = "/",
    environment: Mapping[str, str] = ENVIRONMENT,
    limit_s: float,
) -> tuple[int, str]:
    """Run ``command`` as `run` does. Returns its exit status, and the first `READ_MOST_BYTES` of its output."""
    with tempfile.TemporaryFile() as output:
        status = run(
            command,
            confinement=confinement,
            workdir=workdir,
            environment=environment,
            output=output,
            limit_s=limit_s,
        )
        output.seek(0)
        return status, output.read(READ_MOST_BYTES).decode(errors="replace")


def _succeeded(result: int) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
