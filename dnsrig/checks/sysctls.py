"""Share of the hosts' configured sysctls that had the configured value when read back."""

from __future__ import annotations

from dnsrig.checks import Seen, cannot_tell
from dnsrig.runs import sockets
from dnsrig.runs.trial import Trial

TITLE = "effective sysctls"
UNIT = "% of configured sysctls"


def look(trial: Trial) -> Seen:
    read_back = trial.record.conditions.get("hosts", {})
    asked = [
        (host, name, value) for host, spec in trial.record.spec.hosts.items() for name, value in spec.sysctls.items()
    ]
    if not asked or not all(host in read_back for host, _, _ in asked):
        return cannot_tell("they were not read back")
    wrong = [
        f"{host}: {name} = {sockets.sysctl_of(trial, host, name)}"
        for host, name, value in asked
        if (sockets.sysctl_of(trial, host, name) or "").split() != value.split()
    ]
    return Seen(100 * (len(asked) - len(wrong)) / len(asked), least=100.0, why="; ".join(wrong))
