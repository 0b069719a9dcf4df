"""Configurations of the user's own: files that replace or extend the configuration of a server.

A draft reads the files and refuses what is wrong with a template, without rendering it. Before a run begins, each is
rendered, and the server itself looks at it, confined as servers are.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import cast

from dnsrig import cached, confinement, paths, sandbox
from dnsrig.errors import UsageError
from dnsrig.experiment.model import Document, HostDocument
from dnsrig.lab.network import Network
from dnsrig.procedures.context import placing
from dnsrig.procedures.context.workspace import Workspace
from dnsrig.rundir import HostSpec, OwnFile, Role, TrialSpec
from dnsrig.servers import driver_of, sources, templates
from dnsrig.servers.driver import Driver
from dnsrig.servers.placement import Placement
from dnsrig.servers.resolving import ANCHOR_FILE, HINTS_FILE

CHECK_LIMIT_S = 60
NOT_THERE = (126, 127)
"""Statuses of a shell for a program that is missing or cannot be executed: a build may lack its checker."""
SHOWN_CHARACTERS = 300
REFUSED_HINT = "the server's own check reports this; `dnsrig servers template` prints a configuration that works"
_COMPLAINT = re.compile(r"error|fatal|unknown|invalid|failed", re.IGNORECASE)
"""In a line that gives the reason, if no line of the output names a place."""
_HINTS = ". 3600 NS a.root.example.\na.root.example. 3600 A 192.0.2.1\n"
_ANCHOR = """\
. 3600 IN DNSKEY 257 3 13 mdsswUyr3DPW132mOi8V9xESWE8jTo0dxCjjnopKl+GqJxpVXckHAeF+KkxLbxILfDLUT0rAK9iUzy1L53eKGQ==
. 3600 IN DS 55648 13 2 b4c8c1fe2e7477127b27115656ad6256f424625bf5c1e2770ce6d6e37df61d17
"""
"""They stand for the files of a simulated Internet, which do not exist before a trial (the key is from RFC 6605)."""


def read(document: Document, name: str, key: str) -> OwnFile | None:
    """The file that ``key`` of an experiment names; None: it names none.

    Raises UsageError if there is no such file, or if it is no text.
    """
    if not name:
        return None
    folder = Path() if document.folder == paths.builtin_experiments() else document.folder
    path = folder / Path(name).expanduser()
    where = f"{key}: {path}"
    if not path.is_file():
        kind = "is a folder" if path.is_dir() else "is no file" if path.exists() else "does not exist"
        raise UsageError(
            f"{where} {kind}", hint="a path is relative to the experiment file; of a built-in one, to here"
        )
    try:
        with path.open("rb") as file:
            data = file.read(templates.MOST_CHARACTERS + 1)
    except OSError as error:
        raise UsageError(f"{where} cannot be read: {error.strerror}") from error
    if len(data) > templates.MOST_CHARACTERS:
        raise UsageError(
            f"{where} has more than {templates.MOST_CHARACTERS:,} bytes",
            hint="let a template make long parts: {% for zone in zones %}",
        )
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{where} is not text in UTF-8 (byte {error.start})") from error
    if "\0" in text:
        raise UsageError(f"{where} is not text: it contains a zero byte")
    return OwnFile(name=name, sha256=hashlib.sha256(data).hexdigest(), text=text)


def check(name: str, said: HostDocument, role: Role | None, server: Driver, files: dict[str, OwnFile | None]) -> None:
    """Refuse files that the server of host ``name`` cannot take, before anything is rendered or started."""
    config, include = files["config"], files["include"]
    given = config or include
    if given is None:
        return
    where = f"hosts.{name}.{'config' if config else 'include'}"
    if role not in server.templates:
        raise UsageError(
            f"{where}: {server.title} has no configuration file", hint="its settings are hosts.NAME.settings"
        )
    for file in (config, include):
        if file is not None:
            templates.check_names(file.text, file.name, server.template_variables)
    if config is None:
        return
    used = sandbox.names(config.text)
    if include is not None and not used.keys() & {"include", "include_folder"}:
        raise UsageError(
            f"hosts.{name}.include: {config.name} does not include it",
            hint="write a line with {{ include }} into it, as in `dnsrig servers template`",
        )
    for key, wanted in (("settings", said.settings), ("resolving", said.resolving)):
        if wanted and not used.keys() & {"settings", key}:
            raise UsageError(
                f"hosts.{name}.{key}: {config.name} does not use them, so they would change nothing",
                hint=f"leave them out, or use the variable {key} in the file, as in `dnsrig servers template`",
            )
    _check_addresses(server, config)


def _check_addresses(server: Driver, config: OwnFile) -> None:
    """Refuse a file that decides where the server listens, although each trial has its own addresses."""
    if not templates.without_addresses(config) or server.address_arguments is not None:
        return
    fixed = (n for n, line in enumerate(config.text.splitlines(), start=1) if re.match(server.listen_pattern, line))
    hint = f"write {server.listen_line}"
    if (line := next(fixed, None)) is not None:
        raise UsageError(
            f"{config.name} line {line} sets where {server.title} listens, but each trial has its own addresses",
            hint=hint,
        )
    if not server.listens_everywhere:
        raise UsageError(f"{config.name} does not set where {server.title} listens", hint=hint)


def try_out(specs: list[TrialSpec]) -> None:
    """Let each server look at its user's configuration. Raises UsageError with the line that it refuses."""
    seen: set[str] = set()
    for spec in specs:
        for name, host in spec.hosts.items():
            if not (host.config or host.include):
                continue
            alike = host.model_copy(update={"cpus": [], "sysctls": {}}).model_dump_json()
            case = alike + spec.transfer.model_dump_json()
            if case not in seen:
                seen.add(case)
                _try_out(spec, name, host)


