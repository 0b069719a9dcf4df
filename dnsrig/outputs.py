"""Output files of a command: none replaces an input, and only the owner can read a secret."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from dnsrig import files
from dnsrig.errors import UsageError


def check(output: Path, inputs: Iterable[Path]) -> None:
    """Refuse ``output`` if it is the same file as one of ``inputs``, by whatever path or link."""
    try:
        there = output.stat()
    except OSError:
        return
    for path in inputs:
        if path.is_file() and os.path.samestat(there, path.stat()):
            raise UsageError(
                f"{output} is the same file as {path}, which is read",
                hint="nothing was changed: give the output a path of its own",
            )


def check_folder(folder: Path, inputs: Iterable[Path]) -> None:
    """Refuse ``folder`` if a file in it is the same as one of ``inputs``, because an output may have its name."""
    there = [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []
    read = list(inputs) if there else []
    for path in there:
        check(path, read)


def write(path: Path, content: bytes) -> None:
    """Write ``content`` beside ``path`` and rename it: whole or not at all. A pipe or a device is written directly."""
    if path.exists() and not path.is_file():
        path.write_bytes(content)
    else:
        files.write(path, content)


def write_private(path: Path, content: bytes) -> None:
    """Write a secret to a new file at ``path``, which only its owner can read. Raises FileExistsError."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
