"""Very many tiny zones, like the zones of a hosting company."""

from __future__ import annotations

from collections.abc import Mapping

from dnsrig.rundir import Scalar

DESCRIPTION = "N zones of a few records each, each zone in its own file"
DEFAULTS: dict[str, Scalar] = {
    "zones": 100,
    "records_per_zone": 4,
    "serial": 1,
    "seed": 1,
    "refresh_s": 3600,
    "catalog_schema": 2,
}
RANGES = {
    "zones": (1, 10_000_000),
    "records_per_zone": (2, 1_000_000),
    "serial": (1, (1 << 31) - 1),
    "refresh_s": (1, 86_400),
    "catalog_schema": (1, 2),
}


def arguments(parameters: Mapping[str, Scalar]) -> list[str]:
    return [
        "zones",
        f"--count={parameters['zones']}",
        f"--records={parameters['records_per_zone']}",
        f"--serial={parameters['serial']}",
        f"--seed={parameters['seed']}",
        f"--catalog-schema={parameters['catalog_schema']}",
        f"--refresh-s={parameters['refresh_s']}",
    ]


def size(parameters: Mapping[str, Scalar]) -> tuple[int, int]:
    return int(parameters["zones"]), int(parameters["zones"]) * int(parameters["records_per_zone"])
