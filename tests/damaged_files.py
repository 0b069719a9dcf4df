"""Runs of which files are damaged in every way, and what a user does with such a run.

A case is a file of a run and a damage. Some damages happen on disks and in copies. With others, somebody wants a
reader to hang, to take all memory, or to leave the run.
"""

from __future__ import annotations

import contextlib
import ctypes
import gzip
import itertools
import json
import os
import random
import re
import shutil
import socket
import stat
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import load_data
import polars as pl
import synthetic
import transfer_data

from dnsrig import checksums
from dnsrig.rundir import TrialRecord, read_json, write_json
from dnsrig.runs.trial import Trial

OF_RUN = ("bisect.json", "notes.json", "findings.json", "summary.parquet", "report.html", ".lock", "export")
ALONE = ("manifest.json", "trials", "trials/v00")
"""Files and folders of a run that have all the rest in them: they are damaged alone."""
OF_EACH_TRIAL = (
    "trial.json", ".", "log-secondary.arrow", "events-secondary.arrow", "profile-secondary.arrow", "statistics.arrow",
    "queries.arrow", "servers", "servers/secondary", "servers/secondary/server.log",
    "servers/secondary/server-before.log.gz", "servers/secondary/named.conf", "servers/secondary/defaults.txt",
    "instruments/probe.stderr",
)  # fmt: skip
ROWS = {
    "zones.arrow": "cold start",
    "samples.arrow": "cold start",
    "profile-secondary.folded": "cold start",
    "latency.hlog": "load",
    "intervals.arrow": "load",
    "clients.arrow": "load",
    "transfers.arrow": "transfer",
    "connections.arrow": "transfer",
    "tcp-info.arrow": "transfer",
    "sockets.arrow": "transfer",
    "propagation.arrow": "transfer",
    "changes.arrow": "load",
    "followed.arrow": "load",
}
"""Rows, latencies and profiles that are looked at -> the run that has them."""
OPENED_OR_CHANGED = 0x2 | 0x4 | 0x20 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800
"""IN_MODIFY, IN_ATTRIB, IN_OPEN, IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE, IN_DELETE_SELF, IN_MOVE_SELF."""
LARGE_BYTES = 1 << 30
NESTED = 200_000


class Watch:
    """Notices what is opened or changed below a folder (inotify(7))."""

    def __init__(self, folder: Path) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._handle = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        for each in [folder, *(path for path in folder.rglob("*") if path.is_dir() and not path.is_symlink())]:
            self._libc.inotify_add_watch(self._handle, bytes(each), OPENED_OR_CHANGED)

    def seen(self) -> set[str]:
        """Names since it was last asked."""
        names = set()
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._handle, 1 << 16):
                while data:
                    _, mask, _, length = struct.unpack_from("iIII", data)
                    names.add(f"{data[16 : 16 + length].rstrip(bytes(1)).decode()} ({mask:#x})")
                    data = data[16 + length :]
        return names

    def close(self) -> None:
        os.close(self._handle)


def build(folder: Path, trials: int) -> dict[str, Path]:
    """A run of ``trials`` trials for each kind of rows; the files of each are recorded as a trial does at its end."""
    one: dict[str, Any] = {"servers": ["bind@system"], "repeats": trials}
    made = {
        "cold start": synthetic.build(
            folder / "synthetic/a", synthetic.Plan(**one, zones=[40], stacks={"main;read": 7, "main": 2})
        ),
        "load": load_data.build(folder / "synthetic/b", load_data.LoadPlan(**one, seconds=3)),
        "transfer": transfer_data.build(
            folder / "synthetic/c",
            transfer_data.TransferPlan(
                **(one | {"servers": ["nsd@system"]}), zones=40, policies=["one"], transports=["tcp"], tcp_info_s=1.0
            ),
        ),
    }
    for kind, run in made.items():
        for trial in sorted(run.glob("trials/*/*")):
            _complete(trial, [name for name, of in ROWS.items() if of == kind])
        (run / "notes.json").write_text('{"schema_version": 1, "note": "as it was", "tags": [], "baseline": false}')
    return made


