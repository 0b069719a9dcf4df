"""Versions of this dnsrig: of the package, its commit, and the build profile of the engine."""

from __future__ import annotations

import subprocess
from pathlib import Path

import dnsrig
from dnsrig import paths


def package() -> str:
    """Version of the package and, in a checkout, its commit. In a wheel, the engine contains the commit."""
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
    """Version and build profile that the engine prints.

    Raises `DnsrigError` if there is no engine, and `OSError` or `CalledProcessError` if it does not run.
    """
    return subprocess.run([paths.engine(), "--version"], capture_output=True, text=True, check=True).stdout.strip()
