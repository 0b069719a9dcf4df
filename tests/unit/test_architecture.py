"""Which parts may use which, as `docs/architecture.py` reads it from the code."""

from __future__ import annotations

import graphlib
import re
from functools import partial
from pathlib import Path

import architecture
import pytest
from architecture import SHARED, folder, reached

import dnsrig

READERS = {"engine": architecture.engine_uses, "package": partial(architecture.package_file_uses, architecture.PACKAGE)}
Uses = dict[str, set[str]]


@pytest.fixture(scope="module")
def uses() -> Uses:
    """Of the engine's files."""
    return architecture.engine_uses()


def is_subcommands(file: str) -> bool:
    return folder(file) not in (*SHARED, "lib", "main")


def test_subcommands_use_only_what_lies_below_them(uses: Uses) -> None:
    arrows = [(file, other) for file in uses for other in uses[file] if folder(other) != folder(file)]
    assert [a for a in arrows if is_subcommands(a[0]) and is_subcommands(a[1])] == [], "between two subcommands"
    below = {name: SHARED[:number] for number, name in enumerate(SHARED)}
    assert [a for a in arrows if folder(a[0]) in SHARED and folder(a[1]) not in below[folder(a[0])]] == [], "upwards"


@pytest.mark.parametrize("part", READERS)
def test_no_files_use_each_other_in_a_circle(part: str) -> None:
    graphlib.TopologicalSorter(READERS[part]()).prepare()  # raises CycleError, which names the files


def test_no_folders_of_the_package_use_each_other_in_a_circle() -> None:
    """The picture leaves out what follows from the rest, and would leave out both arrows between two such folders."""

    def in_a_circle(uses: dict[str, set[str]]) -> list[str]:
        return [name for name in uses if name in reached(uses, name)]

    assert in_a_circle({"cli": {"lab"}, "lab": {"machines"}, "machines": {"lab"}}) == ["lab", "machines"]
    assert in_a_circle(architecture.package_uses()) == []


def test_what_is_shared_has_several_users(uses: Uses) -> None:
    """What one subcommand alone uses lies with it. A folder in a shared one counts as a whole.

    A file that nobody names has methods of a type, which the compiler looks after.
    """
    users: dict[str, set[str]] = {}
    for file in filter(is_subcommands, uses):
        for used in reached(uses, file):
            if folder(used) in SHARED and used.count("/") > 0:
                users.setdefault("/".join(used.split("/")[:2]), set()).add(folder(file))
    assert len(users) > 30
    assert {name: only for name, only in users.items() if len(only) < 2 and not name.endswith("mod.rs")} == {}


def test_uses_are_read_past_re_exports_and_without_tests(tmp_path: Path) -> None:
    files = {
        "engine/src/main.rs": "use dnsrig_engine::{probe, load::{self as generator}};\nfn main() { probe::run() }\n",
        "engine/src/lib.rs": "pub mod load;\npub mod probe;\n",
        "engine/src/probe.rs": (
            "use std::io;\nuse dnsrig_net::{self, Poller as Waits};\n// use crate::load::Comment;\n"
            "fn run() { dnsrig_net::socket::open() }\n#[cfg(test)]\nmod tests {\n    use crate::load::Sample;\n}\n"
        ),
        "engine/src/load/mod.rs": (
            "mod pace;\n#[cfg(test)]\nmod pace_tests;\npub use self::pace::Pace;\nfn wait() { pace::now() }\n"
        ),
        "engine/src/load/pace.rs": "use dnsrig_net::poller::Poller;\nuse super::super::probe;\n",
        "net/src/lib.rs": "mod poller;\npub mod socket;\npub use self::poller::Poller;\n",
        "net/src/poller.rs": "",
        "net/src/socket.rs": "#[cfg(test)]\nuse super::poller::Poller;\nuse crate::poller::Timeout;\n",
        "core/src/lib.rs": "",
        "dns/src/lib.rs": "",
    }
    for name, text in files.items():
        path = tmp_path / f"dnsrig-{name}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    uses = architecture.engine_uses(tmp_path)
    assert uses == {
        "main.rs": {"probe.rs", "load/mod.rs"},
        "lib.rs": set(),
        "probe.rs": {"net/poller.rs", "net/socket.rs"},
        "load/mod.rs": {"load/pace.rs"},
        "load/pace.rs": {"net/poller.rs", "probe.rs"},
        "net/lib.rs": set(),
        "net/poller.rs": set(),
        "net/socket.rs": {"net/poller.rs"},
        "core/lib.rs": set(),
        "dns/lib.rs": set(),
    }
    assert architecture.folder_uses(uses)["load"] == {"net", "probe"}
    assert architecture.reached(uses, "load/mod.rs") == {"load/pace.rs", "net/poller.rs", "net/socket.rs", "probe.rs"}


WITH_STATE = """
    latency_heat_map.Cell _flames._Node ledger.Ledger guest.Guest process.Process host_calls.Lab datagrams.Way
    datagrams.Probe tun.TunLink netem.NetemLink capture.Capture profile.Profiler network.Network preparation.Request
    shared.Opened dnsperf._Block dnsperf._Seen importers.NotUnderstood confinement.PidNamespace late_clients.Windows
    run.Run trial.Trial replay.Playing resolver_statistics._Sampler databases.Follower generators.Led replay_rate.Found
    replay_rate.Step instrument.Instrument zone_changes.ZoneChanges faults.Faults instruments.Instruments
    profiling.Profiling profiling.Counting phases.Phases servers.Server servers.Servers servers.LogLines clocks.Clocks
    workspace.Workspace
"""


def test_a_dataclass_is_frozen_unless_it_has_a_state() -> None:
    """So nobody changes a value that another part still uses, and values can be members of sets."""
    changing = set()
    for path in Path(dnsrig.__file__).parent.rglob("*.py"):
        module = path.parent.name if path.stem == "__init__" else path.stem
        for how, name in re.findall(
            r"^ *@dataclass(.*)\n *class (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE
        ):
            changing |= set() if "frozen=True" in how else {f"{module}.{name}"}
    assert changing == set(WITH_STATE.split())
