"""A run for other programs: one file a format.

A format is a module of this folder, or of another package (`dnsrig.discovery`), with ``write(run, out) -> list[Path]``.
``out`` is an empty folder; what is written there is moved to where the user wants it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import ModuleType

from dnsrig import discovery, files
from dnsrig.errors import UsageError
from dnsrig.runs.run import Run


@cache
def formats() -> dict[str, ModuleType]:
    return discovery.plugins(__name__, discovery.having("write"))


def writer(format: str) -> ModuleType:
    """The module that writes ``format``. Raises UsageError if there is none."""
    module = formats().get(format)
    if module is None:
        raise UsageError(f"there is no export format {format!r}", hint=f"choose one of {', '.join(formats())}")
    return module


def export(run: Run, format: str, out: Path) -> list[Path]:
    """Write ``run`` as ``format`` into the folder ``out``, made if need be; returns what was written. What fails is
    noted in ``run.failures``."""
    module = writer(format)
    paths: list[Path] = []
    inside = run.directory if run.directory in out.parents else out
    with run.failures.isolate("export", format):
        with files.filling(out, inside) as made:
            written = [out / path.relative_to(made) for path in module.write(run, made)]
        paths += written
    return paths
