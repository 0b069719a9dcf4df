"""Removes what a trial made, as its ledger lists it; and what dead trials left behind."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from pyroute2 import netns
from pyroute2.netlink.exceptions import NetlinkError

from dnsrig import interruption
from dnsrig.lab import cgroup, ledger, nics
from dnsrig.lab.ledger import Ledger


def remove(made: Ledger) -> list[str]:
    """Remove everything that ``made`` lists; returns what would not go. Safe to call twice.

    A signal that comes meanwhile waits: a removal is never cut short.
    """
    with interruption.deferred():
        return _remove(made)


def _remove(made: Ledger) -> list[str]:
    left = []
    for folder in map(Path, made.cgroups):
        cgroup.kill(folder)
    for folder in map(Path, made.cgroups):
        if not cgroup.remove(folder):
            left.append(str(folder))
    for was in made.nics:
        if Path("/run/netns", was["namespace"]).exists():  # before it goes, and virtual interfaces with it
            with contextlib.suppress(OSError, NetlinkError):
                nics.give_back(was, was["namespace"])
    for name in made.network_namespaces:
        if Path("/run/netns", name).exists():
            try:
                netns.remove(name)
            except OSError:
                left.append(f"network namespace {name}")
    for folder in map(Path, made.folders):
        shutil.rmtree(folder, ignore_errors=True)
        if os.path.lexists(folder):
            left.append(str(folder))
    if not left:
        made.close()
    return left


def clean() -> tuple[list[str], list[str]]:
    """Remove what dead trials left behind. Returns (tags removed, what would not go)."""
    removed, left = [], []
    for made in ledger.dead():
        remains = remove(made)
        left += remains
        if not remains:
            removed.append(made.tag)
    return removed, left + [f"what trial {tag} left, which takes root" for tag in ledger.dead_of_others()]
