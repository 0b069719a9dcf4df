"""What `delv`, the validator of BIND by itself, finds in a simulated Internet from the hints and the anchor that it
writes is what `--explain` says of each class of name."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import world_classes
import world_server
from world_classes import Class

from dnsrig import paths
from dnsrig.lab import host as lab_host
from dnsrig.lab.host import Host
from dnsrig.lab.network import Network
from dnsrig.rundir import HostSpec, LinkSpec
from dnsrig.servers import debian
from dnsrig.servers.resolving import ANCHOR_FILE, HINTS_FILE, read_anchor

CPUS = sorted(os.sched_getaffinity(0))
SUITE, PACKAGE = "forky", "bind9-dnsutils"
DIRECTORY = Path("/mnt")
"""Where the world's files are for `delv`."""
KEYS_FILE = "trust-anchors"
LIMIT_S = 60.0
ATTEMPTS = 5
"""`delv` has a limit of its own, which its search for a proof in a bogus zone may reach on a busy machine."""
REASONS = {
    "wrong-ds": r"no valid signature found \(DS\)",
    "expired": r"RRSIG has expired",
    "missing-rrsig": r"got insecure response; parent indicates it should be secure|fetch loop detected resolving '\S+/DS/IN'",
    "missing-dnskey": r"insecurity proof failed resolving '\S+/DNSKEY/IN'|no valid signature found(?! \(DS\))",
    "broken-denial": r"no valid NSEC|(deadlock found|fetch loop detected) resolving '\S+/DS/IN'",
}
"""Fault -> what `delv` says of it."""


@dataclass(frozen=True)
class Found:
    rcode: str
    security: str
    addresses: int
    reasons: frozenset[str]
    """The faults that it could be by what is said."""


def found(name: str, text: str) -> Found:
    """What `delv` says, with a trace of its validation: of an answer it says the result at the end, but of what does
    not exist only in the trace."""
    ends = re.findall(r"^; (fully validated|unsigned answer)$", text, re.MULTILINE)
    failed = re.search(r"^;; response code: (\w+)$", text, re.MULTILINE)
    own = rf"^;; validating {re.escape(name)}/A: "
    if ends:
        # One of each RRset: an alias may lead to another zone.
        security = "insecure" if "unsigned answer" in ends else "secure"
    elif failed and failed[1] == "SERVFAIL":
        security = "bogus"
    elif re.search(own + r"nonexistence proof\(s\) found$", text, re.MULTILINE):
        security = "secure"
    else:
        assert re.search(own + r"marking as answer", text, re.MULTILINE), (name, text)
        security = "insecure"
    addresses = re.findall(r"^[^;\s]\S*\s+\d+\s+IN\s+A\s", text, re.MULTILINE)
    reasons = frozenset(fault for fault, told in REASONS.items() if security == "bogus" and re.search(told, text))
    return Found(failed[1] if failed else "NOERROR", security, len(addresses), reasons)


def write_keys(folder: Path) -> None:
    """The anchor as BIND has it in its configuration."""
    anchor = (folder / ANCHOR_FILE).read_text()
    _, _, _, _, flags, protocol, algorithm, key = next(line for line in anchor.splitlines() if "DNSKEY" in line).split()
    (folder / KEYS_FILE).write_text(f'trust-anchors {{ . static-key {flags} {protocol} {algorithm} "{key}"; }};\n')


def ask(client: Host, root: Path, folder: Path, name: str) -> Found:
    """By a resolver of its own, which begins with the hints."""
    enter = [str(paths.engine()), "enter", "--root", str(root), "--bind", f"{folder}:{DIRECTORY}:ro", "--"]
    options = ["+ns", f"+hint={DIRECTORY / HINTS_FILE}", "-a", str(DIRECTORY / KEYS_FILE), "+vtrace"]
    for _ in range(ATTEMPTS):
        with lab_host.inside(client.namespace):
            told = subprocess.run(
                [*enter, "delv", *options, name, "A"], check=False, capture_output=True, text=True, timeout=LIMIT_S
            )
        if not told.stderr.endswith("timed out\n"):
            break
    assert told.returncode == 0, (name, told.returncode, told.stderr, told.stdout[-3000:])
    return found(name, told.stdout)


@pytest.mark.full
@pytest.mark.parametrize("count", [30])
def test_delv_finds_of_each_class_what_is_explained(tmp_path: Path, count: int) -> None:
    """Takes minutes: `delv` is started for each name, and resolves each from the root."""
    words = [word for setting in world_classes.SETTINGS for word in ("--set", setting)]
    world = world_server.make(tmp_path / "world.toml", "--zones", str(max(600, 60 * count)), *words)
    classes = world_classes.chosen(world, count)
    root = (debian.roots(SUITE, PACKAGE) or [debian.build(SUITE, PACKAGE, (PACKAGE,))])[-1].path
    specs = {
        "client": HostSpec(address="198.18.0.2", cpus=CPUS[-1:]),
        "internet": HostSpec(address="198.18.0.3", cpus=CPUS[:1]),
    }
    with Network(specs, [LinkSpec(ends=("internet", "client"))], directory=tmp_path) as network:
        internet, client = network.hosts["internet"], network.hosts["client"]
        world_server.route(internet, client)
        with world_server.serve(world, internet):
            assert read_anchor(world.out / ANCHOR_FILE)
            write_keys(world.out)
            different: list[tuple[Class, str, Found]] = []
            for kind, names in classes.items():
                fault, security, _ = kind
                for one in names:
                    is_bogus = security == "bogus"
                    seen = ask(client, root, world.out, one["name"])
                    wanted = ("SERVFAIL", security, 0) if is_bogus else (one["rcode"], security, one["addresses"])
                    same = (seen.rcode, seen.security, seen.addresses) == wanted
                    if not same or (is_bogus and fault not in seen.reasons):
                        different.append((kind, one["name"], seen))
    assert different == []
