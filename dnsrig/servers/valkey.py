"""Valkey with the module of Knot DNS: as Redis in all that a trial needs, with the same module."""

from __future__ import annotations

from dnsrig.servers.redis import Redis


class Valkey(Redis):
    kind = "valkey"
    title = "Valkey with the module of Knot DNS"
    executable = "valkey-server"
    packages = ("valkey-server", "redis-module-knot")
