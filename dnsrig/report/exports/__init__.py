"""A run for other programs: one file a format.

A format is a module of this folder, or of another package (`dnsrig.discovery`), with ``write(run, out) -> list[Path]``.
``out`` is a folder that exists.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import ModuleType

from dnsrig import discovery
from dnsrig.analysis.read import Run
from dnsrig.errors import UsageError


@cache
def formats() -> dict[str, ModuleType]:
    return discovery.plugins(__name__, discovery.having("write"))


def export(run: Run, format: str, out: Path) -> list[Path]:
    """Write ``run`` as ``format`` into the folder ``out``, made if need be; returns what was written. What fails is
    noted in ``run.failures``."""
    module = formats().get(format)
    if module is None:
        raise UsageError(f"there is no export format {format!r}", hint=f"choose one of {', '.join(formats())}")
    out.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    with run.failures.isolate("export", format):
        paths += module.write(run, out)
    return paths
