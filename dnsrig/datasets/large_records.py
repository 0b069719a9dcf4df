"""Zones with one large RRset each, up to the limit of a DNS message."""

from __future__ import annotations

from collections.abc import Mapping

from dnsrig.rundir import Scalar

DESCRIPTION = "zones with one large RRset each: TXT, SVCB, SMIMEA, TYPE65280, up to an answer of 65,535 bytes"
ZONES, RECORDS = 46, 4_103
"""With the largest ``largest_bytes``; a lower one leaves zones out."""
DEFAULTS: dict[str, Scalar] = {"largest_bytes": 65_535, "serial": 1, "seed": 1, "catalog_schema": 2}
RANGES = {"largest_bytes": (0, 65_535), "serial": (1, (1 << 31) - 1), "catalog_schema": (1, 2)}


def arguments(parameters: Mapping[str, Scalar]) -> list[str]:
    return [
        "large-records",
        f"--largest={parameters['largest_bytes']}",
        f"--serial={parameters['serial']}",
        f"--seed={parameters['seed']}",
        f"--catalog-schema={parameters['catalog_schema']}",
    ]


def size(parameters: Mapping[str, Scalar]) -> tuple[int, int]:
    return ZONES, RECORDS
