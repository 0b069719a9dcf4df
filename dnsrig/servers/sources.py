"""Where a server's binaries come from: ``KIND@SOURCE`` resolved to exact versions.

SOURCE is ``system`` (what is installed), a Debian suite such as ``forky``, or the path of the user's own build; ``engine``
for what dnsrig brings along itself.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import subprocess
from pathlib import Path

import dnsrig
from dnsrig import paths
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.rundir import ServerSource
from dnsrig.servers import all_drivers, debian, driver
from dnsrig.servers.driver import Driver

VERSION_LIMIT_S = 20
ENGINE = "engine"
FOLDERS = ("sbin", "bin", "usr/sbin", "usr/bin", "")
SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


def parse(name: str) -> tuple[Driver, str]:
    """``bind@forky`` -> (driver, "forky"). ``bind`` alone means ``bind@system``."""
    kind, _, source = name.partition("@")
    server = driver(kind)
    source = source or server.only_source or "system"
    if server.only_source and source != server.only_source:
        raise UsageError(f"there is no {name}: {kind} is a part of dnsrig", hint=f"write {kind}@{server.only_source}")
    if source == ENGINE and not server.only_source:
        raise UsageError(f"there is no {name}: {server.title} is no part of dnsrig", hint=f"write e.g. {kind}@forky")
    return server, source


def find(name: str) -> ServerSource | None:
    """What is there already, without asking any mirror; None for a suite's server that is not installed yet."""
    server, source = parse(name)
    if source == ENGINE:
        return _engine(server)
    if source == "system":
        return _system(server)
    if source.startswith(("/", ".", "~")):
        return _build(server, source)
    built = _roots(server, source)
    return _from_root(server, built[-1]) if built else None


def install(name: str) -> ServerSource:
    """Make ``name`` available at its newest version; for a suite this asks the mirror."""
    server, source = parse(name)
    if source in ("system", ENGINE) or source.startswith(("/", ".", "~")):
        found = find(name)
        assert found is not None
        return found
    return _from_root(server, debian.build(source, server.kind, server.packages))


def installed() -> dict[str, list[ServerSource]]:
    """Per kind, every source that is usable without installing anything."""
    found: dict[str, list[ServerSource]] = {}
    for kind, server in all_drivers().items():
        found[kind] = []
        if server.only_source == ENGINE:
            found[kind].append(_engine(server))
            continue
        with contextlib.suppress(DnsrigError):
            found[kind].append(_system(server))
        for folder in sorted((paths.cache() / "roots").glob("*")):
            if built := _roots(server, folder.name):
                found[kind].append(_from_root(server, built[-1]))
    return found


def _roots(server: Driver, suite: str) -> list[debian.Root]:
    """Those built from ``suite`` with all packages that this version of dnsrig wants, the newest last."""
    return [root for root in debian.roots(suite, server.kind) if set(server.packages) <= set(root.packages)]


def _from_root(server: Driver, root: debian.Root) -> ServerSource:
    named = re.compile(server.version_package or re.escape(server.packages[0]))
    version = next(version for name, version in root.packages.items() if named.fullmatch(name))
    shown = re.sub(r"^\d+:", "", version).split("-", 1)[0].split("+", 1)[0]
    return ServerSource(kind=server.kind, source=root.suite, version=shown, root=str(root.path), packages=root.packages)


def _engine(server: Driver) -> ServerSource:
    """A part of dnsrig itself, pinned down by the engine's binary."""
    return ServerSource(
        kind=server.kind, source=ENGINE, version=dnsrig.__version__, fingerprint=fingerprint(paths.engine())
    )


def _system(server: Driver) -> ServerSource:
    for folder in SYSTEM_FOLDERS:
        if (path := Path(folder, server.executable)).exists():
            version = _ask_version(server, path)
            return ServerSource(kind=server.kind, source="system", version=version, fingerprint=fingerprint(path))
    raise DnsrigError(
        f"{server.title} ({server.executable}) is not installed on this machine",
        hint=f"use {server.kind}@forky, which dnsrig installs by itself, or KIND@/path/to/your/build",
    )


def _build(server: Driver, source: str) -> ServerSource:
    prefix = Path(source).expanduser().resolve()
    for folder in FOLDERS:
        if (path := prefix / folder / server.executable).is_file():
            return ServerSource(
                kind=server.kind,
                source=str(prefix),
                version=_ask_version(server, path),
                prefix=str(prefix),
                fingerprint=fingerprint(path),
            )
    raise UsageError(
        f"there is no {server.executable} under {prefix}",
        hint=f"give the prefix of the build, the folder that holds sbin/{server.executable}",
    )


def _ask_version(server: Driver, path: Path) -> str:
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


def executable(source: ServerSource, command: list[str]) -> list[str]:
    """``command`` with its program as a full path where it is ours or lies in the user's own build; else as PATH has it."""
    if source.source == ENGINE:
        return [str(paths.engine()), *command[1:]]
    for folder in FOLDERS if source.prefix else ():
        if (path := Path(source.prefix or "/") / folder / command[0]).is_file():
            return [str(path), *command[1:]]
    return command


def fingerprint(path: Path) -> str:
    """Tells two builds of one version apart."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
