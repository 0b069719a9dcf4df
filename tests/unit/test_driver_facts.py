"""What dnsrig knows of each server, as it was: its features, flags and limits, how it transfers, and with which words
it is started.

The facts are in ``golden/drivers.json``. If a change is meant, ``DNSRIG_BLESS=1`` makes it anew. Sentences for people
are left out.
"""

from __future__ import annotations

import dataclasses
import json
import re
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import test_configurations as tested
from golden_files import same

from dnsrig.rundir import TransferSpec
from dnsrig.servers import all_drivers
from dnsrig.servers.behaviour import Transport
from dnsrig.servers.driver import Driver

GOLDEN = Path(__file__).with_name("golden") / "drivers.json"
TRANSPORTS: tuple[Transport, ...] = ("tcp", "xot")
KINDS = sorted(kind for kind, server in all_drivers().items() if type(server).__module__.startswith("dnsrig."))
"""Plug-ins are left out."""


def shown(value: Any) -> Any:
    """A value as JSON; None: nothing to be held."""
    if isinstance(value, signal.Signals):
        return value.name
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, re.Pattern):
        return value.pattern
    if isinstance(value, str):
        return None if " " in value else value
    if isinstance(value, Mapping):
        return {str(key): told for key, inner in value.items() if (told := shown(inner)) is not None}
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    if isinstance(value, list | tuple):
        return [shown(inner) for inner in value]
    if dataclasses.is_dataclass(value):
        return shown({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
    return None


def facts(server: Driver) -> dict[str, Any]:
    """Attributes of its class, limits that it has by default, and how it transfers as a secondary."""
    own = {name: getattr(type(server), name) for name in dir(type(server)) if not name.startswith("_")}
    found: dict[str, Any] = shown({name: value for name, value in own.items() if not callable(value)})
    found["limits"] = {role: shown(server.limits(role, {})) for role in server.roles}
    if (secondary := server.as_secondary) is not None:
        found["transfers"] = {
            "workers": secondary.workers({}),
            "connections": secondary.connections({}),
            "policies": [secondary.policy({}, transport) for transport in TRANSPORTS],
            "soa": [secondary.soa(transport) for transport in TRANSPORTS],
            "time_wait": [secondary.time_wait(transport) for transport in TRANSPORTS],
        }
    return found


def words(folder: Path, kind: str, role: str) -> dict[str, Any]:
    """The commands of a server in a role."""
    server = all_drivers()[kind]
    place = tested.place(folder, kind, role, {"transfer": TransferSpec(notify=True, ixfr=True)})
    server.configure(place)
    told = {
        "command": server.command(place),
        "preparations": server.preparations(place),
        "workdir": server.workdir(place),
    }
    return json.loads(json.dumps(shown(told)).replace(str(folder), "FOLDER"))  # type: ignore[no-any-return]


def test_facts_of_servers_are_as_they_were(tmp_path: Path) -> None:
    found = {
        kind: facts(all_drivers()[kind])
        | {
            "words": {
                role: words(tmp_path / kind / role, kind, role)
                for role in all_drivers()[kind].roles
                if kind in tested.FILES
            }
        }
        for kind in KINDS
    }
    assert same(GOLDEN, json.dumps(found, indent=1, sort_keys=True) + "\n")
