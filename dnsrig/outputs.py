"""Files that a command makes: none replaces a file that it reads, and each appears whole."""

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


def write(path: Path, content: bytes) -> None:
    """Write ``content`` beside ``path`` and rename it: whole or not at all. A pipe or a device is written directly."""
    if path.exists() and not path.is_file():
        path.write_bytes(content)
    else:
        files.write(path, content)
