"""Configurations of the user's own: servers look at them before a run begins, and run with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import specs
from suites import quick

from dnsrig.errors import UsageError
from dnsrig.runs.trial import Trial
from dnsrig.servers import driver
from dnsrig.servers.driver import GIVEN

EXPERIMENT = """\
title = "Mine"
question = "Is it my configuration that runs?"
procedure = "transfer"
limit_s = 60
repeats = 1
dataset = {{ kind = "tiny-zones", zones = 20 }}
hosts.primary.server = "nsd@forky"
hosts.secondary.server = "{kind}@forky"
{more}
"""
TRANSFERS = ["bind", "knot", "nsd", "powerdns"]
RESOLVERS = ["unbound", "powerdns-recursor"]
WRONG = {
    "bind": "zone nonsense;",
    "knot": "nonsense: 1",
    "nsd": "nonsense: 1",
    "powerdns": "nonsense=1",
    "unbound": "nonsense: 1",
    "powerdns-recursor": "nonsense: 1",
}
TUNED = {
    "bind": "max-refresh-time {{ 2000 * 2 }};",
    "knot": "server:\n    tcp-idle-timeout: {{ 10 * 2 }}",
    "nsd": "server:\n    tcp-timeout: {{ 30 * 2 }}",
    "powerdns": "max-tcp-connections={{ 11 * 3 }}",
}


def experiment(folder: Path, kind: str, more: str) -> str:
    (folder / "mine.toml").write_text(EXPERIMENT.format(kind=kind, more=more))
    return str(folder / "mine.toml")


@pytest.mark.parametrize("kind", [*TRANSFERS, *RESOLVERS])
def test_what_a_server_refuses_is_reported_before_a_run(tmp_path: Path, kind: str) -> None:
    """The copy of dnsrig's own template passes; a wrong line is reported with its number in the user's file."""
    server = driver(kind)
    role, name = ("resolver", "unbound.conf.j2") if kind in RESOLVERS else ("secondary", "mine.conf.j2")
    text = server.template(role)  # type: ignore[arg-type]
    (tmp_path / name).write_text(f"{text}{WRONG[kind]}\n")
    setting = [f"hosts.{role}.server={kind}@forky", f"hosts.{role}.config={tmp_path / name}"]
    builtin = ("resolver-cache", 'names=["cached"]', "transport=udp") if role == "resolver" else ("tour", "zones=20")
    if role == "secondary":
        setting[0] = f"server={kind}@forky"
    with pytest.raises(UsageError, match=rf"refuses .*{name}") as caught:
        specs(*builtin, *setting)
    number = len(text.splitlines()) + 1
    assert "powerdns" in kind or f"{name} line {number}" in caught.value.message
    (tmp_path / name).write_text(text)
    assert specs(*builtin, *setting)


@pytest.mark.parametrize("kind", quick(TRANSFERS, "bind"))
def test_a_server_runs_with_its_user_s_files(measure: Callable[..., Trial], tmp_path: Path, kind: str) -> None:
    server = driver(kind)
    (tmp_path / "mine.conf.j2").write_text(server.template("secondary") + "{# mine #}\n")
    (tmp_path / "tuning.conf").write_text(f"{TUNED[kind]}\n")
    more = 'hosts.secondary.config = "mine.conf.j2"\nhosts.secondary.include = "tuning.conf"'
    trial = measure(experiment=experiment(tmp_path, kind, more))
    assert trial.record.outcome == "done", trial.record.reason
    folder = trial.directory / "servers/secondary"
    assert (folder / f"{server.configuration_file}{GIVEN}").read_text().endswith("{# mine #}\n")
    assert "mine" not in (folder / server.configuration_file).read_text()
    assert (folder / f"{server.include_name}{GIVEN}").read_text() == f"{TUNED[kind]}\n"
    rendered = (folder / "include" / server.include_name).read_text()
    assert rendered.split()[-1].rstrip(";").rpartition("=")[2] in ("4000", "20", "60", "33")


PLAIN = {
    "bind": """\
options { directory "/mnt/state"; pid-file none; session-keyfile none; recursion no; allow-transfer { any; }; };
controls { };
zone "z000000.example" { type primary; file "/mnt/dataset/zones/000/z000000.example.zone"; };
""",
    "nsd": """\
server:
    username: ""
    zonesdir: "/mnt/state"
    zonelistfile: "/mnt/state/zone.list"
    xfrdfile: "/mnt/state/xfrd.state"
    xfrdir: "/mnt/state"
    pidfile: ""
remote-control:
    control-enable: no
zone:
    name: z000000.example
    zonefile: /mnt/dataset/zones/000/z000000.example.zone
    provide-xfr: 0.0.0.0/0 NOKEY
""",
}


def plain(folder: Path, kind: str, text: str) -> str:
    """An experiment in which a primary has a file without variables: dnsrig sets its addresses."""
    (folder / "plain.conf").write_text(text)
    more = f'hosts.primary.config = "plain.conf"\nhosts.primary.server = "{kind}@forky"\n'
    experiment = EXPERIMENT.replace('hosts.primary.server = "nsd@forky"\n', "").replace("zones = 20", "zones = 1")
    (folder / "mine.toml").write_text(experiment.format(kind="knot", more=f"{more}options.primary_ready_limit_s = 4"))
    return str(folder / "mine.toml")


@pytest.mark.parametrize("kind", quick(sorted(PLAIN), "nsd"))
def test_a_plain_file_listens_where_the_trial_asks(measure: Callable[..., Trial], tmp_path: Path, kind: str) -> None:
    record = measure(experiment=plain(tmp_path, kind, PLAIN[kind])).record
    assert record.outcome == "done", record.reason


@pytest.mark.full
def test_a_server_that_does_not_answer_was_asked_at_an_address(measure: Callable[..., Trial], tmp_path: Path) -> None:
    record = measure(experiment=plain(tmp_path, "bind", 'options { directory "/mnt/state"; port 54; };\n')).record
    assert record.outcome == "server-failed", record.reason
    assert "did not answer for all its zones within 4 s: it was asked at 198.18.0.1 port 53" in record.reason
