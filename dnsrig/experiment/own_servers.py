"""Servers that an experiment describes under ``[servers.NAME]``: read, and refused with a reason if they cannot be."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import get_args

from dnsrig import foreign, paths
from dnsrig.errors import UsageError
from dnsrig.experiment.model import Document, Point
from dnsrig.procedures import procedure, versions
from dnsrig.rundir import ANSWERS, DescribedServer, HostSpec, Resolving, ServerDescription, TrialSpec
from dnsrig.servers import all_drivers, described, templates
from dnsrig.servers.driver import Driver, Feature
from dnsrig.servers.programs import fingerprint
from dnsrig.servers.running import RUNNING
from dnsrig.servers.sources import suite

MOST = 50
"""Limit for the servers that an experiment describes."""
NAME = r"[a-z][a-z0-9-]{0,30}"
TAKEN_NAMES = ("server.log", "server-before.log", "prepare.log", "exec.json")
"""Files of dnsrig in a server's folder."""
REPEATED_REPEAT = re.compile(r"[+*}]\)[+*{]")
"""A repetition of a repetition, for which `re` may need a time that grows without limit."""


def drivers(document: Document) -> dict[str, Driver]:
    """The drivers of the servers that ``document`` describes, by name. Raises UsageError if one cannot be."""
    return {name: described.driver_of(name, server) for name, server in described_in(document).items()}


def described_in(document: Document) -> dict[str, DescribedServer]:
    """The servers that ``document`` describes, with the contents of their files. Raises what `drivers` raises."""
    if len(document.servers) > MOST:
        raise UsageError(f"the experiment describes {len(document.servers)} servers, more than {MOST}")
    return {name: read(name, said, document.folder) for name, said in document.servers.items()}


def installable(points: Iterable[Point]) -> dict[str, Driver]:
    """The drivers with which the servers of ``points`` are installed.

    Points may describe a server with different configurations, but not with different programs.
    """
    found: dict[str, described.Described] = {}
    for point in points:
        for name, driver in drivers(point.document).items():
            assert isinstance(driver, described.Described)
            before = found.setdefault(name, driver)
            if _installed(before) != _installed(driver):
                raise UsageError(
                    f"servers.{name} has another program or other packages in the variant"
                    f" {' '.join(map(str, point.parameters.values()))}",
                    hint="describe two servers, with two names",
                )
    return {**found}


def _installed(driver: described.Described) -> tuple[object, ...]:
    """What identifies the program of a described server."""
    said = driver.described.description
    return said.command[0], driver.described.program, tuple(said.packages), said.version


def read(name: str, said: ServerDescription, folder: Path) -> DescribedServer:
    """The server ``name`` with its template and its files. ``folder``: of the experiment's file."""
    where = f"servers.{name}"
    _check_words(name, where, said)
    program = folder / said.command[0] if said.command[0].startswith("./") else Path(said.command[0])
    words = [word for words in (said.command[1:], said.reload[1:]) for word in words if word.startswith("./")]
    files = {word: _file(f"{where}: the word {word!r} of its command", folder / word) for word in words}
    return DescribedServer(
        description=said,
        program=str(_file(f"{where}.command", program)) if "/" in said.command[0] else "",
        template=_template(f"{where}.config", said.config, folder),
        files={word: str(file) for word, file in files.items()},
        hashes={word: fingerprint(file) for word, file in files.items()},
    )


def _check_words(name: str, where: str, said: ServerDescription) -> None:
    """Refuse a description that contradicts itself."""
    uses_config = any(described.CONFIG in word for word in said.command) or "config" in _used(said.command)
    wrong = {
        f"{where}: a server's name has small letters, digits and dashes, at most 31": not re.fullmatch(NAME, name),
        f"{where}: {name} is a kind of server that dnsrig knows": name in (*all_drivers(), RUNNING.kind),
        f"{where}.command uses {described.CONFIG}, but there is no config": uses_config and not said.config,
        f"{where}.config is used by no word of its command": bool(said.config) and not uses_config,
        f"{where}.stop = {said.stop!r} is no signal": said.stop not in signal.Signals.__members__,
        f"{where}.command: an argument is empty": not all(said.command),
    }
    hints = {"kind of server": "choose another name", "no config": 'e.g. config = "mine.conf.j2"'}
    if reason := next((text for text, applies in wrong.items() if applies), ""):
        hint = next((hint for part, hint in hints.items() if part in reason), "")
        raise UsageError(reason, hint=hint or 'e.g. command = ["./mine", "-conf", "{config}"], stop = "SIGTERM"')
    if unknown := sorted({*said.features} - {*get_args(Feature)}):
        raise UsageError(
            f"{where}.features: there is no feature {unknown[0]!r}", hint=f"features are {', '.join(get_args(Feature))}"
        )
    if said.ready != ANSWERS:
        _check_pattern(f"{where}.ready", said.ready)