def _complete(trial: Path, wanted: list[str]) -> None:
    """Add the files that a trial can have and the made-up one lacks, and record all of them."""
    record = read_json(trial / "trial.json", TrialRecord)
    for name in (name for name in wanted if not (trial / name).exists()):
        few_rows(trial, name, getattr(Trial(trial, record), name.removesuffix(".arrow")).schema)
    for name in (name for name in OF_EACH_TRIAL if name.endswith(".arrow")):
        few_rows(trial, name, {"kind": pl.String, "time_ns": pl.Int64, "realtime_ns": pl.Int64, "stack": pl.UInt32})
    server = trial / "servers/secondary"
    server.mkdir(parents=True, exist_ok=True)
    (trial / "instruments").mkdir(exist_ok=True)
    (trial / "instruments/probe.stderr").write_text("a line\n")
    (server / "server.log").write_text("a line\n" * 100)
    (server / "server-before.log.gz").write_bytes(gzip.compress(b"a line\n" * 100))
    (server / "named.conf").write_text("options { transfers-in 10; };\n")
    (server / "defaults.txt").write_text("options { transfers-in 10; };\n")
    record.files = checksums.of_trial(trial)
    write_json(trial / "trial.json", record)


def few_rows(trial: Path, name: str, schema: Any) -> None:
    """A file of rows with nothing to tell, in the columns that are read from it."""
    told = {
        column: [False if dtype == pl.Boolean else "x" if dtype == pl.String else 1] * 3
        for column, dtype in schema.items()
    }
    pl.DataFrame(told, schema=schema).write_ipc_stream(trial / name)


Damage = Callable[[Path, random.Random, Path], None]
"""Changes a file; what lies outside of the run is in the folder that comes last."""


def cut(path: Path, rng: random.Random, outside: Path) -> None:
    data = _bytes(path)
    _replace(path, data[: rng.randrange(len(data))])


def overwritten(path: Path, rng: random.Random, outside: Path) -> None:
    data = _bytes(path)
    start = rng.randrange(len(data))
    _replace(path, data[:start] + rng.randbytes(rng.randint(1, 400)) + data[start:][400:])


def empty(path: Path, rng: random.Random, outside: Path) -> None:
    _replace(path, b"")


def values(path: Path, rng: random.Random, outside: Path) -> None:
    """Some values replaced by impossible ones; the form stays."""
    data = _bytes(path)
    _replace(path, _odd_json(data, rng) if data[:1] == b"{" else _odd_words(data, rng))


ODD = [
    "1e999",
    "NaN",
    "-1",
    "9" * 400,
    "9" * 5000,
    str(1 << 63),
    '"\\ud800"',
    "null",
    "[]",
    "{}",
    '"../../../etc"',
    "true",
]
ODD_NAMES = ['"x"', '"\\ud800"', '"../../../etc"', '""']


def _odd_json(data: bytes, rng: random.Random) -> bytes:
    """One to five values of a document."""
    places = [found.span(1) for found in re.finditer(rb'[:\[,{]\s*("[^"]*"|-?[0-9.e+]+|true|false|null)', data)]
    for start, end in sorted(rng.sample(places, min(len(places), rng.randint(1, 5))), reverse=True):
        is_name = data[end:].lstrip().startswith(b":")
        data = data[:start] + rng.choice(ODD_NAMES if is_name else ODD).encode() + data[end:]
    return data


def _odd_words(data: bytes, rng: random.Random) -> bytes:
    """One to five aligned words of four or eight bytes: lengths and offsets."""
    found = bytearray(data)
    for _ in range(rng.randint(1, 5)):
        size = rng.choice([4, 8])
        at = rng.randrange(max(1, len(found) // size)) * size
        word = rng.choice([0, 1, -1, 1 << (8 * size - 2), 1 << (4 * size), rng.randrange(1 << 16)])
        found[at : at + size] = word.to_bytes(size, "little", signed=True)
    return bytes(found[: len(data)])


def deep(path: Path, rng: random.Random, outside: Path) -> None:
    """Nested deeply, as the whole file or as one value of it."""
    nested = b"[" * NESTED + b"]" * NESTED if rng.random() < 0.7 else b'{"a":' * NESTED + b"1" + b"}" * NESTED
    data = _bytes(path)
    start = data.find(b"{") + 1
    _replace(
        path, nested if not start or rng.random() < 0.5 else data[:start] + b'"x": ' + nested + b"," + data[start:]
    )


def large(path: Path, rng: random.Random, outside: Path) -> None:
    """A gigabyte that takes no space on the disk; half of them begin as the file did."""
    data = _bytes(path) if rng.random() < 0.5 else b""
    _replace(path, data)
    os.truncate(path, LARGE_BYTES)


def link(path: Path, rng: random.Random, outside: Path) -> None:
    """Leads out of the run, to what was there."""
    _moved(path, outside)
    path.symlink_to(outside / _name(path))


def lost_link(path: Path, rng: random.Random, outside: Path) -> None:
    """Leads out of the run to nothing, or to itself."""
    _remove(path)
    path.symlink_to(outside / _name(path) if rng.random() < 0.7 else path.name)


def fifo(path: Path, rng: random.Random, outside: Path) -> None:
    _remove(path)
    os.mkfifo(path)


def special(path: Path, rng: random.Random, outside: Path) -> None:
    """A folder, a socket, or, as root, a device without an end (/dev/zero)."""
    _remove(path)
    which = rng.choice(["folder", "socket", "device"])
    if which == "socket":
        folder = os.open(path.parent, os.O_PATH)
        with socket.socket(socket.AF_UNIX) as found:
            found.bind(f"/proc/self/fd/{folder}/{path.name}")
        os.close(folder)
        return
    if which == "device":
        try:
            os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))
            return
        except PermissionError:
            pass
    path.mkdir()


