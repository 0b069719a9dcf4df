"""Templates of configurations: their variables, what is refused with a reason, and what a hostile one can do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import test_configurations as tested
from placement_data import placed

from dnsrig import sandbox
from dnsrig.errors import UsageError
from dnsrig.rundir import TransferSpec
from dnsrig.servers import all_drivers, driver, templates

WITH_TEMPLATES = [(kind, role) for kind, server in all_drivers().items() for role in server.templates]


def shape(value: object) -> object:
    """The keys of tables, down to values."""
    if isinstance(value, dict):
        return {key: shape(part) for key, part in value.items()}
    return [shape(part) for part in value[:1]] if isinstance(value, list) else type(value)


def test_the_example_has_the_variables_of_a_server(tmp_path: Path) -> None:
    place = placed(tmp_path, "nsd", "secondary")
    values = templates.variables(place)
    assert values.keys() == templates.EXAMPLE.keys() == templates.MEANINGS.keys()
    for name in values.keys() - {"secondaries", "settings", "database"}:
        assert shape(values[name]) == shape(templates.EXAMPLE[name]), name


def test_a_template_gets_addresses_zones_and_primaries(tmp_path: Path) -> None:
    place = placed(tmp_path, "nsd", "secondary", settings={"depth": 3})
    text = (
        "{% for zone in zones %}\n{{ zone.name }} {{ zone.file }} {{ primaries[0] }}\n{% endfor %}\n"
        "{{ address }}#{{ port }} {{ settings.depth }}\n"
    )
    lines = templates.rendered(text, "mine.conf", templates.variables(place)).splitlines()
    assert lines[0] == f"{place.zones[0].name} {place.seen_zone_file(place.zones[0])} {place.routes[0].primary}"
    assert lines[-1] == f"{place.address}#53 3"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{% for zone in zones %}", "mine.conf line 1: Unexpected end of template"),
        ("a\n{% if %}\n", "mine.conf line 2: Expected an expression"),
        ("a\n{{ adress }}", "mine.conf line 2 uses adress, which is no variable"),
        ("{{ " + "(" * 5000, "mine.conf"),
        ("{{ zones[0].nmae }}", "mine.conf line 1 cannot be rendered: .*no attribute 'nmae'"),
        ("\n\n{{ zones[7].name }}", "mine.conf line 3 cannot be rendered: list object has no element 7"),
        ("{% include '/etc/passwd' %}", "mine.conf line 1: a template cannot take in other files"),
        ("{{ address.__class__.__mro__ }}", "mine.conf line 1 cannot be rendered: .*unsafe"),
        ("{% set _ = zones.append(1) %}", "mine.conf line 1 cannot be rendered: .*unsafe"),
        ("{% for a in range(10000000) %}a{% endfor %}", "mine.conf line 1 cannot be rendered: .*[Rr]ange too big"),
        ("{{ 'a' * 10**10 }}", "mine.conf.* cannot be rendered: (MemoryError|.*status)"),
        ("{% for n in range(99999) %}{{ 'a' * 99999 }}{% endfor %}", "cannot be rendered: (MemoryError|.*status)"),
        ("{{ 1 // 0 }}", "mine.conf line 1 cannot be rendered"),
        ("x" * (templates.MOST_CHARACTERS + 1), "more than"),
    ],
)
def test_a_wrong_template_is_refused_before_the_start(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        templates.check(text, "mine.conf", {})


def test_a_name_that_is_nearly_a_variable() -> None:
    with pytest.raises(UsageError) as caught:
        templates.check_names("{{ adresses }}", "mine.conf", {})
    assert caught.value.hint == "did you mean addresses?"


@pytest.mark.parametrize(("kind", "role"), WITH_TEMPLATES)
def test_variables_of_servers_are_described(tmp_path: Path, kind: str, role: str) -> None:
    server = driver(kind)
    known = server.known(tested.place(tmp_path, kind, role, {}))
    assert templates.MEANINGS.keys() <= known.keys() <= {*templates.MEANINGS, *server.template_variables}
    templates.check_names(server.template(role), "ours", server.template_variables)


def test_the_reference_describes_every_variable() -> None:
    page = Path(__file__).parents[2].joinpath("docs/reference/configuration.md").read_text()
    rows = [f"| `{name}` | {meaning} |" for name, meaning in templates.MEANINGS.items()]
    for kind, server in all_drivers().items():
        rows += [f"| `{kind}` | `{name}` | {meaning} |" for name, meaning in server.template_variables.items()]
        assert not server.templates or f"| `{kind}` | " in page.partition("## Where a snippet goes")[2]
    assert [row for row in rows if row not in page] == []


@pytest.mark.parametrize("kind", all_drivers())
def test_all_commands_of_a_server_have_the_same_placeholders(tmp_path: Path, kind: str) -> None:
    place, server = placed(tmp_path, kind, "primary"), driver(kind)
    for command in (server.settings_command, server.check_command, server.defaults_command):
        assert not any(mark in " ".join(place.words(command)) for mark in "{}")
    assert place.words(["-c{folder}/a", "{state}"]) == ["-c/mnt/server/a", "/mnt/state"]


@pytest.mark.parametrize(("kind", "role"), WITH_TEMPLATES)
def test_a_user_s_copy_gives_the_same_configuration(tmp_path: Path, kind: str, role: str) -> None:
    server = driver(kind)
    known = server.known(tested.place(tmp_path, kind, role, {"settings": tested.SETTINGS[kind]}))
    text = server.template(role)
    assert templates.rendered(text, "copy", known) == templates.configuration(text, known, None)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to give up")
def test_the_process_that_renders_is_nobody_with_limits() -> None:
    program = (
        "import os, resource; from dnsrig import sandbox; sandbox._give_up_rights()\n"
        "print(os.getresuid(), os.getgroups())\n"
        "print([resource.getrlimit(getattr(resource, 'RLIMIT_' + name)) for name in ('CPU', 'AS', 'FSIZE', 'CORE')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    limits = [60, sandbox.MEMORY_LIMIT_BYTES, sandbox.OUTPUT_LIMIT_BYTES, 0]
    assert done.stdout == f"(65534, 65534, 65534) []\n{[(limit, limit) for limit in limits]}\n"


def test_a_template_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "CPU_LIMIT_S", 0.5)
    text = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    with pytest.raises(UsageError, match="took longer than"):
        templates.check(text, "mine.conf", {})


@pytest.mark.parametrize(
    ("transport", "tls", "quic", "tsig", "port"),
    [
        ("tcp", False, False, False, 53),
        ("tcp+tsig", False, False, True, 53),
        ("xot", True, False, False, 853),
        ("xot+tsig", True, False, True, 853),
        ("xoq", False, True, False, 853),
    ],
)
def test_a_template_knows_how_zones_are_transferred(
    tmp_path: Path, transport: str, tls: bool, quic: bool, tsig: bool, port: int
) -> None:
    asked = TransferSpec(transport=transport, ixfr=True, notify=False, updates=True)  # type: ignore[arg-type]
    values = templates.variables(placed(tmp_path, "nsd", "secondary", transfer=asked))
    same = {"ixfr": True, "notify": False, "updates": True}
    assert values["transfer"] == {"tls": tls, "quic": quic, "tsig": tsig, **same}
    assert [route["port"] for route in values["routes"]] == [port]
    for role in ("resolver", "frontend"):
        values = templates.variables(placed(tmp_path / role, "nsd", role, transfer=asked))
        assert [route["port"] for route in values["routes"]] == [53], "it asks for answers"
    values = templates.variables(placed(tmp_path / "behind", "nsd", "frontend", transfer=asked, backend_proxied=True))
    assert [route["port"] for route in values["routes"]] == [8053]
