"""Parts of the engine in the place of a server: what their command lines say."""

from __future__ import annotations

import json
from collections.abc import Callable
from ipaddress import IPv4Address, ip_address
from pathlib import Path

import pytest
from placement_data import changed

from dnsrig.confinement import MACHINE
from dnsrig.errors import UsageError
from dnsrig.rundir import HostSpec, ServerSource, TransferSpec
from dnsrig.servers import driver, keys
from dnsrig.servers.engine import ranges
from dnsrig.servers.placement import Changes, Placement, Route, Zone

FACTS = {
    "generator": "zones",
    "count": 30,
    "records_per_zone": 4,
    "suffix": "example",
    "seed": 7,
    "serial": 3,
    "catalog": "catalog.example",
}
Place = Callable[..., Placement]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    def made(kind: str, **changes: object) -> Placement:
        dataset = tmp_path / "dataset"
        dataset.mkdir(exist_ok=True)
        (dataset / "dataset.json").write_text(json.dumps(FACTS))
        primary = kind == "zones"
        placement = Placement(
            host=HostSpec(
                address="198.18.0.1",
                cpus=[1],
                server=ServerSource(kind=kind, source="engine", version="1.0"),
                role="primary" if primary else "secondary",
            ),
            root=MACHINE,
            zones=[],
            routes=[] if primary else [Route(1, IPv4Address("198.18.0.9"), None)],
            secondaries=[IPv4Address("198.18.0.2")] if primary else [],
            transfer=TransferSpec(),
            keys=keys.make(),
            catalog=None,
            directory=tmp_path,
            seen_directory=str(tmp_path),
            state=tmp_path,
            seen_state=str(tmp_path),
            dataset=dataset,
            seen_dataset=str(dataset),
        )
        return changed(placement, **changes)

    return made


def command(placement: Placement) -> list[str]:
    server = driver(placement.source.kind)
    server.configure(placement)
    return server.command(placement)


def test_a_synthetic_primary_has_the_names_and_the_serial_of_the_dataset(place: Place) -> None:
    words = command(place("zones"))
    assert words[:4] == ["dnsrig-engine", "serve", "zones", "198.18.0.1"]
    wanted = {"--count=30", "--records=4", "--suffix=example", "--seed=7", "--serial=3", "--catalog=catalog.example"}
    assert wanted | {"--threads=1", "--transport=udp,tcp", "--catalog-schema=2"} == set(words[4:])


def test_a_synthetic_primary_has_the_catalog_schema_of_the_dataset(place: Place, tmp_path: Path) -> None:
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset" / "catalog.zone").write_text('$ORIGIN catalog.example.\nversion\tIN TXT "1"\n')
    assert "--catalog-schema=1" in command(place("zones"))


def test_a_synthetic_primary_changes_by_itself_when_told(place: Place, tmp_path: Path) -> None:
    assert not [word for word in command(place("zones")) if "change" in word]
    words = set(command(place("zones", changes=Changes("catalog", 50.0, first_member=5, absent=2))))
    assert {"--changes-of=catalog", "--changes-per-s=50.0", "--first-member=5", "--absent=2"} <= words
    assert {"--changes-on-signal", f"--out={tmp_path}/changes.arrow"} <= words
    words = set(command(place("zones", changes=Changes("zones", 1000.0))))
    assert {"--changes-of=zones", "--changes-per-s=1000.0"} <= words
    assert not [word for word in words if word.startswith("--absent")]


def test_a_synthetic_primary_over_tls_with_a_key_and_whom_to_notify(place: Place) -> None:
    transfer = TransferSpec(transport="xot+tsig", notify=True)
    others = [ip_address(f"198.19.0.{number}") for number in (1, 2, 3, 9)]
    words = command(place("zones", transfer=transfer, secondaries=others))
    assert {
        "--transport=udp,tcp,xot",
        "--xot-port=853",
        "--notify=198.19.0.1-198.19.0.3",
        "--notify=198.19.0.9",
    } <= set(words)
    assert [word for word in words if word.startswith(("--certificate=", "--key=", "--tsig=hmac-sha256:"))]


def test_both_ends_of_a_transfer_over_quic(place: Place) -> None:
    transfer = TransferSpec(transport="xoq")
    primary = command(place("zones", transfer=transfer, settings={"quic-congestion": "bbr"}))
    assert {"--transport=udp,tcp,xoq", "--xoq-port=853", "--quic-congestion=bbr"} <= set(primary)
    secondary = command(place("transfer", transfer=transfer))
    assert {"--transport=xoq", "--verify=ca"} <= set(secondary)


def test_faults_are_options_and_several_are_several(place: Place) -> None:
    words = command(place("zones", settings={"fault": "servfail-after=3 slow=5ms", "concurrent-max": 10}))
    assert {"--fault=servfail-after=3", "--fault=slow=5ms", "--concurrent-max=10"} <= set(words)
    with pytest.raises(UsageError, match="zones has no setting 'faults'"):
        command(place("zones", settings={"faults": "slow"}))


def test_a_synthetic_primary_serves_tiny_zones_only(place: Place, tmp_path: Path) -> None:
    placement = place("zones")
    (tmp_path / "dataset" / "dataset.json").write_text(json.dumps({"generator": "tld"}))
    with pytest.raises(UsageError, match="serves only a dataset of kind"):
        driver("zones").configure(placement)
    with pytest.raises(UsageError, match="no files to change"):
        driver("zones").load_changes(placement)


def test_the_instrument_as_a_secondary_is_pipelined_unless_told_otherwise(place: Place) -> None:
    words = command(place("transfer"))
    assert words[:3] == ["dnsrig-engine", "transfer", "198.18.0.9"]
    assert {"--policy=pipelined", "--window=100", "--transport=tcp", "--threads=1"} <= set(words)
    assert any(word.startswith("--zones=") and word.endswith("zones.list") for word in words)
    assert "--policy=one" in command(place("transfer", settings={"policy": "one"}))


def test_the_instrument_as_a_secondary_follows_transport_catalog_and_source_address(place: Place) -> None:
    placement = place(
        "transfer",
        transfer=TransferSpec(transport="xot+tsig", provisioning="catalog"),
        catalog=Zone("catalog.example", "catalog.zone"),
        routes=[Route(1, IPv4Address("198.18.0.9"), IPv4Address("198.18.0.1"))],
    )
    words = command(placement)
    assert {"--catalog=catalog.example", "--verify=ca", "--server-name=primary.dnsrig.example"} <= set(words)
    assert "--source=198.18.0.1" in words
    routes = [Route(1, IPv4Address("198.18.0.9"), None), Route(2, IPv4Address("198.18.0.8"), None)]
    with pytest.raises(UsageError, match="from only one primary"):
        command(place("transfer", routes=routes))


def test_ranges() -> None:
    assert ranges([]) == []
    assert ranges([ip_address("192.0.2.1"), ip_address("192.0.2.3")]) == ["192.0.2.1", "192.0.2.3"]
    assert ranges([ip_address("192.0.2.255"), ip_address("192.0.3.0")]) == ["192.0.2.255-192.0.3.0"]


def test_what_a_driver_does_not_list_it_does_not_have() -> None:
    assert driver("zones").support("dynamic updates").primary is None
    assert driver("transfer").lacks("secondary", ["DoT"], "1.0") == ("DoT", None)
    assert driver("unbound").support("XoT").resolver is None
