"""The words with which the instruments of a trial are started: their hosts, addresses, zones and files."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from placement_data import KEYS
from test_serving import spec

from dnsrig import datasets
from dnsrig.lab.host import Host
from dnsrig.lab.network import Network
from dnsrig.procedures.context.instruments import Instruments
from dnsrig.procedures.context.servers import Servers
from dnsrig.procedures.context.workspace import Workspace
from dnsrig.procedures.instrument import Instrument
from dnsrig.procedures.parts import transfer_instrument
from dnsrig.rundir import OBSERVER, DatasetSpec, HostSpec, TransferSpec

SIGNED = f"--tsig=hmac-sha256:dnsrig-transfer:{KEYS.tsig_secret}"
SECONDARY = {"hosts": {"secondary": {"server": "bind@forky"}}}
NEXT = DatasetSpec(kind="files", key="", zones=1, records=1, serial=6)
RUNNING = HostSpec(address="192.0.2.53", cpus=[0], ports={"udp": 5300, "tcp": 5301, "dot": 8853}, authorized=True)


class Noted(Instruments):
    """Instruments that are not started: their words are noted."""

    def __init__(self, workspace: Workspace, servers: Servers) -> None:
        super().__init__(workspace, servers)
        self.first: list[str] = []
        """The instruments that went first, in real time."""

    def start(self, name: str, arguments: list[str], host: str = OBSERVER, program: Path | None = None) -> Instrument:
        process = SimpleNamespace(go_first=lambda: self.first.append(name))
        self.started[name] = cast(Instrument, SimpleNamespace(words=arguments, host=host, process=process))
        return self.started[name]


def instruments(folder: Path, overlay: dict[str, Any] | None = None, **changes: Any) -> Noted:
    """The context of a trial in ``folder``/trial with zones in ``folder``/data; ``changes`` go into its spec."""
    options = changes.pop("options", {})
    made = spec(overlay, **({"serve_as": "secondary"} if overlay == SECONDARY else {}))
    changes = {"options": {**made.options, **transfer_instrument.OPTIONS, **options}, **changes}
    dataset = made.dataset.model_copy(update={"key": str(folder / "data"), "serial": 5})
    made = made.model_copy(update={"dataset": dataset, **changes})
    hosts = {name: Host(name, host, f"ns-{name}", cgroups=(Path("/cg"),)) for name, host in made.hosts.items()}
    workspace = Workspace(made, folder / "trial", cast(Network, SimpleNamespace(hosts=hosts)), KEYS)
    return Noted(workspace, cast(Servers, SimpleNamespace(placements={}, own_changes={})))


def words(started: Instrument, folder: Path, host: str = OBSERVER) -> list[str]:
    """The words of an instrument on ``host``, with DIR in the place of ``folder``."""
    told: Any = started
    assert told.host == host
    return [str(word).replace(str(folder), "DIR") for word in told.words]


@pytest.mark.parametrize("far", [False, True])
def test_all_hosts_are_watched_and_connections_over_a_path_are_listed(tmp_path: Path, far: bool) -> None:
    """The observer is left out."""
    noted = instruments(tmp_path, {"path": {"delay_ms": 10}, "link": "tun"} if far else None)
    noted.start_watch()
    assert words(noted.started["watch"], tmp_path) == [
        *("watch", "--out", "DIR/trial/samples.arrow", "--until-eof"),
        *(["--sockets-out", "DIR/trial/sockets.arrow"] if far else []),
        *("--host", f"primary,netns=/run/netns/ns-primary,cgroup=/cg{',sockets' if far else ''}"),
        *("--host", "observer,netns=/run/netns/ns-observer,cgroup=/cg"),
    ]


@pytest.mark.parametrize(
    ("asked", "awaited", "out"),
    [
        ({}, "--serial=5", []),
        ({"serial": 7}, "--serial=7", []),
        ({"serial": 0}, "--serial=0", []),
        ({"next_version": True}, "--serials=DIR/next/serials.list", []),
        ({"next_version": True, "serial": 9}, "--serial=9", []),
        ({"out": Path("zones.arrow")}, "--serial=5", ["--out=zones.arrow"]),
    ],
)
def test_a_probe_waits_for_a_serial(tmp_path: Path, asked: dict[str, Any], awaited: str, out: list[str]) -> None:
    following = NEXT.model_copy(update={"key": str(tmp_path / "next"), "serials_differ": True})
    noted = instruments(tmp_path, next_dataset=following)
    found = words(noted.start_probe("probe", "primary", limit_s=60.0, **asked), tmp_path)
    rate = ["--rate=1000", "--limit-s=60.0", "--until-eof"]
    awaited = awaited.replace("serials.list", datasets.SERIALS_FILE)
    assert found == ["probe", "198.18.0.1", "--zones=DIR/data/zones.list", awaited, *rate, *out]


@pytest.mark.parametrize(("next_version", "folder"), [(False, "data"), (True, "next")])
def test_records_are_those_of_one_version(tmp_path: Path, next_version: bool, folder: str) -> None:
    following = NEXT.model_copy(update={"key": str(tmp_path / "next")})
    noted = instruments(tmp_path, next_dataset=following)
    found = words(noted.start_records("records", "primary", limit_s=90, next_version=next_version), tmp_path)
    listed = f"--zone-list=DIR/{folder}/zones.list"
    assert found == ["probe", "records", "198.18.0.1", listed, "--limit=90s", "--until-eof"]


@pytest.mark.parametrize(
    ("options", "host", "server"),
    [
        ({"transport": "udp"}, {}, ["198.18.0.1"]),
        ({"transport": "dot"}, {}, ["198.18.0.1"]),
        ({"transport": "udp", "proxy_protocol": True}, {}, ["198.18.0.1"]),
        ({"transport": "udp", "proxy_protocol": False}, {"proxy_protocol": True}, ["198.18.0.1"]),
        ({"transport": "udp", "proxy_protocol": True}, {"proxy_protocol": True}, ["198.18.0.1:8053"]),
        ({"transport": "dot", "proxy_protocol": True}, {"proxy_protocol": True}, ["198.18.0.1:8853"]),
        ({"transport": "udp"}, RUNNING.model_dump(), ["192.0.2.53:5300", "--i-am-authorized=192.0.2.53"]),
        ({"transport": "dot"}, RUNNING.model_dump(), ["192.0.2.53:8853", "--i-am-authorized=192.0.2.53"]),
        ({"transport": "tcp"}, {**RUNNING.model_dump(), "authorized": False}, ["192.0.2.53:5301"]),
    ],
)
def test_a_load_goes_to_the_port_of_its_transport(
    tmp_path: Path, options: dict[str, Any], host: dict[str, Any], server: list[str]
) -> None:
    """Everything else that instruments do comes after the samples that explain it."""
    made = spec()
    hosts = {**made.hosts, "primary": made.hosts["primary"].model_copy(update=host)}
    noted = instruments(tmp_path, options=options, hosts=hosts)
    for name in ("watch", "watch-rack-1", "watching"):
        noted.start(name, [])
    found = words(noted.start_load("load", "primary", ["--rate=5"], "primary"), tmp_path, "primary")
    assert found == ["load", *server, "--rate=5", "--until-eof"] and noted.first == ["watch", "watch-rack-1"]


def test_changes_are_made_and_followed(tmp_path: Path) -> None:
    noted = instruments(tmp_path)
    assert words(noted.start_change("change", "primary", ["--x"]), tmp_path) == [
        *("change", "198.18.0.1", "--x", "--until-eof")
    ]
    assert words(noted.start_follow("primary", tmp_path / "list", rate_per_s=200), tmp_path) == [
        *("probe", "follow", "198.18.0.1", "--zones=DIR/list", "--rate=200"),
        *("--out=DIR/trial/followed.arrow", "--until-eof"),
    ]


@pytest.mark.parametrize(
    ("transport", "transfer"),
    [
        ("tcp", ["--transport=tcp"]),
        ("tcp+tsig", ["--transport=tcp", SIGNED]),
        ("xot", ["--transport=xot", "--verify=ca", "--ca=DIR/state/tls-certificate.pem", "--server-name=NAME"]),
        (
            "xoq+tsig",
            [
                *("--transport=xoq", SIGNED, "--quic-congestion=cubic", "--verify=ca"),
                *("--ca=DIR/state/tls-certificate.pem", "--server-name=NAME"),
            ],
        ),
    ],
)
@pytest.mark.parametrize("out", [None, "elsewhere"])
def test_a_transfer_knows_the_certificate_of_a_primary_that_dnsrig_started(
    tmp_path: Path, transport: str, transfer: list[str], out: str | None
) -> None:
    noted = instruments(tmp_path, transfer=TransferSpec(transport=transport))  # type: ignore[arg-type]
    noted.servers.placements["primary"] = cast(Any, SimpleNamespace(state=tmp_path / "state"))
    noted.start("watch", [])
    folder = tmp_path / out if out else None
    found = words(noted.start_transfer("transfer", "observer", "primary", ["--x"], out=folder), tmp_path)
    found = ["--server-name=NAME" if word.startswith("--server-name=") else word for word in found]
    assert found == [
        *("transfer", "198.18.0.1", "--zones=DIR/data/zones.list"),
        *transfer,
        *(f"--out=DIR/{out or 'trial'}", "--until-eof", "--x"),
    ]
    assert noted.first == ["watch"]


def test_a_transfer_has_options_of_its_own_if_they_are_given(tmp_path: Path) -> None:
    noted = instruments(tmp_path, transfer=TransferSpec(transport="xot"), options={"resumption": False})
    own = {**transfer_instrument.OPTIONS, "verify": "none"}
    assert "--no-resumption" in words(noted.start_transfer("a", "observer", "primary", []), tmp_path)
    found = words(noted.start_transfer("b", "observer", "primary", [], options=own), tmp_path)
    assert "--verify=none" in found and "--no-resumption" not in found


@pytest.mark.parametrize(
    ("carrier", "port"), [("tcp", "192.0.2.53:5301"), ("xot", "192.0.2.53:8853"), ("xot+tsig", "192.0.2.53:8853")]
)
def test_a_running_primary_is_asked_at_the_port_of_the_carrier(tmp_path: Path, carrier: str, port: str) -> None:
    hosts = {**spec().hosts, "primary": RUNNING}
    transfer = TransferSpec(transport=carrier)  # type: ignore[arg-type]
    noted = instruments(tmp_path, hosts=hosts, transfer=transfer, options={"verify": "none"})
    found = words(noted.start_transfer("transfer", "observer", "primary", []), tmp_path)
    assert found[1:3] == [port, "--i-am-authorized=192.0.2.53"]
    found = words(noted.start_interrogation("interrogate", "observer", "primary"), tmp_path)
    asked = ["interrogate", "192.0.2.53:5301", "--i-am-authorized=192.0.2.53", "--zones=DIR/data/zones.list"]
    assert found == [*asked, "--xot-port=8853", *([SIGNED] if transfer.tsig else [])]
    noted = instruments(tmp_path, transfer=transfer)
    assert "--xot-port=853" in words(noted.start_interrogation("interrogate", "observer", "primary"), tmp_path)


@pytest.mark.parametrize(
    ("transport", "itself", "is_signed"), [("tcp", False, 0), ("tcp+tsig", False, 1), ("tcp+tsig", True, 0)]
)
def test_who_changes_the_zones_signs(tmp_path: Path, transport: str, itself: bool, is_signed: int) -> None:
    noted = instruments(tmp_path, SECONDARY, transfer=TransferSpec(transport=transport))  # type: ignore[arg-type]
    if itself:
        noted.servers.own_changes["primary"] = cast(Any, "changes")
    assert words(noted.start_propagation(["--x"]), tmp_path) == [
        *("propagation", "--primary=198.18.0.1", "--secondary=198.18.0.2", "--zones=DIR/data/zones.list"),
        *("--out=DIR/trial/propagation.arrow", "--until-eof", *[SIGNED] * is_signed, "--x"),
    ]
