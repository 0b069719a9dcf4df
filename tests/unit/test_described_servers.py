"""Servers that an experiment describes: their commands, and what is refused before anything starts."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest
from placement_data import placed

from dnsrig.errors import UsageError
from dnsrig.experiment import preparation
from dnsrig.experiment.preparation import Draft, Request
from dnsrig.lab.process import Process
from dnsrig.procedures.context import servers as trial_servers
from dnsrig.procedures.context.servers import LogLines, Servers, why_it_ended
from dnsrig.procedures.context.workspace import ServerFailed, Workspace
from dnsrig.procedures.instrument import last_words
from dnsrig.rundir import DescribedServer, ServerDescription, ServerSource
from dnsrig.servers import driver_of, sources

EXPERIMENT = """\
title = "Mine"
question = "Does it answer?"
procedure = "{procedure}"
limit_s = 60
dataset = {{ kind = "tiny-zones", zones = 3 }}
{document}
[servers.mine]
{keys}
"""
SERVED = 'hosts.primary.server = "mine"\noptions.serve_as = "primary"'
FORWARDED = 'hosts.primary.server = "nsd@forky"\nhosts.resolver.server = "mine"\noptions.serve_as = "resolver"'
KEYS = 'command = ["sh", "-c", "true"]\nroles = ["authoritative", "forwarder"]'


def drafted(folder: Path, keys: str = KEYS, document: str = SERVED, procedure: str = "latency") -> Draft:
    experiment = folder / "mine.toml"
    experiment.write_text(EXPERIMENT.format(keys=keys, document=document, procedure=procedure))
    return preparation.draft(Request(str(experiment)))


def source(**keys: Any) -> ServerSource:
    said = ServerDescription(**{"command": ["mine", "{config}"], "roles": ["authoritative"], **keys})
    described = DescribedServer(description=said, template="x", files={"./a.txt": "/tmp/a.txt"})
    return ServerSource(kind="mine", source="system", version="1", described=described)


def test_its_command_has_the_paths_as_it_sees_them(tmp_path: Path) -> None:
    server = driver_of(
        source(
            command=["mine", "-c={config}", "./a.txt", "--on={{ address }}", "{{ config }}", "{x}"], config="m.conf.j2"
        )
    )
    place = placed(tmp_path, "nsd", "primary")
    where = f"{place.seen_directory}/m.conf"
    assert server.command(place) == ["mine", f"-c={where}", "/mnt/files/0/a.txt", f"--on={place.address}", where, "{x}"]
    server.configure(place)
    assert (place.directory / "m.conf").read_text() == "x"


def test_it_loads_zones_by_a_signal_or_a_command(tmp_path: Path) -> None:
    place = placed(tmp_path, "nsd", "primary")
    by_signal, by_command = driver_of(source(reload=["SIGUSR1"])), driver_of(source(reload=["minectl", "{config}"]))
    assert by_signal.load_changes(place) == [] and by_signal.reload_signal == signal.SIGUSR1
    assert by_command.load_changes(place)[0].command == ["minectl", f"{place.seen_directory}/mine.conf"]


def test_its_file_is_beside_the_experiment(tmp_path: Path) -> None:
    (tmp_path / "mine.conf.j2").write_text("{% for zone in zones %}{{ zone.name }}{% endfor %}")
    keys = 'command = ["sh", "-c", "{config}"]\nconfig = "mine.conf.j2"\nroles = ["authoritative"]'
    found = drafted(tmp_path, keys).specs[0].hosts["primary"].server
    assert found is not None and found.name == "mine@system" and found.described is not None
    assert found.described.template.startswith("{% for zone")


@pytest.mark.parametrize("program", ["mine", "build/mine-2"])
def test_a_program_beside_the_experiment_is_a_build_of_its_own(tmp_path: Path, program: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "build").mkdir()
    (tmp_path / program).write_text("#!/bin/sh\n")
    if program != "mine":
        (tmp_path / "mine").symlink_to(program)
    (tmp_path / program).with_name("minectl").write_text("#!/bin/sh\n")
    draft = drafted(tmp_path, 'command = ["./mine"]\nroles = ["authoritative"]')
    found = sources.find("mine", preparation.own_servers.installable(draft.points))
    where = (tmp_path / program).resolve()
    assert found is not None and found.source == str(where), "a program in a checkout is not built"
    command = driver_of(found).command(placed(tmp_path, "nsd", "primary"))
    assert sources.executable(found, command) == [str(where)]
    assert sources.executable(found, ["minectl"]) == [str(where.with_name("minectl"))]
    assert sources.executable(found, ["kill"]) == ["kill"]
    assert list(sources.shown(found)) == ([str(where.parent)] if where.is_relative_to("/tmp") else [])
    assert sources.unchanged(found)


def test_a_changed_file_of_its_command_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "zones.txt").write_text("a")
    draft = drafted(tmp_path, 'command = ["sh", "./zones.txt"]\nroles = ["authoritative"]')
    found = sources.find("mine", preparation.own_servers.installable(draft.points))
    assert found is not None and found.version == "unversioned" and sources.unchanged(found)
    (tmp_path / "zones.txt").write_text("b")
    assert not sources.unchanged(found)


WRONG = [
    ('command = ["./nowhere"]\nroles = ["authoritative"]', "servers.mine.command: .*/nowhere does not exist"),
    ('command = ["sh", "./."]\nroles = ["authoritative"]', "the word './.' of its command: .* is a folder"),
    ('command = []\nroles = ["authoritative"]', "servers.mine.command"),
    ('command = ["sh"]', "the key servers.mine.roles is missing"),
    ('command = ["sh"]\nroles = ["primary"]', "servers.mine.roles"),
    ('command = ["sh", "{config}"]\nroles = ["authoritative"]', "uses {config}, but there is no config"),
    ('command = ["sh"]\nconfig = "a\\n"\nroles = ["authoritative"]', "config is used by no word of its command"),
    (f'{KEYS}\nconfig = "missing.j2"', "config is used by no word"),
    ('command = ["sh", "{config}"]\nconfig = "no.j2"\nroles = ["authoritative"]', "config: .*no.j2 does not exist"),
    ('command = ["sh", "{config}"]\nconfig = "{{ x }}\\n"\nroles = ["authoritative"]', "mine.conf line 1 uses x"),
    (
        'command = ["sh", "{config}"]\nconfig = "x\\n{{ config }}\\n"\nroles = ["authoritative"]',
        "mine.conf line 2 uses config, which is no variable",
    ),
    ('command = ["sh", "{{ prot }}"]\nroles = ["authoritative"]', "the word '{{ prot }}' line 1 uses prot"),
    (f'{KEYS}\nstop = "SIGDOWN"', "servers.mine.stop = 'SIGDOWN' is no signal"),
    (f'{KEYS}\nready = "(a"', "servers.mine.ready = '\\(a' is not a regular expression"),
    (f'{KEYS}\nready = "(a+)+b"', "repeats a repetition"),
    (f'{KEYS}\nfeatures = ["AXFR"]', "there is no feature 'AXFR'"),
    (f"{KEYS}\ncomand = 1", "unknown key servers.mine.comand"),
]


@pytest.mark.parametrize(("keys", "reason"), WRONG)
def test_a_wrong_description_is_refused_with_the_key(tmp_path: Path, keys: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        drafted(tmp_path, keys)


BEYOND = [
    (
        'hosts.primary.server = "mine@git:main"',
        "latency",
        "dnsrig does not build a server that an experiment describes",
    ),
    (f'{SERVED}\noptions.generators = 1\nhosts.primary.machine = "far"', "latency", "must be on the machine"),
    (
        'hosts.primary.server = "mine"\nhosts.resolver.server = "unbound@forky"\noptions.serve_as = "resolver"\nhosts.primary.machine = "far"\nhosts.primary.nic = "a"\nhosts.resolver.nic = "b"\nhosts.observer.nic = "c"',
        "capacity",
        "only on this machine",
    ),
    ('hosts.primary.server = "mine@forky"', "latency", "servers.mine names no package of Debian"),
    (f"{SERVED}\nhosts.primary.settings.depth = 3", "latency", "settings.depth = 3 has no effect"),
    (f"{SERVED}\ntransfer.notify = true", "latency", "has no NOTIFY"),
    (f'{SERVED}\ntransfer.provisioning = "catalog"', "latency", "has no catalog zones"),
    (f'{SERVED}\noptions.transport = "dot"', "latency", "has no DoT"),
    (f"{FORWARDED}\nhosts.resolver.resolving.cache_mb = 64", "capacity", "resolving.cache_mb = 64 has no effect"),
    (f'{FORWARDED}\nhosts.resolver.resolving.level = "validating"', "capacity", "resolving.level = validating has no"),
    ('hosts.primary.server = "nsd@forky"\nhosts.secondary.server = "mine"', "transfer", "mine cannot be a secondary"),
    ('hosts.primary.server = "mine"\nhosts.secondary.server = "nsd@forky"', "update", "cannot load changed zone files"),
]


@pytest.mark.parametrize(("document", "procedure", "reason"), BEYOND)
def test_what_it_cannot_do_is_refused_before_the_start(
    tmp_path: Path, document: str, procedure: str, reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        drafted(tmp_path, document=document, procedure=procedure)


USES = [
    ("{% for name in settings %}{{ name }}{% endfor %}", ""),
    ("{% for name, value in settings.items() %}{{ name }}{% endfor %}", ""),
    ("{{ settings.get('depth', 1) }}", ""),
    ("{{ settings | tojson }}", ""),
    ("{{ settings['depth'] }}", ""),
    ("{% set own = settings %}{{ own.depth }}", ""),
    ("x", 'reload = ["sh", "{{ settings.depth }}"]'),
    ("x", 'reload = ["sh", "{{ settings.get(\'depth\') }}"]'),
]


@pytest.mark.parametrize(("template", "more"), USES)
def test_a_template_uses_settings_in_any_way(tmp_path: Path, template: str, more: str) -> None:
    (tmp_path / "mine.j2").write_text(template)
    keys = f'command = ["sh", "{{{{ config | lower }}}}"]\nconfig = "mine.j2"\nroles = ["authoritative"]\n{more}'
    drafted(tmp_path, keys, f"{SERVED}\nhosts.primary.settings.depth = 3")
    (tmp_path / "mine.j2").write_text("{{ settings.get('width', settings.size | default(1)) }}")
    if not more:
        with pytest.raises(UsageError, match=r"settings\.depth = 3 has no effect"):
            drafted(tmp_path, keys, f"{SERVED}\nhosts.primary.settings.depth = 3")


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="bind is a kind of server that dnsrig knows"):
        drafted(tmp_path, f"{KEYS}\n[servers.bind]\n{KEYS}")


def test_two_programs_under_one_name_are_refused(tmp_path: Path) -> None:
    axis = '[matrix.build]\na = {}\nb.servers.mine.version = "2"'
    with pytest.raises(UsageError, match="has another program or other packages in the variant b"):
        preparation.own_servers.installable(drafted(tmp_path, f"{KEYS}\n{axis}").points)


def test_a_line_of_a_log_is_found_however_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_servers, "LINE_MOST_BYTES", 20)
    path = tmp_path / "server.log"
    path.write_bytes(b"")
    with path.open("rb") as log, path.open("ab", buffering=0) as writing:
        lines = LogLines(log, re.compile("^ready"))
        writing.write(b"starting\nrea")
        assert not lines.found()
        writing.write(b"dy" * 40 + b" ready\nnot ready\n")
        assert lines.found(), "a line that is cut has its beginning"
        writing.write(b"x" * 50 + b"ready\n")
        assert not lines.found(), "the rest of a cut line is no line"
        writing.write(b"\xffready\nready\n")
        assert lines.found()


def test_an_endless_log_ends_the_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_servers, "LOG_MOST_BYTES", 1 << 20)
    place, log = placed(tmp_path, "nsd", "primary"), tmp_path / "server.log"
    process = Process("nsd", "primary", ["nsd"], subprocess.Popen(["true"]))
    process.stopped_by_us = True
    running = Servers(cast(Workspace, None), started={"primary": trial_servers.Server(place, process, log)})
    log.write_bytes(b"x" * (1 << 20))
    running.check()
    log.write_bytes(b"x" * (2 << 20))
    with pytest.raises(ServerFailed, match="on host primary wrote more than 1 MiB of log; lower its log level"):
        running.check()
    process.popen.wait()


def test_the_last_words_of_a_large_log_are_read_from_its_end(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(b"x" * (1 << 21) + b"\nlast\n")
    assert last_words(log) == ": last"
    assert why_it_ended(log) == ": last"
