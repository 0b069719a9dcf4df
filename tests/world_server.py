"""A simulated Internet on a host of the lab, and what its specification says of names."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dnsrig import paths
from dnsrig.lab import process
from dnsrig.lab.host import Host

RANGES = {4: "198.18.64.0/18", 6: "2001:2:0:3::/64"}
"""Of the world's servers, by version of IP."""


@dataclass
class World:
    """A specification, and where its files go."""

    spec: Path

    @property
    def out(self) -> Path:
        return self.spec.with_suffix(".out")

    @property
    def hints(self) -> str:
        return (self.out / "root.hints").read_text()

    @property
    def names(self) -> list[str]:
        """Of its zones, without a final dot."""
        lines = self.spec.with_suffix(".names").read_text().splitlines()
        names = [line.partition("\t")[0].removesuffix(".") for line in lines]
        return [name for name in names if not name.startswith("www.")]


def make(spec: Path, *arguments: str) -> World:
    """`generate world`, with its names."""
    names = str(spec.with_suffix(".names"))
    engine("generate", "world", "--out", str(spec), "--names-out", names, *arguments)
    return World(spec)


def explain(world: World, names: Sequence[str]) -> list[dict[str, Any]]:
    """What `serve world --explain` says of each name."""
    lines = engine("serve", "world", str(world.spec), "--explain", *names).splitlines()
    return [json.loads(line) for line in lines]


def engine(*words: str) -> str:
    return subprocess.run([str(paths.engine()), *words], check=True, stdout=subprocess.PIPE, text=True).stdout


def route(internet: Host, resolver: Host) -> None:
    """The world's addresses are local on ``internet``, and lie behind it for ``resolver``."""
    for version, prefix in RANGES.items():
        via = str(internet.by_version[version])
        for host, way in ((internet, ["local", prefix, "dev", "lo"]), (resolver, [prefix, "via", via])):
            subprocess.run(["ip", f"-{version}", "-n", host.namespace, "route", "add", *way], check=True)


@contextmanager
def serve(world: World, host: Host, *arguments: str) -> Iterator[None]:
    """The world answers on ``host``; its rows are complete afterwards."""
    command = [str(paths.engine()), "serve", "world", str(world.spec), "--out", str(world.out), "--threads", "1"]
    command += arguments
    started = process.start("world", host, command, stdout=subprocess.PIPE)
    try:
        assert started.popen.stdout is not None
        for line in started.popen.stdout:
            if json.loads(line)["event"] == "ready":
                break
        else:
            raise AssertionError(started.how_it_ended())
        yield
    finally:
        started.stop()
