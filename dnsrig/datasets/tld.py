"""One large signed zone of delegations, like the zone of a top-level domain."""

from __future__ import annotations

from collections.abc import Mapping

from dnsrig.rundir import Scalar

DESCRIPTION = "one zone of N delegations with a real TLD's mix of records"
RECORDS_PER_DELEGATION = 5.45
"""Average of the generator, whose mix follows the .ch zone: see `dnsrig generate tld --help`."""
CHANGED_MOST = 3
"""Most records of a delegation that ``records_changed`` can change."""
DEFAULTS: dict[str, Scalar] = {
    "delegations": 10_000,
    "serial": 1,
    "seed": 1,
    "catalog_schema": 2,
    "records_changed": 0,
    "denial": "nsec",
}
RANGES = {"delegations": (1, 50_000_000), "serial": (1, (1 << 31) - 1), "catalog_schema": (1, 2)}


def arguments(parameters: Mapping[str, Scalar]) -> list[str]:
    return [
        "tld",
        f"--delegations={parameters['delegations']}",
        f"--serial={parameters['serial']}",
        f"--seed={parameters['seed']}",
        f"--catalog-schema={parameters['catalog_schema']}",
        f"--changed={parameters['records_changed']}",
        f"--denial={parameters['denial']}",
    ]


def size(parameters: Mapping[str, Scalar]) -> tuple[int, int]:
    return 1, round(int(parameters["delegations"]) * RECORDS_PER_DELEGATION)
