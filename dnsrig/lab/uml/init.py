"""The first program under the kernel: makes a system out of the machine's files, runs one command, and powers off.

Run by the kernel as ``python -I -S init.py JOB``, JOB being a folder of the machine outside with ``job.json``:
``folders`` (of outside to be seen at the same path: [path, writable]), ``modules`` to load, ``modprobe`` (a program),
``open_files`` (a limit), ``command`` and ``environment``. It imports nothing but Python's own library, as few of it as
it can: all is slow here.

The root file system is the machine's own, read-only, through hostfs. /tmp, /run, /dev/shm are memory of this kernel.
Three consoles lead out: tty1 takes the command's standard output, tty2 its standard error, tty3 is its standard input.
"""

import ctypes
import os
import sys
import termios

MS_RDONLY, MS_NOSUID = 1, 2
RB_POWER_OFF = 0x4321FEDC
JOB_SEEN = "/run/dnsrig-job"
LINKS = {"/dev/fd": "/proc/self/fd", "/dev/stdin": "fd/0", "/dev/stdout": "fd/1", "/dev/stderr": "fd/2"}
"""What devtmpfs leaves to an init, and programs expect."""

libc = ctypes.CDLL(None, use_errno=True)


def mount(kind: str, place: str, options: str = "", flags: int = 0, *, wanted: bool = True) -> None:
    """mount(2) of a file system without a device; ``place`` is made if it can be."""
    os.makedirs(place, exist_ok=True)  # noqa: PTH103 (pathlib alone takes longer to import than all of this)
    if libc.mount(kind.encode(), place.encode(), kind.encode(), flags, options.encode()) != 0 and wanted:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), f"{kind} on {place}")


def write(path: str, text: str) -> None:
    with open(path, "w") as file:  # noqa: PTH123
        file.write(text)


def file_systems() -> None:
    mount("proc", "/proc")
    mount("sysfs", "/sys")
    mount("devtmpfs", "/dev", wanted=False)  # the kernel may have done it
    mount("devpts", "/dev/pts", "mode=600,ptmxmode=666")
    for place in ("/dev/shm", "/tmp"):
        mount("tmpfs", place, "mode=1777", MS_NOSUID)
    mount("tmpfs", "/run", "mode=755", MS_NOSUID)
    mount("cgroup2", "/sys/fs/cgroup")
    write("/sys/fs/cgroup/cgroup.subtree_control", "+cpu +memory +io")
    for path, target in LINKS.items():
        if not os.path.lexists(path):
            os.symlink(target, path)  # noqa: PTH211


def loopback() -> None:
    """The interface lo up, by the ioctl of netdevice(7)."""
    import socket
    import struct
    from fcntl import ioctl

    get_flags, set_flags, up = 0x8913, 0x8914, 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        flags = struct.unpack("16sh14x", ioctl(sock, get_flags, struct.pack("16sh14x", b"lo", 0)))[1]
        ioctl(sock, set_flags, struct.pack("16sh14x", b"lo", flags | up))


def modules(modprobe: str, names: list[str]) -> None:
    """Load ``names``, and let the kernel load what it finds to be missing; every congestion control is for every
    host."""
    write("/proc/sys/kernel/modprobe", modprobe)
    for name in names:
        os.waitpid(os.posix_spawn(modprobe, [modprobe, name], os.environ), 0)
    prefix = "/proc/sys/net/ipv4/tcp_"
    with open(f"{prefix}available_congestion_control") as file:  # noqa: PTH123
        write(f"{prefix}allowed_congestion_control", file.read())


def limits(open_files: int) -> None:
    """Allow the number of open files that outside has: this kernel's own hard limit is 4,096."""
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, open_files))


def console(number: int, flags: int) -> int:
    """A console that passes every byte on as it is."""
    tty = os.open(f"/dev/tty{number}", flags | os.O_NOCTTY)
    mode = termios.tcgetattr(tty)
    mode[0] = mode[1] = mode[3] = 0  # no translation of line ends, no echo, no signals
    termios.tcsetattr(tty, termios.TCSANOW, mode)
    return tty


def run(command: list[str], environment: dict[str, str], streams: tuple[int, int, int]) -> int:
    """Run ``command`` to its end, burying whatever else ends meanwhile: that is the first program's duty."""
    actions = [(os.POSIX_SPAWN_DUP2, stream, number) for number, stream in enumerate(streams)]
    child = os.posix_spawnp(command[0], command, environment, file_actions=actions, setsid=True)
    while True:
        process, status = os.wait()
        if process == child:
            return os.waitstatus_to_exitcode(status)


def main() -> int:
    file_systems()
    mount("hostfs", JOB_SEEN, sys.argv[1])
    import json

    with open(f"{JOB_SEEN}/job.json") as file:  # noqa: PTH123
        job = json.load(file)
    for path, writable in job["folders"]:
        mount("hostfs", path, path, 0 if writable else MS_RDONLY)
    loopback()
    limits(job["open_files"])
    modules(job["modprobe"], job["modules"])
    streams = (console(3, os.O_RDONLY), console(1, os.O_WRONLY), console(2, os.O_WRONLY))
    os.write(streams[1], json.dumps({"event": "booted", "release": os.uname().release}).encode() + b"\n")
    status = run(job["command"], job["environment"], streams)
    for stream in streams[1:]:
        termios.tcdrain(stream)
    return status


if __name__ == "__main__":
    try:
        main()
    except Exception as error:  # a first program that ends is a panic: say why, then go in order
        print(f"dnsrig init: {type(error).__name__}: {error}", flush=True)
    finally:
        os.sync()
        libc.reboot(RB_POWER_OFF)
