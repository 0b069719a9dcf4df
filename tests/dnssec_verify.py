"""What BIND's dnssec-verify says of a signed zone."""

from __future__ import annotations

import subprocess
from pathlib import Path

from dnsrig import paths
from dnsrig.confinement import BindMount
from dnsrig.servers import sources

SEEN = "/mnt/zone"


def complaint(zone: Path, origin: str) -> str:
    """What it says of the zone ``origin`` in a file, where it is not fully signed; else empty."""
    source = sources.find("bind@forky") or sources.install("bind@forky")
    enter = [str(paths.engine()), "enter", "--root", str(sources.root(source))]
    # `-z`: a key may sign both keys and records.
    command = ["dnssec-verify", "-z", "-o", origin, SEEN]
    bind = BindMount(zone, SEEN, read_only=True)
    found = subprocess.run([*enter, *bind.arguments(), "--", *command], check=False, capture_output=True, text=True)
    told = found.stdout + found.stderr
    return "" if found.returncode == 0 and "Zone fully signed" in told else told or f"status {found.returncode}"
