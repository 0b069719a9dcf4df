"""Packages of a Debian suite as a root file system, without touching the machine's own packages.

apt runs with a separate state (sources, lists, an empty dpkg status), so it lists all needed packages with their exact
versions. These are downloaded and unpacked; no maintainer script ever runs. That takes seconds, whereas a bootstrap
takes minutes, and it starts no service. The key of a root file system is a hash of the versions in it. It is built
beside its final name and renamed, so an interrupted build is never mistaken for a complete one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from dnsrig import cached, paths
from dnsrig.errors import DnsrigError, UsageError

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
LAYOUT_VERSION = 1
"""Increased when this file makes root file systems differently, so that old ones are not used."""
BASE_PACKAGES = ("base-files", "netbase")
RECORD = "dnsrig-root.json"
"""Written last: its presence means that the root file system is complete."""
NOT_NEEDED = ("./usr/share/locale/*", "./usr/share/man/*", "./usr/share/info/*", "./usr/share/lintian/*")
APT_LIMIT_S = 900
INSTALLATION = re.compile(r"^Inst (?P<name>\S+) (?:\[\S+\] )?\((?P<version>\S+)", re.MULTILINE)
SUITE = re.compile(r"[a-z][a-z0-9-]*")


@dataclass(frozen=True)
class Root:
    """A root file system in the cache."""

    path: Path
    suite: str
    packages: dict[str, str]
    """Each package in it -> exact version."""


def folder(suite: str) -> Path:
    """The folder of the root file systems built from ``suite``, each named by its key."""
    return paths.cache() / "roots" / suite


def roots(suite: str, name: str) -> list[Root]:
    """The root file systems built for ``name`` from ``suite``, the newest last."""
    built = [path for path in folder(suite).glob(f"{name}-*") if path.name.rpartition("-")[0] == name]
    found = [path for path in built if (path / RECORD).is_file()]
    found.sort(key=lambda path: (path / RECORD).stat().st_mtime)
    return [root for path in found if (root := _read(path, suite)) is not None]


def resolve(suite: str, packages: tuple[str, ...]) -> dict[str, str]:
    """Ask the mirror for the present versions of ``packages`` of ``suite`` and of all that they need."""
    _update(suite)
    return _closure(suite, packages)


def build(suite: str, name: str, packages: tuple[str, ...]) -> Root:
    """Build the root file system of ``packages`` at their present versions, or return it if it exists."""
    with cached.locked(folder(suite)):
        versions = resolve(suite, packages)
        target = folder(suite) / f"{name}-{_key(versions)}"
        if root := _read(target, suite):
            os.utime(target / RECORD)  # `find` takes the newest one
            return root
        _apt(suite, "install", "--yes", "--download-only", *BASE_PACKAGES, *packages)
        with cached.making(target) as tree:
            _unpack(suite, versions, tree)
            record = {"suite": suite, "packages": versions, "layout": LAYOUT_VERSION}
            (tree / RECORD).write_text(json.dumps(record, indent=1))
        return Root(target, suite, versions)


def _key(versions: dict[str, str]) -> str:
    text = json.dumps([LAYOUT_VERSION, sorted(versions.items())])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _read(path: Path, suite: str) -> Root | None:
    try:
        record = json.loads((path / RECORD).read_text())
    except (OSError, ValueError):
        return None
    return Root(path, suite, record["packages"]) if record.get("layout") == LAYOUT_VERSION else None


def _unpack(suite: str, versions: dict[str, str], tree: Path) -> None:
    """Unpack the packages into ``tree``, with /usr merged in every suite, and write the few files that scripts would
    write."""
    for folder in ("bin", "sbin", "lib", "lib64"):
        (tree / "usr" / folder).mkdir(parents=True)
        (tree / folder).symlink_to(f"usr/{folder}")
    for folder in ("dev", "proc", "sys", "run", "tmp", "mnt", "etc", "root", "var/tmp"):
        (tree / folder).mkdir(parents=True)
    archives = _state(suite) / "cache" / "archives"
    wanted = {(name, version.replace(":", "%3a")) for name, version in versions.items()}
    packages = [deb for deb in sorted(archives.glob("*.deb")) if tuple(deb.name.split("_")[:2]) in wanted]
    if len(packages) != len(wanted):
        raise DnsrigError(
            f"apt downloaded {len(packages)} of {len(wanted)} packages of {suite}",
            hint="try again: the mirror may be changing",
        )
    for package in packages:
        _unpack_one(package, tree)
    (tree / "etc/passwd").write_text(
        "root:x:0:0:root:/root:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"
    )
    (tree / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")
    (tree / "etc/hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
    (tree / "etc/nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files\n")


def _unpack_one(package: Path, tree: Path) -> None:
    exclude = [f"--exclude={pattern}" for pattern in NOT_NEEDED]
    reader = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE)
    writer = subprocess.run(
        ["tar", "-x", "-C", str(tree), "--keep-directory-symlink", *exclude],
        stdin=reader.stdout,
        capture_output=True,
        text=True,
        check=False,
    )
    if reader.stdout is not None:
        reader.stdout.close()  # so that dpkg-deb ends when tar has
    if reader.wait() != 0 or writer.returncode != 0:
        detail = writer.stderr.strip().splitlines()[-1:] or ["dpkg-deb failed"]
        raise DnsrigError(
            f"cannot unpack {package.name}: {detail[0]}", hint="is the disk full? `dnsrig check` shows the free space"
        )


def _state(suite: str) -> Path:
    return paths.cache() / "apt" / suite


def _update(suite: str) -> None:
    if not SUITE.fullmatch(suite):
        raise UsageError(f"{suite!r} is not the name of a Debian suite", hint="e.g. bookworm, trixie, forky, sid")
    if shutil.which("apt-get") is None:
        raise DnsrigError(
            "servers from Debian suites need apt-get", hint="use KIND@system or KIND@/path/to/your/build instead"
        )
    state = _state(suite)
    for part in ("lists/partial", "cache/archives/partial"):
        (state / part).mkdir(parents=True, exist_ok=True)
    # Older suites' Release files are past their Valid-Until date; their signatures are still checked.
    line = f"deb [signed-by={KEYRING} check-valid-until=no] {_mirror()} {suite} main\n"
    (state / "sources.list").write_text(line)
    (state / "status").touch()
    try:
        _apt(suite, "update", "--error-on=any")
    except DnsrigError as error:
        raise DnsrigError(
            f"the mirror has no suite {suite!r}, or cannot be reached: {error.message}",
            hint="check that `apt-get update` works on this machine; suites are bookworm, trixie, forky, sid …",
        ) from error


def _closure(suite: str, packages: tuple[str, ...]) -> dict[str, str]:
    try:
        output = _apt(suite, "install", "--simulate", *BASE_PACKAGES, *packages)
    except DnsrigError as error:
        raise DnsrigError(
            f"Debian {suite} lacks a package of {', '.join(packages)}: {error.message}",
            hint="choose another suite, KIND@system, or KIND@/path/to/your/build",
        ) from error
    return {match["name"]: match["version"] for match in INSTALLATION.finditer(output)}


def _mirror() -> str:
    """The mirror that the machine's own apt configuration names for Debian itself (not for its security updates)."""
    listing = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(SITE) $(ORIGIN) $(LABEL)", "Created-By: Packages"],
        capture_output=True,
        text=True,
        check=False,
    )
    for line in listing.stdout.splitlines():
        site, _, origin = line.partition(" ")
        if origin.strip() == "Debian Debian":
            return site
    raise DnsrigError(
        "apt on this machine has no Debian mirror configured",
        hint="run `apt-get update` once; on other distributions use KIND@system or KIND@/path/to/your/build",
    )


def _apt(suite: str, *arguments: str) -> str:
    state = _state(suite)
    options = {
        "Dir::Etc::sourcelist": f"{state}/sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::preferencesparts": "/dev/null",
        "Dir::State::lists": f"{state}/lists",
        "Dir::State::status": f"{state}/status",
        "Dir::Cache": f"{state}/cache",
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
        "Acquire::Retries": "3",
    }
    flags = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
    result = subprocess.run(
        ["apt-get", "-q", *flags, *arguments],
        capture_output=True,
        text=True,
        timeout=APT_LIMIT_S,
        env={**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"},
        check=False,
    )
    if result.returncode != 0:
        errors = [line for line in result.stderr.splitlines() if line.startswith("E:")]
        raise DnsrigError(errors[0].removeprefix("E: ") if errors else f"apt-get {arguments[0]} failed")
    return result.stdout
