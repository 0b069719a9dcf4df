"""Which dnsrig this is: version, commit, and the profile that the engine was built with."""

from __future__ import annotations

import subprocess
from pathlib import Path

import dnsrig
from dnsrig import paths


def package() -> str:
    """Version of the package and, in a checkout, its commit. In a wheel the engine has the commit."""
    root = Path(dnsrig.__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return f"dnsrig {dnsrig.__version__}"
    command = ["git", "-C", str(root), "describe", "--always", "--dirty"]
    try:
        commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = "unknown"
    return f"dnsrig {dnsrig.__version__} (commit {commit})"


def engine() -> str:
    """Version and build profile of the engine, as the engine prints them.

    Raises `DnsrigError` where there is no engine, and `OSError` or `CalledProcessError` where it does not run.
    """
    return subprocess.run([paths.engine(), "--version"], capture_output=True, text=True, check=True).stdout.strip()
