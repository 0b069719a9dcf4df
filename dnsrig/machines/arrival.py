"""The first program that runs on another machine. It is sent as source, so it imports only the standard library.

It reports what the machine is, takes what the machine lacks of dnsrig, and then becomes the module that the run names.
Both sides send lines of JSON; the lines of this side begin with `OURS`, because a login may print others first.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import importlib
import io
import json
import os
import select
import shutil
import signal
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

OURS = "dnsrig: "
GONE = "the run is gone"
UNFINISHED = ".unfinished-"
PIECE_BYTES = 1 << 20
LINE_BYTES_MAX = 64 << 20
"""The longest line is a part of a folder, in base64."""
SILENCE_LIMIT_S = 30
"""After this time without a byte, the network counts as gone: sshd may not notice it for hours."""
UNUSED_S = 30 * 86400
"""After this time without use, a part is removed."""


def main() -> None:
    asked = hear()
    cache = cache_of(asked["cache"])
    folder = cache / "python"
    try:
        lacking = [part for part in asked["parts"] if not (folder / part).is_dir()]
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        tell(soabi=sysconfig.get_config_var("SOABI"), root=os.geteuid() == 0, boot=boot, lacking=lacking)
        for part in lacking:
            take(folder, part)
            tell(taken=part)
        used = [folder / part for part in asked["parts"]]
        remove_unused(folder, used)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        why = "the disk is full" if full else f"{error.filename or folder}: {error.strerror}"
        tell(error=why, full=full, folder=str(cache))
        raise SystemExit(1) from None
    become(hear(), cache, used)


def become(asked: dict[str, Any], cache: Path, parts: list[Path]) -> None:
    """Run the module that the run names, from the parts, before anything else that may be installed here."""
    sys.path[:0] = [str(part) for part in parts]
    os.environ["PYTHONPATH"] = os.pathsep.join(map(str, parts))
    os.environ["PYTHONNOUSERSITE"] = "1"
    os.environ["DNSRIG_CACHE"] = str(cache)
    os.environ["DNSRIG_ENGINE"] = str(parts[0] / "bin" / "dnsrig-engine")
    importlib.import_module(asked["becomes"]).main(asked, lambda: tell(ready=True))


def take(folder: Path, part: str) -> None:
    """Take a part: names, sizes and modes of its files, then their bytes. It appears whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for leftover in folder.glob(f"{UNFINISHED}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=UNFINISHED) as temporary:
            made = Path(temporary, "made")
            files = {}
            for name, size_bytes, is_program in hear()["files"]:
                files[name] = made / name
                files[name].parent.mkdir(parents=True, exist_ok=True)
                with files[name].open("wb") as file:
                    _copy(size_bytes, file)
                files[name].chmod(0o755 if is_program else 0o644)
            if digest(files) != part:
                tell(error="what was sent arrived damaged", full=False, folder="")
                raise SystemExit(1)
            if not (folder / part).exists():
                made.rename(folder / part)


def digest(files: Mapping[str, Path]) -> str:
    """Hash a part: the names of its files, their bytes, and which of them are programs."""
    whole = hashlib.sha256()
    for name in sorted(files):
        with files[name].open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        whole.update(json.dumps([name, content, is_program(files[name])]).encode())
    return whole.hexdigest()[:32]


def is_program(path: Path) -> bool:
    return bool(path.stat().st_mode & 0o100)


def remove_unused(folder: Path, used: list[Path]) -> None:
    for part in used:
        os.utime(part)
    for other in folder.iterdir():
        if other.is_dir() and other not in used and time.time() - other.stat().st_mtime > UNUSED_S:
            shutil.rmtree(other, ignore_errors=True)


def cache_of(chosen: str) -> Path:
    """Find the cache as `dnsrig.paths.cache` does, which is not here yet."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(chosen or os.environ.get("DNSRIG_CACHE") or Path(base, "dnsrig"))


def hear() -> dict[str, Any]:
    with limited():
        line = sys.stdin.buffer.readline()
    if not line:
        raise SystemExit(GONE)
    heard: dict[str, Any] = json.loads(line)
    return heard


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """End this program if the run is silent for too long."""
    signal.signal(signal.SIGALRM, lambda number, frame: sys.exit(GONE))
    signal.alarm(SILENCE_LIMIT_S)
    try:
        yield
    finally:
        signal.alarm(0)


def lines() -> Iterator[bytes]:
    """Yield the lines of standard input until it ends or is silent for too long. Dots between them are signs of
    life."""
    pending = bytearray()
    while select.select([0], [], [], SILENCE_LIMIT_S)[0] and (data := os.read(0, PIECE_BYTES)):
        pending += data
        if b"\n" in data:  # else a part of a folder is arriving, which is not searched again and again
            *whole, rest = bytes(pending).split(b"\n")
            pending = bytearray(rest)
            yield from filter(None, (line.lstrip(b".") for line in whole))
        if len(pending) > LINE_BYTES_MAX:
            return


def tell(**what: Any) -> None:
    print(OURS + json.dumps(what), flush=True)


def _copy(size_bytes: int, file: Any) -> None:
    while size_bytes:
        with limited():
            data = cast(io.BufferedReader, sys.stdin.buffer).read1(min(size_bytes, PIECE_BYTES))
        if not data:
            raise SystemExit(GONE)
        file.write(data)
        size_bytes -= len(data)


if __name__ == "__main__":
    main()