def _try_out(spec: TrialSpec, name: str, host: HostSpec) -> None:
    assert host.server is not None
    server = driver_of(host.server)
    before = os.umask(cached.READABLE)
    try:
        with tempfile.TemporaryDirectory(prefix="dnsrig-") as folder:
            placement = _placed(spec, name, Path(folder))
            server.configure(placement)
            if server.check_command:
                status, said = _said(server, placement)
                if status not in (0, *NOT_THERE):
                    raise _refused(f"hosts.{name}", server, placement, said)
    finally:
        os.umask(before)


def _placed(spec: TrialSpec, name: str, folder: Path) -> Placement:
    """The place of a server in a trial without a network."""
    folder.chmod(0o755)
    if (world := spec.world) is not None:
        (folder / "servers" / world).mkdir(parents=True)
        for file, text in ((HINTS_FILE, _HINTS), (ANCHOR_FILE, _ANCHOR)):
            (folder / "servers" / world / file).write_text(text)
    alone = spec.model_copy(update={"storage": "disk", "next_dataset": None, "stream": None})
    # Only hosts that run something need the network.
    return placing.place(Workspace(alone, folder, cast(Network, None)), name)


def _said(server: Driver, placement: Placement) -> tuple[int, str]:
    """Exit status and output of the server's own check."""
    confined = placing.confinement(placement)
    confined.give()
    command = sources.executable(placement.source, placement.words(server.check_command))
    try:
        return confinement.run_and_read(
            command, confinement=confined, workdir=placement.seen_state, limit_s=CHECK_LIMIT_S
        )
    except subprocess.TimeoutExpired:
        raise UsageError(
            f"{server.title} did not check its configuration within {CHECK_LIMIT_S:g} s",
            hint="look at what the configuration includes, or try again on a machine with less to do",
        ) from None


def _refused(key: str, server: Driver, placement: Placement, said: str) -> UsageError:
    """What the server says of its configuration, with the line, and the line in the user's file."""
    host, folder = placement.host, placement.directory
    include = f"{templates.INCLUDE_FOLDER}/{server.include_name}"
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    for given, name in ((host.include, include), (host.config, server.configuration_file)):
        place = re.compile(rf"{re.escape(name)}\W+(?:line )?(\d+)|\bline (\d+)")
        found = next(((line, match) for line in lines if (match := place.search(line))), None)
        if given is None or found is None or (name not in found[0] and given is host.include):
            continue
        line, match = found
        return UsageError(
            f"{key}: {server.title} refuses {given.name}{_line(given, (folder / name).read_text(), match)}: "
            f"{line[:SHOWN_CHARACTERS]}",
            hint=REFUSED_HINT,
        )
    given = host.config or host.include
    assert given is not None
    complaint = next((line for line in lines if _COMPLAINT.search(line)), (lines or ["it gives no reason"])[-1])
    return UsageError(f"{key}: {server.title} refuses {given.name}: {complaint[:SHOWN_CHARACTERS]}", hint=REFUSED_HINT)


def _line(given: OwnFile, rendered: str, match: re.Match[str]) -> str:
    """`` line 7``, the line in the user's file; if it is not certain, the text of the line in the rendered file."""
    number = int(next(filter(None, match.groups())))
    lines = rendered.splitlines()
    if rendered == given.text or not 0 < number <= len(lines):
        return f" line {number}"
    text = lines[number - 1].strip()
    same = [n for n, line in enumerate(given.text.splitlines(), start=1) if line.strip() == text]
    shown = f", where line {number} of the rendered file is `{text[:SHOWN_CHARACTERS]}`"
    return f" line {same[0]}{shown}" if len(same) == 1 else shown
