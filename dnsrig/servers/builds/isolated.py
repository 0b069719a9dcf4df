"""Runs a command in a root file system, without network, as a user without rights, in namespaces of its own.

The machine's `unshare` (util-linux) makes the namespaces, the engine's `enter` changes the root, and the root's
`setpriv` gives every right away for good. Whatever the command starts ends with it, and all of it ends with us: the
first process of a PID namespace takes the others along (pid_namespaces(7)), and dies with its parent.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from dnsrig import paths
from dnsrig.bind_mounts import BindMount
from dnsrig.errors import DnsrigError

USER = 65534
"""nobody, and nogroup, as `dnsrig.servers.debian` has them in every root."""
_NAMESPACES = ("--net", "--ipc", "--uts", "--pid", "--fork", "--kill-child")
# The kernel forgets with whom to die when a process changes its user (PR_SET_PDEATHSIG, prctl(2)): said again.
_NO_RIGHTS = ("--pdeathsig=KILL", "--clear-groups", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all")


def run(
    command: Sequence[str],
    *,
    root: Path,
    binds: Sequence[BindMount],
    workdir: str,
    environment: Mapping[str, str],
    output: IO[bytes],
    limit_s: float,
) -> int:
    """The command's exit status, negative for a signal; standard output and error go to ``output``.

    Raises subprocess.TimeoutExpired after ``limit_s``, DnsrigError where nothing can be isolated.
    """
    _check()
    enter = [str(paths.engine()), "enter"]
    inside = [*enter, "--root", str(root), *(word for bind in binds for word in bind.arguments())]
    rights = ["setpriv", f"--reuid={USER}", f"--regid={USER}", *_NO_RIGHTS]
    words = [*enter, "--", "unshare", *_NAMESPACES, *inside, "--workdir", workdir, "--", *rights, *command]
    process = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        env=dict(environment),
        start_new_session=True,
    )
    try:
        return process.wait(limit_s)
    finally:
        process.kill()
        process.wait()


def _check() -> None:
    if os.geteuid() != 0:
        raise DnsrigError("building a server in a root file system needs root", hint="run it again with sudo")
    if shutil.which("unshare") is None:
        raise DnsrigError(
            "unshare is not installed", hint="apt-get install util-linux (or your distribution's package)"
        )
