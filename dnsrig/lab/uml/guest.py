"""One command under the kernel: the folder that describes the job, the kernel's process, its consoles, its end.

The kernel runs in a PID namespace of its own, so that it and every process inside end together: a program inside is a
traced process of this machine, and left alone it would go on as one.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import resource
import shlex
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from dnsrig.errors import DnsrigError
from dnsrig.lab.process import on_cpu
from dnsrig.lab.uml.init import JOB_SEEN
from dnsrig.lab.uml.kernel import Kernel

MEMORY_MB = 2048
"""What its kernel believes to have, as a file in memory that grows as it is used."""
MEMORY_MB_MIN = 512
MEMORY_SHARE = 0.5
"""The largest share of the free memory outside that it gets."""
BOOT_LIMIT_S = 120.0
STOP_LIMIT_S = 45.0
"""How long what runs inside may take to end in order; less than the runner waits for a trial."""
OPEN_FILES_MAX = 1 << 20
"""fs.nr_open of a kernel that nobody told otherwise (proc_sys_fs(5))."""
READ_LIMIT_S = 5.0
CONSOLE_LINES = 200
"""Kept of the kernel's own console and of standard error."""
TELLING = ("dnsrig init:", "Kernel panic", "Out of memory")
HIDDEN = tuple(map(Path, ("/tmp", "/run", "/dev", "/proc", "/sys")))
"""Folders of which inside has its own."""
PASSED = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "XDG_CACHE_HOME", "VIRTUAL_ENV")
OWN_ENVIRONMENT = {"TERM": "dumb", "PYTHONDONTWRITEBYTECODE": "1"}
"""A console is a terminal, but nobody looks at it: no colours."""
INIT = Path(__file__).with_name("init.py")

ALWAYS = ("ipv6", "tun")
"""Modules that nothing asks for in a way that would load them: settings and device nodes that are expected to be
there."""

MODPROBE = """#!/bin/sh
# kmod of the kernel's suite, with the libraries of that suite.
exec {root}/lib64/ld-linux-x86-64.so.2 --argv0 modprobe --library-path {root}/usr/lib/x86_64-linux-gnu \\
  {root}/usr/bin/kmod -d {job} "$@"
"""


@dataclass
class Guest:
    """A running kernel. ``job`` is a folder of its own in memory, which the caller removes."""

    kernel: Kernel
    job: Path
    popen: subprocess.Popen[str]
    events: queue.Queue[dict[str, Any] | None] = field(default_factory=queue.Queue)
    """Lines of the command's standard output that are JSON objects; None when it has ended."""
    errors: deque[str] = field(default_factory=lambda: deque(maxlen=CONSOLE_LINES))
    console: deque[str] = field(default_factory=lambda: deque(maxlen=CONSOLE_LINES))
    _readers: list[threading.Thread] = field(default_factory=list)

    @classmethod
    def start(
        cls,
        kernel: Kernel,
        job: Path,
        command: list[str],
        *,
        writable: list[Path],
        seen: list[Path],
        modules: list[str],
        cpu: int,
        holding: Sequence[int] = (),
        devices: Sequence[str] = (),
    ) -> Guest:
        """Boot ``kernel`` on CPU ``cpu`` of this machine and run ``command`` in it.

        ``writable``: folders that it may change; ``seen``: files and folders that it must see. Everything else of this
        machine is there to be read, but for what lies below `HIDDEN`. ``modules`` are loaded before the start.
        The file descriptors ``holding`` stay open as long as the kernel runs, and so do locks on them. ``devices`` are
        those that it has besides its consoles, as its command line wants them, e.g. ``vec0:transport=tap,ifname=tap0``.
        """
        memory_mb = memory(job)
        _describe(kernel, job, command, folders(writable, [*seen, kernel.root]), modules)
        reader, writer = os.pipe()
        with on_cpu(cpu):  # the kernel and its processes take turns, and never run at once
            popen = subprocess.Popen(
                command_line(kernel, job, memory_mb, devices, console=writer),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[writer, *holding],
                env={"PATH": os.environ.get("PATH", os.defpath), "TMPDIR": str(job), "HOME": str(job)},
                start_new_session=True,
                text=True,
                errors="replace",
            )
        os.close(writer)
        machine = cls(kernel, job, popen)
        assert popen.stdout is not None and popen.stderr is not None
        machine._read(machine._take_events, popen.stdout)
        machine._read(lambda stream: machine.errors.extend(map(str.rstrip, stream)), popen.stderr)
        machine._read(
            lambda stream: machine.console.extend(map(str.rstrip, stream)), os.fdopen(reader, errors="replace")
        )
        return machine

    def wait_until_booted(self) -> str:
        """The release of the kernel as it says itself; raises if it does not come up in time."""
        deadline = time.monotonic() + BOOT_LIMIT_S
        with contextlib.suppress(queue.Empty):
            while (event := self.events.get(timeout=max(0.0, deadline - time.monotonic()))) is not None:
                if event["event"] == "booted":
                    return str(event["release"])
        self.stop(limit_s=0)
        raise DnsrigError(
            f"the kernel {self.kernel.release} did not start in User-mode Linux: {self.last_words()}",
            hint='does this machine allow ptrace? kernel = "running" does not need it',
        )

    def stop(self, *, limit_s: float = STOP_LIMIT_S) -> None:
        """Close the command's standard input, wait for its end, and kill what is left after ``limit_s``."""
        if self.popen.stdin is not None:
            with contextlib.suppress(OSError):
                self.popen.stdin.close()
        try:
            self.popen.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.popen.kill()  # `unshare --kill-child` takes the kernel along, and that its whole namespace
            self.popen.wait()
        for reader in self._readers:
            reader.join(READ_LIMIT_S)

    def last_words(self) -> str:
        """Find the line of the console that best explains its end."""
        told = [line.strip() for line in self.console if any(word in line for word in TELLING)]
        rest = [line.strip() for line in self.console if line.strip()]
        return (told or rest or ["its console says nothing"])[-1]

    def _read(self, take: Callable[[IO[str]], None], stream: IO[str]) -> None:
        self._readers.append(threading.Thread(target=take, args=(stream,), daemon=True))
        self._readers[-1].start()

    def _take_events(self, stream: IO[str]) -> None:
        for line in stream:
            with contextlib.suppress(ValueError):
                event = json.loads(line)
                if isinstance(event, dict) and "event" in event:
                    self.events.put(event)
        self.events.put(None)


