"""The list of runs, kept in one SQLite file of the cache: derived, and made again when it is lost or damaged.

A run is read again when one of its files has another time; one that is not complete is looked at each time.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from hashlib import blake2b
from pathlib import Path

from dnsrig import paths
from dnsrig.browse import scan
from dnsrig.browse.scan import Entry

VERSION = 1
"""Version of the index: raised whenever the meaning of `Entry` changes."""
FRESH_S = 1.0
"""So long the list is taken as it is: a page asks for it several times."""


def file_of(root: Path) -> Path:
    """Where the list of the runs below ``root`` is kept."""
    name = blake2b(str(root).encode(errors="surrogateescape"), digest_size=8).hexdigest()
    return paths.cache() / "browse" / f"{name}.sqlite"


def refreshed(
    known: dict[str, Entry], stamps: dict[str, str], read: Callable[[str], Entry]
) -> tuple[dict[str, Entry], set[str]]:
    """The list as it is now, and the paths of which it changed, lost ones among them.

    ``stamps``: path -> stamp of all runs that there are; ``read`` reads one.
    """
    found, changed = {}, set(known) - set(stamps)
    for path, stamp in stamps.items():
        before = known.get(path)
        if before is not None and before.stamp == stamp and before.complete:
            found[path] = before
            continue
        found[path] = read(path)
        if found[path] != before:
            changed.add(path)
    return found, changed


class Index:
    """The runs below a folder, by their ids. Threads may share it."""

    def __init__(self, root: Path, file: Path | None = None) -> None:
        self.root = root.resolve()
        self._file = file or file_of(self.root)
        self._lock = threading.Lock()
        self._at = 0.0
        self._entries: dict[str, Entry] = {}
        self._by_id: dict[str, Entry] = {}
        self._loaded = False

    def entries(self) -> list[Entry]:
        """All runs, the newest first."""
        self._refresh()
        return sorted(self._by_id.values(), key=lambda entry: (entry.created, entry.path), reverse=True)

    def get(self, run: str) -> Entry | None:
        """The entry with this id, or None. Nothing else leads from an address to a path."""
        self._refresh()
        return self._by_id.get(run)

    def directory(self, entry: Entry) -> Path:
        return self._directory(entry.path)

    def changed(self) -> None:
        """To be called after something was written to a run: it is then looked at again."""
        self._at = 0.0

    def _directory(self, path: str) -> Path:
        inner = self.root / path
        return inner if inner.is_dir() else self.root

    def _refresh(self) -> None:
        with self._lock:
            if self._loaded and time.monotonic() - self._at < FRESH_S:
                return
            if not self._loaded:
                self._entries, self._loaded = _load(self._file), True
            folders = {self._path(folder): folder for folder in scan.directories(self.root)}
            stamps = {path: scan.stamp(folder) for path, folder in folders.items()}
            found, changed = refreshed(self._entries, stamps, lambda path: scan.entry(self.root, folders[path]))
            self._entries = found
            self._by_id = {entry.id: entry for entry in found.values()}
            if changed:
                _save(self._file, [found[path] for path in changed if path in found], changed - set(found))
            self._at = time.monotonic()

    def _path(self, folder: Path) -> str:
        path = folder.relative_to(self.root).as_posix()
        return folder.name if path == "." else path


def _load(file: Path) -> dict[str, Entry]:
    """What is kept; empty where it cannot be read, whatever the reason: it is derived."""
    try:
        with contextlib.closing(_open(file)) as database:
            rows = database.execute("SELECT entry FROM runs").fetchall()
        return {entry.path: entry for entry in (Entry.of_json(text) for (text,) in rows)}
    except (sqlite3.Error, OSError, ValueError, TypeError, KeyError):
        with contextlib.suppress(OSError):
            file.unlink(missing_ok=True)
        return {}


def _save(file: Path, entries: Iterable[Entry], gone: Iterable[str]) -> None:
    """Where it cannot be kept, the list is only made anew the next time."""
    with contextlib.suppress(sqlite3.Error, OSError), contextlib.closing(_open(file)) as database, database:
        database.executemany("DELETE FROM runs WHERE id = ?", [(scan.run_id(path),) for path in gone])
        rows = [(entry.id, entry.as_json()) for entry in entries]
        database.executemany("INSERT OR REPLACE INTO runs (id, entry) VALUES (?, ?)", rows)


def _open(file: Path) -> sqlite3.Connection:
    file.parent.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(file, timeout=5)
    kept = database.execute("PRAGMA user_version").fetchone()[0]
    if kept != VERSION:
        database.executescript(
            f"DROP TABLE IF EXISTS runs; CREATE TABLE runs (id TEXT PRIMARY KEY, entry TEXT NOT NULL);"
            f"PRAGMA user_version = {VERSION};"
        )
    return database
