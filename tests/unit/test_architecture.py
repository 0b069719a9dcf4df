"""The parts of the engine: which may use which, as `docs/architecture.py` reads it from the code."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]


def reader() -> ModuleType:
    spec = importlib.util.spec_from_file_location("architecture", ROOT / "docs/architecture.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


architecture = reader()


def test_uses_are_read_past_re_exports_and_without_tests(tmp_path: Path) -> None:
    files = {
        "main.rs": "use dnsrig_engine::{probe, load::{self as generator}};\nfn main() { probe::run() }\n",
        "lib.rs": "pub mod net;\npub mod load;\npub mod probe;\n",
        "probe.rs": (
            "use std::io;\nuse crate::net::{self, Poller as Waits};\n// use crate::load::Comment;\n"
            "fn run() { crate::net::socket::open() }\n#[cfg(test)]\nmod tests {\n    use crate::load::Sample;\n}\n"
        ),
        "load/mod.rs": "mod pace;\n#[cfg(test)]\nmod pace_tests;\npub use self::pace::Pace;\nfn wait() { pace::now() }\n",
        "load/pace.rs": "use super::super::net::poller::Poller;\n",
        "net/mod.rs": "mod poller;\npub mod socket;\npub use self::poller::Poller;\n",
        "net/poller.rs": "",
        "net/socket.rs": "#[cfg(test)]\nuse super::poller::Poller;\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    uses = architecture.engine_uses(tmp_path)
    assert uses == {
        "main.rs": {"probe.rs", "load/mod.rs"},
        "lib.rs": set(),
        "probe.rs": {"net/mod.rs", "net/poller.rs", "net/socket.rs"},
        "load/mod.rs": {"load/pace.rs"},
        "load/pace.rs": {"net/poller.rs"},
        "net/mod.rs": set(),
        "net/poller.rs": set(),
        "net/socket.rs": set(),
    }
    assert architecture.folder_uses(uses)["probe"] == architecture.folder_uses(uses)["load"] == {"net"}
    assert architecture.reached(uses, "load/mod.rs") == {"load/pace.rs", "net/poller.rs"}
