"""Names, types and the base class that all parts of the format share."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict

SCHEMA_VERSION = 1
"""Version of the format; raised by one whenever an older dnsrig would misread a newer run directory."""
DEFAULTS_FILE = "defaults.txt"
SEARCH_FILE = "bisect.json"
FULL_PACKET_BYTES = 1500
"""Size of the largest IP packet: the MTU of Ethernet (RFC 894)."""
NAME = r"[A-Za-z0-9._-]{1,200}"


def _is_name(text: str) -> str:
    if not re.fullmatch(NAME, text) or not text.strip("."):
        raise ValueError(f"{text[:80]!r} is no name: letters, digits, dots, dashes and underscores")
    return text


Name = Annotated[str, AfterValidator(_is_name)]
"""Name of a variant, a host or a file. It becomes one part of a path, and anybody may have written the file that it is
read from."""
Scalar = str | int | float | bool
Address = IPv4Address | IPv6Address
Family = Literal["ipv4", "ipv6"]
Outcome = Literal["done", "timeout", "server-failed", "invalid", "error"]
Verdict = Literal["found", "clear", "cannot-tell"]
Role = Literal["primary", "secondary", "resolver", "database", "world", "frontend"]
"""Task of a server in a trial. A resolver asks the primaries, or a world, and answers from its cache; a database
carries zones for DNS servers; a world is a simulated Internet; a frontend passes queries on to another server,
and its answers back."""
OBSERVER = "observer"
"""The host of the instruments that play no other host, such as `load` and `probe`. Every trial has it, and a link from
it to each DNS server."""


class Record(BaseModel):
    """Base of all stored documents. An unknown key is an error."""

    model_config = ConfigDict(extra="forbid")


class Settings(Record):
    """Base of what an experiment sets and a trial has unchanged. TOML and JSON have the right types, so none is
    converted."""

    model_config = ConfigDict(strict=True)
