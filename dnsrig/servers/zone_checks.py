"""What servers think of the user's own zones before a run: each server's own checker reads the copies of the zones,
confined as servers are.

Only the first `ZONES_MOST` zones of a dataset are checked, and no file above `FILE_BYTES_MOST`: a checker loads a whole
zone. What a checker said is kept in the cache under the dataset and the server's version.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dnsrig import cached, confinement, datasets, paths
from dnsrig.confinement import MACHINE, BindMount, Confinement
from dnsrig.rundir import DatasetSpec, ServerSource
from dnsrig.servers import driver, sources
from dnsrig.servers.placement import Zone
from dnsrig.text import visible

ZONES_MOST = 100
FILE_BYTES_MOST = 64 << 20
LIMIT_S = 60.0
"""Limit for one zone."""
SEEN_DATASET, SEEN_FOLDER = "/mnt/dataset", "/mnt/check"
VERSION = 1
"""Raised when checkers are called in another way: what they said before does not count."""
ERROR = re.compile(r"error|fail|reject|invalid|not ok|unknown|bad|duplicate", re.IGNORECASE)


@dataclass(frozen=True)
class Refusal:
    """What a server has against a zone."""

    zone: str
    reason: str
    """The line of the checker with the error."""
    line: int | None
    """Number of the line in the copy of the zone; None: the checker named none."""


def refusals(source: ServerSource, dataset: DatasetSpec) -> list[Refusal] | None:
    """What the server has against the zones. None: it has no checker, or its checker cannot run here."""
    folder = datasets.folder(dataset.key)
    zones = list(_checked(folder))
    if not driver(source.kind).zone_check(zones, SEEN_DATASET, SEEN_FOLDER).commands or os.geteuid() != 0:
        return None
    kept = paths.cache() / "zone-checks" / f"{dataset.key}-{_identity(source)}.json"
    with cached.locked(kept.parent):
        if not kept.exists():
            _keep(kept, source, folder, zones)
    return [Refusal(*each) for each in json.loads(kept.read_text())] if kept.exists() else None


def _keep(kept: Path, source: ServerSource, folder: Path, zones: Sequence[Zone]) -> None:
    """Check the zones, and write what was found to ``kept``, unless the checker could not decide."""
    with cached.workshop(kept.parent) as temporary, contextlib.suppress(_Undecided):
        found = _run(source, folder, zones, temporary)
        if found is not None:
            part = temporary / kept.name
            part.write_text(json.dumps([[each.zone, each.reason, each.line] for each in found]))
            part.replace(kept)


def _checked(folder: Path) -> Iterator[Zone]:
    with (folder / "zones.list").open() as lines:
        for _, line in zip(range(ZONES_MOST), lines, strict=False):
            zone = Zone(*line.rstrip("\n").split("\t"))
            if (folder / zone.file).stat().st_size <= FILE_BYTES_MOST:
                yield zone


def _identity(source: ServerSource) -> str:
    told = [VERSION, source.kind, source.version, source.key, source.fingerprint, source.commit, source.source]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:12]


class _Undecided(Exception):
    """A checker was killed, or did not end in time: that says nothing about a zone, and is not kept."""


def _run(source: ServerSource, folder: Path, zones: Sequence[Zone], temporary: Path) -> list[Refusal] | None:
    check = driver(source.kind).zone_check(zones, SEEN_DATASET, SEEN_FOLDER)
    found = []
    own = temporary / "check"
    before = os.umask(cached.READABLE)
    try:
        own.mkdir()
        for name, text in check.files.items():
            (own / name).write_text(text)
    finally:
        os.umask(before)
    confined = Confinement(
        sources.root(source) or MACHINE,
        [
            BindMount(folder, SEEN_DATASET, read_only=True),
            BindMount(own, SEEN_FOLDER, read_only=True),
            *(BindMount(place, seen, read_only=True) for seen, place in sources.shown(source).items()),
        ],
    )
    for zone, command in zip(zones, check.commands, strict=True):
        status, text = _one(sources.executable(source, command), confined)
        if status in (126, 127):
            return None
        if status < 0:
            raise _Undecided
        if status:
            found.append(Refusal(zone.name, *_reason(text, zone.file, status)))
    return found


def _one(command: list[str], confined: Confinement) -> tuple[int, str]:
    """Exit status and output of a checker."""
    try:
        return confinement.run_and_read(command, confinement=confined, limit_s=LIMIT_S)
    except subprocess.TimeoutExpired:
        raise _Undecided from None


def _reason(text: str, file: str, status: int) -> tuple[str, int | None]:
    """The line of the output that says why, and the number of the line that it is about."""
    lines = [visible(line.strip()) for line in text.splitlines() if line.strip()]
    place = re.compile(rf"{re.escape(Path(file).name)}'?[:,]\s*(?:line\s+)?(\d+)")
    for line in lines:
        if match := place.search(line):
            return line[:300], int(match[1])
    telling = [line for line in lines if ERROR.search(line)] or lines or [f"exit status {status}"]
    return telling[0][:300], None


def sentences(servers: Mapping[str, ServerSource], dataset: DatasetSpec, files: Sequence[Path]) -> list[str]:
    """A sentence for each zone that a server of ``servers`` (name -> source) refuses, at most ten. ``files``: the
    user's files in the order of the zones, if that is known."""
    told = {name: refusals(source, dataset) for name, source in servers.items()}
    checked = {name: found for name, found in told.items() if found is not None}
    by_zone: dict[str, dict[str, Refusal]] = {}
    for name, found in checked.items():
        for refusal in found:
            by_zone.setdefault(refusal.zone, {})[name] = refusal
    places = Places(datasets.folder(dataset.key), files)
    sentences = []
    for zone, refused in list(by_zone.items())[:10]:
        reasons = [f"{name} refuses {places(zone, each)}: {each.reason}" for name, each in refused.items()]
        accepted = [name for name in checked if name not in refused]
        sentences.append("; ".join([*reasons, *([f"accepted by {' and '.join(accepted)}"] if accepted else [])]))
    return sentences + ([f"and {len(by_zone) - 10} more zones"] if len(by_zone) > 10 else [])


class Places:
    """Where a fault is in the user's own file: the copy of a zone has other line numbers."""

    def __init__(self, folder: Path, files: Sequence[Path]) -> None:
        self.folder, self.files = folder, files
        self.zones = [(zone.name, zone.file) for zone in _checked(folder)]

    def __call__(self, zone: str, refusal: Refusal) -> str:
        number = next(number for number, (name, _) in enumerate(self.zones) if name == zone)
        own = self.files[number] if number < len(self.files) else None
        if refusal.line is None:
            return f"{zone} ({own})" if own else zone
        with (self.folder / self.zones[number][1]).open("rb") as copy:
            text = next((line for at, line in enumerate(copy, 1) if at == refusal.line), b"").rstrip()
        line = _nearest(own, text, refusal.line) if own and text else None
        return f"{own} line {line}" if line else f"{zone} (`{visible(text.decode('utf-8', 'replace'))[:100]}`)"


def _nearest(file: Path, text: bytes, line: int) -> int | None:
    """The line of ``file`` with the same text that is the nearest to a number."""
    with file.open("rb") as lines:
        same = [number for number, each in enumerate(lines, 1) if each.rstrip() == text]
    return min(same, key=lambda number: abs(number - line), default=None)