DAMAGES: dict[str, Damage] = {
    each.__name__: each for each in (cut, overwritten, empty, values, deep, large, link, lost_link, fifo, special)
}
OF_FOLDERS = ("link", "lost_link", "fifo", "special")
"""What can become of a folder."""


@dataclass(frozen=True)
class Case:
    file: str
    """Below the run, or below a trial of it."""
    damage: str
    seed: int

    def apply(self, run: Path, trial: Path, outside: Path) -> None:
        path = run / self.file if self.file in (*OF_RUN, *ALONE) else trial / self.file
        outside.mkdir()
        DAMAGES[self.damage](Path(os.path.normpath(path)), random.Random(self.seed), outside)


@dataclass(frozen=True)
class Damaged:
    """A run and the cases in it, by number: the first trials have one each."""

    kind: str
    cases: list[Case]

    def has_room(self, case: Case, trials: int) -> bool:
        files = [each.file for each in self.cases]
        if case.file in ALONE or files[0] in ALONE:
            return False
        if case.file in OF_RUN:
            return case.file not in files
        return sum(file not in OF_RUN for file in files) < trials

    def make(self, whole: Path, run: Path, outside: Path) -> None:
        """At ``run``, from the one that is ``whole``."""
        shutil.copytree(whole, run)
        outside.mkdir()
        of_trials = [case for case in self.cases if case.file not in (*OF_RUN, *ALONE)]
        trials = dict(zip(of_trials, sorted(run.glob("trials/*/*"))))
        for number, case in enumerate(self.cases):
            if case.seed % 3 == 0 and case in trials and case.file != "trial.json":
                _forget(trials[case] / "trial.json")
            case.apply(run, trials.get(case, run), outside / str(number))


def damaged(seed: int, number: int, trials: int) -> list[Damaged]:
    """Runs of ``trials`` trials that have ``number`` cases together: each file with each damage in turn, mixed. A trial
    has at most one damaged file, so that no damage hides another."""
    files = [*OF_RUN, *ALONE, *OF_EACH_TRIAL, *ROWS]
    pairs = [
        (file, damage)
        for file in files
        for damage in DAMAGES
        if damage in OF_FOLDERS or file not in (".", "export", "trials", "trials/v00", "servers", "servers/secondary")
    ]
    rng = random.Random(seed)
    rng.shuffle(pairs)
    cases = [Case(*pair, rng.randrange(1 << 40)) for pair in itertools.islice(itertools.cycle(pairs), number)]
    runs: list[Damaged] = []
    for case in cases:
        kind = ROWS.get(case.file) or rng.choice(["cold start", "load", "transfer"])
        fitting = (run for run in runs if run.kind == kind and run.has_room(case, trials))
        if found := next(fitting, None):
            found.cases.append(case)
        else:
            runs.append(Damaged(kind, [case]))
    return runs


def _name(path: Path) -> str:
    return path.name or "whole"


def _bytes(path: Path) -> bytes:
    """The content of a file; a few lines if the run does not have it yet."""
    return path.read_bytes() if path.exists() else b'{"schema_version": 1, "findings": []}\n' * 3


def _replace(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def _moved(path: Path, outside: Path) -> None:
    if path.exists():
        path.rename(outside / _name(path))
    else:
        (outside / _name(path)).write_bytes(_bytes(path))


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _forget(path: Path) -> None:
    """Remove the checksums: earlier versions recorded none."""
    record = json.loads(path.read_bytes())
    record["files"] = {}
    path.write_text(json.dumps(record))
