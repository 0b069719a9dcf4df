"""A simulated Internet for resolvers (docs/explanation/world.md): the specification that `serve world` computes it
from, and the table of names that clients ask for.

``set`` is TOML that overrides the specification (docs/reference/world.md), e.g. ``zones.ipv6 = 1.0``. With
``from_stream``, the world has all names in the queries of the experiment's stream, beside ``zones`` random zones. With
``faulty_apart``, clients do not query names of faulty zones; these names are in a table of their own.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dnsrig.rundir import Scalar

DESCRIPTION = "a simulated Internet: the root, the TLDs, N second-level zones, each on its own servers"
DEFAULTS: dict[str, Scalar] = {
    "zones": 100_000,
    "seed": 1,
    "names_seed": 1,
    "set": "",
    "from_stream": False,
    "faulty_apart": False,
}
RANGES = {"zones": (1, 10_000_000)}
SPECIFICATION_FILE, NAMES_FILE, FAULTY_NAMES_FILE = "world.toml", "names", "faulty.names"
ANSWERED_BY_ITSELF = "127.in-addr.arpa"
"""A zone that resolvers answer for by themselves (RFC 6303 §4.2)."""
DAY_S = 86_400
BROKEN = "dnssec-failed.arpa"
"""A signed zone in every world with a DS record for another key. Clients do not query it."""


def arguments(parameters: Mapping[str, Scalar]) -> list[str]:
    over = [f"zones.names_seed = {parameters['names_seed']}", str(parameters["set"])]
    words = [f"--zones={parameters['zones']}", f"--seed={parameters['seed']}"]
    return ["world", *words, *(f"--set={text}" for text in over if text)]


def of_stream(stream: Path) -> list[str]:
    return [f"--from-stream={stream}"]


def output(folder: Path, parameters: Mapping[str, Scalar]) -> list[str]:
    folder.mkdir()
    words = [f"--out={folder / SPECIFICATION_FILE}", f"--names-out={folder / NAMES_FILE}"]
    return [*words, f"--faulty-names-out={folder / FAULTY_NAMES_FILE}"] if parameters["faulty_apart"] else words


def finish(folder: Path, version: int) -> None:
    """Write a list of zones with one name, which a resolver answers without filling its cache, and the description."""
    (folder / "zones.list").write_text(f"{ANSWERED_BY_ITSELF}\tnone\n")
    facts = {"version": version, "generator": "world", "count": 1, "records_total": 0, "serial": 0}
    (folder / "dataset.json").write_text(json.dumps(facts))


def signatures(folder: Path) -> dict[str, Any]:
    """Validity of the signatures of the world in ``folder``, in seconds since 1970, and shares for TLDs and
    second-level zones.

    ``signed`` is the share of signed zones; ``p256`` and ``ed25519`` are shares of these; the others have RSA.
    """
    signing = tomllib.loads((folder / SPECIFICATION_FILE).read_text())["signing"]
    begin_s = int(signing["epoch_s"])
    shares = {
        level: {name: signing[level][name] for name in ("signed", "p256", "ed25519")} for level in ("tlds", "zones")
    }
    return {
        "valid_from_s": begin_s,
        "valid_until_s": begin_s + DAY_S * int(signing["validity_days"]),
        "signed_share": signing.get("share"),
        **shares,
    }


def size(parameters: Mapping[str, Scalar]) -> tuple[int, int]:
    """One zone and no records, because no server loads any."""
    return 1, 0