def command_line(kernel: Kernel, job: Path, memory_mb: int, devices: Sequence[str], *, console: int) -> list[str]:
    """How the kernel is started. Consoles: its own goes to the descriptor ``console``; 1 to 3 are the command's."""
    return [
        *("unshare", "--pid", "--fork", "--kill-child=KILL", "--", str(kernel.program)),
        f"mem={memory_mb}M",
        f"umid={job.name}",
        f"uml_dir={job}/",
        *("root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro"),
        *("con=null", f"con0=null,fd:{console}", "con1=null,fd:1", "con2=null,fd:2", "con3=fd:0,null", "ssl=null"),
        *devices,
        f"init={sys.executable}",
        *("--", "-I", "-S", str(INIT), str(job)),
    ]


def memory(folder: Path) -> int:
    """How many MB it can be given, where its memory is a file in ``folder``."""
    wanted_mb = min(MEMORY_MB, int(MEMORY_SHARE * min(_free_mb(folder), _available_mb())))
    if wanted_mb < MEMORY_MB_MIN:
        raise DnsrigError(
            f"too little memory for kernel uml: it needs {MEMORY_MB_MIN} MB in {folder.parent}, at most {MEMORY_SHARE:.0%} of the free memory",
            hint="end other programs, or mount a larger tmpfs there",
        )
    return wanted_mb


def folders(writable: list[Path], seen: list[Path]) -> list[tuple[str, bool]]:
    """What must be mounted inside, outer ones first: (path, whether it is writable)."""
    found = {path.resolve(): True for path in writable}
    for path in (one.resolve() for one in seen):
        if any(path.is_relative_to(hidden) for hidden in HIDDEN):
            found.setdefault(path if path.is_dir() else path.parent, False)
    return sorted((str(path), may_write) for path, may_write in found.items())


def _describe(
    kernel: Kernel, job: Path, command: list[str], shared: list[tuple[str, bool]], modules: list[str]
) -> None:
    """Write ``job.json`` and the program modprobe, both as `init` wants them."""
    (job / "lib").mkdir()
    (job / "lib/modules").symlink_to(kernel.modules)
    modprobe = job / "modprobe"
    modprobe.write_text(MODPROBE.format(root=shlex.quote(str(kernel.root)), job=JOB_SEEN))
    modprobe.chmod(0o755)
    wanted = {
        name: value for name, value in os.environ.items() if name in PASSED or name.startswith(("DNSRIG_", "PYTHON"))
    }
    description = {
        "folders": shared,
        "modules": [*ALWAYS, *modules],
        "modprobe": f"{JOB_SEEN}/{modprobe.name}",
        "open_files": min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], OPEN_FILES_MAX),
        "command": command,
        "environment": {**wanted, **OWN_ENVIRONMENT},
    }
    (job / "job.json").write_text(json.dumps(description))


def _free_mb(folder: Path) -> int:
    room = os.statvfs(folder)
    return room.f_bavail * room.f_frsize >> 20


def _available_mb() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) >> 10
    return 0