def _check_pattern(where: str, pattern: str) -> None:
    hint = f'write a regular expression for one line of its log, or "{ANSWERS}"'
    try:
        re.compile(pattern)
    except re.error as error:
        raise UsageError(f"{where} = {pattern!r} is not a regular expression: {error}", hint=hint) from error
    if REPEATED_REPEAT.search(pattern):
        raise UsageError(f"{where} = {pattern!r} repeats a repetition, which can take very long", hint=hint)


def _template(where: str, config: str, folder: Path) -> str:
    """The text of a template: of a file, or the value itself if it has several lines."""
    if "\n" in config or not config:
        return config
    file = _file(where, folder / config)
    if file.name.removesuffix(".j2") in TAKEN_NAMES:
        raise UsageError(f"{where}: {file.name} is a file of dnsrig", hint="call it e.g. mine.conf.j2")
    try:
        return foreign.text(file)
    except (OSError, UnicodeDecodeError, foreign.Refused) as error:
        raise UsageError(f"{where}: {file} cannot be read as text: {error}", hint="write it in UTF-8") from error


def _file(where: str, path: Path) -> Path:
    found = path.expanduser().resolve()
    if not found.is_file():
        what = "is a folder" if found.is_dir() else "does not exist"
        raise UsageError(f"{where}: {found} {what}", hint="paths begin at the folder of the experiment's file")
    paths.check_for_servers(found)
    return found


def check(spec: TrialSpec, name: str, host: HostSpec, driver: described.Described) -> None:
    """Refuse a described server on the host ``name`` that cannot do what the trial needs, with the reason."""
    where = f"the variant {spec.variant.label}: {driver.kind} (host {name})"
    said = driver.described.description
    needed_versions = len(versions(procedure(spec.procedure), spec.dataset.parameters, spec.options))
    if host.role == "primary" and needed_versions > 1 and not said.reload:
        raise UsageError(
            f"{where} cannot load changed zone files, which the procedure {spec.procedure} needs",
            hint=f'set servers.{driver.kind}.reload, e.g. ["SIGHUP"]',
        )
    if host.role == "resolver" and spec.world is not None and "resolver" not in said.roles:
        raise UsageError(
            f"{where} only forwards, but a simulated Internet has no server that resolves for it",
            hint='let it ask a primary: options.resolve_from = "primaries"',
        )
    used = _used([driver.described.template, *said.command, *said.reload])
    _check_used(where, used, {f"settings.{key}": str(value) for key, value in host.settings.items()})
    if host.resolving is not None:
        _check_used(where, used, _changed(host.resolving))
    assert host.server is not None
    if host.machine is not None and (driver.described.files or not suite.takes(host.server.source)):
        raise UsageError(
            f"{where} and the files of its command are only on this machine",
            hint=f"dnsrig installs packages of Debian on other machines, e.g. {driver.kind}@forky",
        )
    if host.config is not None or host.include is not None:
        raise UsageError(f"{where}: its configuration is servers.{driver.kind}.config", hint="leave the host's own out")
    known = {"role": host.role, "settings": host.settings, "resolving": (host.resolving or Resolving()).model_dump()}
    name = described.config_name(driver.kind, driver.described)
    _check_template(driver.described.template, name, json.dumps(known, sort_keys=True))
    for word in [*said.command, *said.reload]:
        text = json.dumps({**known, "config": ""}, sort_keys=True)
        _check_template(word, f"servers.{driver.kind}: the word {word!r}", text)


@lru_cache(maxsize=1000)
def _check_template(text: str, where: str, known: str) -> None:
    """`templates.check`, once for equal arguments, because it starts a process. ``known``: as JSON."""
    if described.is_template(text):
        templates.check(text, where, json.loads(known))


def _used(texts: Iterable[str]) -> set[str]:
    """The variables that templates use, with the parts of tables as in `templates.uses`."""
    found = set()
    for text in texts:
        try:
            found |= templates.uses(text)
        except Exception:  # `templates.check` reports a template that cannot be read
            continue
    return found


def _changed(resolving: Resolving) -> dict[str, str]:
    """The settings of a resolver that are not at their defaults."""
    fields = Resolving.model_fields
    values = resolving.model_dump()
    return {f"resolving.{name}": str(values[name]) for name in fields if values[name] != fields[name].default}


def _check_used(where: str, used: set[str], wanted: Mapping[str, str]) -> None:
    for key, value in wanted.items():
        table = key.partition(".")[0]
        if not used & {key, table}:
            raise UsageError(
                f"{where}: {key} = {value} has no effect, because the template does not use it",
                hint=f"use {{{{ {key} }}}} in the template, or leave the setting out",
            )
