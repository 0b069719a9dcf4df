"""Servers that an experiment describes, live: they take part as all others do, and each failure has its reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dnsrig.runs.trial import Trial

HICKORY = '''\
title = "A described server"
question = "Does it take part?"
procedure = "latency"
limit_s = 60
repeats = 1
dataset = { kind = "tiny-zones", zones = 30 }
hosts.primary.server = "hickory@forky"
options = { rate_qps = 500, duration_s = 1, ready_limit_s = 30 }

[servers.hickory]
packages = ["hickory-dns"]
command = ["hickory-dns", "--workers={{ threads }}", "--config={config}"]
roles = ["authoritative"]
ready = "server starting up"
config = """
listen_addrs_ipv4 = ["{{ addresses[0] }}"]
listen_addrs_ipv6 = ["{{ addresses[1] }}"]
{% for zone in zones %}
[[zones]]
zone = "{{ zone.name }}"
zone_type = "Primary"
file = "{{ zone.file }}"
{% endfor %}
"""
'''
BROKEN = """\
title = "A broken server"
question = "What went wrong?"
procedure = "latency"
limit_s = 60
repeats = 1
dataset = {{ kind = "tiny-zones", zones = 3 }}
hosts.primary.server = "mine"
options = {{ rate_qps = 500, duration_s = 1, ready_limit_s = 2 }}
[servers.mine]
command = {command}
roles = ["authoritative"]
{more}
"""


def test_a_server_without_a_driver_is_measured(measure: Callable[..., Trial], tmp_path: Path) -> None:
    experiment = tmp_path / "mine.toml"
    experiment.write_text(HICKORY)
    trial = measure(experiment=str(experiment))
    record = trial.record
    assert record.outcome == "done", record.reason
    assert trial.load.rcodes == {"NOERROR": 500}
    server = record.servers["primary"]
    assert server.privileges is not None and server.privileges.user == 65534 and server.privileges.no_new_privileges
    assert server.server.version.startswith("0.") and server.threads


FAILURES = [
    ('["sh", "-c", "echo no such zone; exit 3"]', "", "exited with status 3: no such zone"),
    ('["sh", "-c", "sleep 60"]', "", "did not answer for all its zones within 2 s"),
    ('["sh", "-c", "sleep 60"]', 'ready = "listening"', "wrote no line that matches 'listening' within 2 s"),
    ('["sh", "-c", "trap \'\' TERM; while :; do sleep 1; done"]', "", "did not answer for all its zones within 2 s"),
    ('["nowhere", "-c", "x"]', "", "mine (nowhere) is not installed on this machine"),
]


@pytest.mark.full
@pytest.mark.parametrize(("command", "more", "reason"), FAILURES)
def test_a_server_that_fails_has_a_reason(
    measure: Callable[..., Trial], tmp_path: Path, command: str, more: str, reason: str
) -> None:
    experiment = tmp_path / "mine.toml"
    experiment.write_text(BROKEN.format(command=command, more=more))
    try:
        record = measure(experiment=str(experiment)).record
    except Exception as error:
        assert reason in str(error)
        return
    assert record.outcome == "server-failed" and record.reason is not None
    assert reason in record.reason
    assert len(record.reason) < 1000


DNSDIST = '''\
title = "dnsdist over HTTPS"
question = "Does load understand the HTTP/2 of another server?"
procedure = "latency"
limit_s = 60
repeats = 1
dataset = { kind = "tiny-zones", zones = 30 }
hosts.primary.server = "nsd@forky"
hosts.resolver.server = "front@forky"
options = { serve_as = "resolver", transport = "doh", rate_qps = 200, duration_s = 1, ready_limit_s = 30 }

[servers.front]
packages = ["dnsdist", "systemd-standalone-sysusers"]
command = ["dnsdist", "--supervised", "--disable-syslog", "-C", "{config}"]
roles = ["forwarder"]
features = ["DoH"]
config = """
setACL({"0.0.0.0/0", "::/0"})
setLocal("{{ address }}:{{ port }}")
{% if over_https %}
addDOHLocal("{{ address }}:{{ https_port }}", "{{ certificate }}", "{{ private_key }}", "/dns-query")
{% endif %}
newServer({address="{{ primaries[0] }}", healthCheckMode="up"})
"""
'''


@pytest.mark.full
def test_dnsdist_answers_over_https(measure: Callable[..., Trial], tmp_path: Path) -> None:
    experiment = tmp_path / "mine.toml"
    experiment.write_text(DNSDIST)
    trial = measure(experiment=str(experiment))
    assert trial.record.outcome in ("done", "invalid"), trial.record.reason
    load = trial.load
    assert load.rcodes == {"NOERROR": 200} and load.connections.established == 16, load
