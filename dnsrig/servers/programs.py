"""The version and the build of a program outside the cache."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from dnsrig import checksums, confinement
from dnsrig.confinement import ENVIRONMENT, MACHINE, BindMount, Confinement
from dnsrig.errors import DnsrigError
from dnsrig.servers.driver import Driver

VERSION_LIMIT_S = 20
READ_MOST_BYTES = 1 << 16


def version(server: Driver, program: str, shown: Mapping[str, Path]) -> str:
    """The version that ``program`` prints. It sees the same files of the machine as servers, and ``shown``.

    Raises DnsrigError if it does not start or prints no version.
    """
    if server.stated_version is not None:
        return server.stated_version
    binds = [BindMount(place, seen, read_only=True) for seen, place in shown.items()]
    with tempfile.TemporaryFile() as output:
        try:
            _run([program, *server.version_arguments], binds, output)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise DnsrigError(
                f"{program} does not start: {error}", hint="try to run it by hand on this machine"
            ) from error
        output.seek(0)
        printed = output.read(READ_MOST_BYTES).decode(errors="replace")
    if (match := re.search(server.version_pattern, printed)) is None:
        first = printed.partition("\n")[0] or "nothing"
        raise DnsrigError(
            f"{program} does not print a version like {server.title}, but {first!r:.200}",
            hint=f"servers run as the user {confinement.USER}: can that user read and execute it?",
        )
    return match[1]


def _run(command: list[str], binds: list[BindMount], output: IO[bytes]) -> None:
    """Run it, confined like a server if we are root. Other users cannot confine programs."""
    environment = {**ENVIRONMENT, "HOME": confinement.HOME, "LC_ALL": "C"}
    if os.geteuid() == 0:
        confined = Confinement(MACHINE, binds)
        confinement.run(command, confinement=confined, environment=environment, output=output, limit_s=VERSION_LIMIT_S)
        return
    subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        env=environment,
        timeout=VERSION_LIMIT_S,
        check=False,
    )


def fingerprint(path: Path) -> str:
    """A hash that distinguishes two builds of one version."""
    return checksums.sha256(path)[:16]
