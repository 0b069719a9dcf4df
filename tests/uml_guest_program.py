"""What runs in the guest of `uml_guest.py`: python -I -S uml_guest_program.py ADDRESS/LENGTH ENGINE PORT.

It has `ENGINE clock serve` listen at the address. For each line of standard input, a number, it shifts CLOCK_REALTIME
by so many nanoseconds, and tells its clocks on standard output. It ends with its standard input. It imports little: all
is slow there.
"""

import ctypes
import json
import os
import signal
import sys
import time

INTERFACE = "vec0"
ADJ_SETOFFSET, ADJ_NANO = 0x0100, 0x2000
NS = 10**9


class Timex(ctypes.Structure):
    """``struct timex`` of adjtimex(2) up to ``time``, and room for the rest of it."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("between", ctypes.c_long * 8),
        ("seconds", ctypes.c_long),
        ("nanoseconds", ctypes.c_long),
        ("rest", ctypes.c_byte * 512),
    )


def shift(by_ns: int) -> None:
    """Set CLOCK_REALTIME to what it shows and ``by_ns`` more. The kernel adds, so the shift is exact."""
    seconds, nanoseconds = divmod(by_ns, NS)
    change = Timex(modes=ADJ_SETOFFSET | ADJ_NANO, seconds=seconds, nanoseconds=nanoseconds)
    if ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(change)) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), "adjtimex")


def start(*words: str) -> int:
    return os.posix_spawnp(words[0], words, os.environ)


def ip(*words: str) -> None:
    _, status = os.waitpid(start("ip", *words), 0)
    if status != 0:
        raise SystemExit(f"ip {' '.join(words)} failed")


def main(address: str, engine: str, port: str) -> None:
    ip("address", "add", address, "dev", INTERFACE)
    ip("link", "set", INTERFACE, "up")
    serving = start(engine, "clock", "serve", f"{address.partition('/')[0]}:{port}", "--json")
    with open("/proc/sys/kernel/random/boot_id") as file:  # noqa: PTH123 (pathlib takes long to import)
        boot_id = file.read().strip()
    for line in sys.stdin:
        if by_ns := int(line):
            shift(by_ns)
        told = {"monotonic_ns": time.monotonic_ns(), "realtime_ns": time.time_ns(), "boot_id": boot_id}
        print(json.dumps({"event": "clocks", **told}), flush=True)
    os.kill(serving, signal.SIGTERM)
    os.waitpid(serving, 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
