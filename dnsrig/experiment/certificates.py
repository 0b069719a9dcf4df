"""The certificates on this machine, and the one that a run cites."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dnsrig import certificate, paths
from dnsrig.analysis import calibration
from dnsrig.analysis.run_differences import HARDWARE
from dnsrig.certificate import CITED, FILE, LASTING, Certificate, Cited
from dnsrig.errors import DnsrigError
from dnsrig.lab import conditions

MACHINE_ID = "/etc/machine-id"
MOST_LOOKED_AT = 100
"""Number of the newest certificates that are read."""


def folder() -> Path:
    return paths.cache() / "calibrations"


def machine(around: Mapping[str, Any]) -> str:
    """A permanent name for this machine, from its id, or from its hardware if it has no id.

    It is hashed, as machine-id(5) demands of programs that publish it.
    """
    own = conditions.read(MACHINE_ID) or json.dumps([around.get(fact) for fact in HARDWARE])
    return hashlib.sha256(f"dnsrig {own}".encode()).hexdigest()[:16]


def known(where: Path) -> Iterator[tuple[Path, Certificate]]:
    """All readable certificates, the newest first."""
    folders = [file.parent for file in where.glob(f"*/{FILE}") if not file.parent.name.startswith(".")]
    for each in sorted(folders, key=lambda path: path.name, reverse=True)[:MOST_LOOKED_AT]:
        with contextlib.suppress(DnsrigError):
            yield each, certificate.read(each)


def cited(around: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The newest certificate of the machine with the conditions ``around``, as an entry of a manifest; empty if there
    is no certificate."""
    own = machine(around)
    for path, found in known(folder()):
        if found.machine == own:
            digest = hashlib.sha256((path / FILE).read_bytes()).hexdigest()
            return {CITED: _cited(found, digest).model_dump()}
    return {}


def _cited(found: Certificate, digest: str) -> Cited:
    return Cited(
        id=found.id,
        created=found.created,
        digest=digest,
        scale=found.scale,
        dnsrig_version=found.dnsrig_version,
        engine_fingerprint=found.engine_fingerprint,
        figures=calibration.key_figures(found),
        conditions={fact: found.conditions.get(fact) for fact in LASTING},
    )
