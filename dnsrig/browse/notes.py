"""The note and tags of a run, and whether it is a baseline: a small file in the run directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints

from dnsrig.errors import DnsrigError, UsageError
from dnsrig.rundir import SCHEMA_VERSION, Record, check_ours, read_json, write_json

FILE = "notes.json"
MOST_CHARACTERS = 4_000
"""Longest note: a page of text."""
MOST_TAGS = 20
MOST_BYTES = 65_536
"""Largest file: several times what the other limits allow in UTF-8. A larger file is not ours."""

Tag = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=40)]


class Notes(Record):
    """notes.json."""

    schema_version: int = SCHEMA_VERSION
    note: str = Field(default="", max_length=MOST_CHARACTERS)
    tags: list[Tag] = Field(default_factory=list, max_length=MOST_TAGS)
    baseline: bool = False
    """Whether others are compared with this run."""


def read(run_dir: Path) -> Notes:
    """The notes of a run; empty if it has no file, or one that `write` did not make."""
    path = run_dir / FILE
    try:
        if path.stat().st_size > MOST_BYTES:
            return Notes()
        return read_json(path, Notes)
    except (OSError, DnsrigError):
        return Notes()


def made(note: str, tags: str, baseline: bool) -> Notes:
    """Notes from the fields of a form; ``tags`` with commas between them. Raises UsageError for what is too long."""
    named = list(dict.fromkeys(tag.strip() for tag in tags.split(",") if tag.strip()))
    try:
        return Notes(note=note.replace("\r\n", "\n").strip(), tags=named, baseline=baseline)
    except ValueError as error:
        raise UsageError(
            "the note or its tags are too long",
            hint=f"at most {MOST_CHARACTERS:,} characters, {MOST_TAGS} tags of 40 characters",
        ) from error


def write(run_dir: Path, notes: Notes) -> None:
    """Whole or not at all; of empty notes nothing is left. Raises OSError where the folder cannot be written to, and
    UsageError where the run is somebody else's."""
    check_ours(run_dir)
    if notes == Notes():
        (run_dir / FILE).unlink(missing_ok=True)
    else:
        write_json(run_dir / FILE, notes)
