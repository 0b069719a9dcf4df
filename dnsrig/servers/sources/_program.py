"""A program of a server: its version as it says itself, and what tells two builds apart."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from dnsrig import checksums
from dnsrig.errors import DnsrigError
from dnsrig.servers.driver import Driver

VERSION_LIMIT_S = 20


def version(server: Driver, path: Path) -> str:
    """As the program at ``path`` says. Raises DnsrigError where it does not start or says nothing of the kind."""
    try:
        result = subprocess.run(
            [str(path), *server.version_arguments], capture_output=True, text=True, timeout=VERSION_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DnsrigError(f"{path} does not start: {error}", hint="does it run on this machine by hand?") from error
    match = re.search(server.version_pattern, result.stdout + result.stderr)
    if match is None:
        raise DnsrigError(f"{path} does not tell its version as {server.title} does")
    return match[1]


def fingerprint(path: Path) -> str:
    """Tells two builds of one version apart."""
    return checksums.sha256(path)[:16]
