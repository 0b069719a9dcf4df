"""Finds run directories and reads of each what the list of runs shows: quickly, and without trusting what is there."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from dnsrig import files
from dnsrig.browse import notes
from dnsrig.rundir import NAME

DEEPEST = 4
"""Folders between the one that is browsed and a run: `history/NAME/runs/EXPERIMENT/RUN` has as many."""
MOST_RUNS = 20_000
MOST_FOLDERS = 200_000
"""Most folders that are searched: somebody may browse `/`."""
STAMPED = ("manifest.json", notes.FILE, "findings.json", "trials")


@dataclass(frozen=True)
class Entry:
    """A run as the list has it."""

    id: str
    """In addresses: made of the path below the browsed folder, so it stays the same."""
    path: str
    """Below the browsed folder."""
    stamp: str
    """Another one: something changed."""
    experiment: str = ""
    title: str = ""
    created: str = ""
    scale: str = ""
    servers: tuple[str, ...] = ()
    variants: int = 0
    planned: int = 0
    finished: int = 0
    found: int = 0
    """Traps that found something, as findings.json says."""
    damage: str = ""
    """What is wrong with it; empty of one that looks whole from here."""
    note: str = ""
    tags: tuple[str, ...] = ()
    baseline: bool = False

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def of_json(cls, text: str) -> Entry:
        """Raises ValueError or TypeError where it is not one."""
        data = json.loads(text)
        return cls(**data | {"servers": tuple(data["servers"]), "tags": tuple(data["tags"])})

    @property
    def when(self) -> str:
        """When it was made, to the minute; its path where that is not known."""
        return self.created[:16].replace("T", " ") or self.path

    @property
    def complete(self) -> bool:
        return self.finished >= self.planned

    def matches(self, words: str, experiment: str = "", server: str = "", tag: str = "") -> bool:
        """Whether each of ``words`` occurs somewhere, and the rest is as asked where it is."""
        text = " ".join(
            [self.path, self.experiment, self.title, self.scale, self.note, *self.servers, *self.tags]
        ).casefold()
        return (
            all(word in text for word in words.casefold().split())
            and experiment in ("", self.experiment)
            and (not server or server in self.servers)
            and (not tag or tag in self.tags)
        )


def directories(root: Path) -> Iterator[Path]:
    """The run directories below ``root``, or ``root`` itself; links are not followed, and runs are not looked into."""
    waiting, looked, found = [(root, 0)], 0, 0
    while waiting and looked < MOST_FOLDERS and found < MOST_RUNS:
        folder, depth = waiting.pop()
        looked += 1
        try:
            with os.scandir(folder) as entries:
                inner = {each.name: each for each in entries}
        except OSError:
            continue
        if "manifest.json" in inner:
            found += 1
            yield folder
        elif depth < DEEPEST:
            names = sorted(name for name in inner if not name.startswith("."))
            waiting += [(folder / name, depth + 1) for name in names if inner[name].is_dir(follow_symlinks=False)]


def run_id(path: str) -> str:
    """The id of a path below the browsed folder: its last part, made fit for an address, and a digest of it all."""
    last = re.sub(r"[^A-Za-z0-9._-]+", "-", path.rpartition("/")[2])[:80].strip(".-") or "run"
    return f"{last}-{blake2b(path.encode(errors='surrogateescape'), digest_size=4).hexdigest()}"


def stamp(directory: Path) -> str:
    """Changes with the files that `entry` reads, except for the files of single trials."""
    return "/".join(_modified(f"{directory}/{name}") for name in STAMPED)


def _modified(path: str) -> str:
    try:
        found = os.stat(path)  # noqa: PTH116 (of thousands of runs, in each list)
    except OSError:
        return "-"
    return f"{found.st_mtime_ns:x}.{found.st_size:x}"


def entry(root: Path, directory: Path) -> Entry:
    """The entry of the run in ``directory``; if it cannot be read, with what is wrong."""
    path = directory.relative_to(root).as_posix()
    if path == ".":
        path = directory.name
    found = Entry(run_id(path), path, stamp(directory), title=directory.name)
    said = notes.read(directory)
    told = {"note": said.note, "tags": tuple(said.tags), "baseline": said.baseline}
    try:
        manifest = files.document(directory / "manifest.json")
        told |= _of_manifest(manifest)
        finished, damage = _trials(directory, manifest["order"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        what = f"{error.strerror}" if isinstance(error, OSError) else "it is not what dnsrig writes"
        return Entry(**asdict(found) | told | {"damage": f"manifest.json cannot be read: {what}"})
    traps, lost = _findings(directory)
    return Entry(**asdict(found) | told | {"finished": finished, "found": traps, "damage": damage or lost})


def _of_manifest(manifest: dict[str, Any]) -> dict[str, Any]:
    texts = {name: str(manifest[name]) for name in ("experiment", "title", "created", "scale")}
    return {
        **texts,
        "servers": tuple(str(name) for name in manifest["servers"]),
        "variants": len(manifest["variants"]),
        "planned": len(manifest["order"]),
    }


def _trials(directory: Path, order: list[dict[str, Any]]) -> tuple[int, str]:
    """How many are finished, and what is wrong with the first that is not whole: a record ends with a brace."""
    finished, damage = 0, ""
    for key in order:
        variant, repeat = str(key["variant"]), int(key["repeat"])
        if not re.fullmatch(NAME, variant) or not variant.strip("."):
            raise ValueError("a variant has no name")
        path = directory / "trials" / variant / f"{repeat:02d}" / "trial.json"
        try:
            with files.opened(path, directory) as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - 8))
                end = file.read().rstrip()
        except FileNotFoundError:
            continue
        except OSError as error:
            finished, damage = finished + 1, damage or f"the record of {variant} repeat {repeat}: {error.strerror}"
            continue
        finished += 1
        if not end.endswith(b"}"):
            damage = damage or f"the record of {variant} repeat {repeat} is cut"
    return finished, damage


def _findings(directory: Path) -> tuple[int, str]:
    """How many traps found something, and whether one of them was that files are damaged."""
    try:
        told = files.document(directory / "findings.json")["findings"]
        traps = {str(finding["trap"]) for finding in told if finding["verdict"] == "found"}
    except (OSError, ValueError, KeyError, TypeError):
        return 0, ""
    return len(traps), "files of trials are damaged" if "damaged-files" in traps else ""
