"""What a program is confined to, as another machine and as `enter` get it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from dnsrig import confinement
from dnsrig.confinement import MACHINE, NET_ADMIN, NET_BIND_SERVICE, BindMount, Confinement
from dnsrig.experiment.elsewhere.remote import Remote
from dnsrig.rundir import MachineSpec

CONFINED = Confinement(
    MACHINE,
    [
        BindMount(Path("/run/trial/server"), "/mnt/server", read_only=True),
        BindMount(Path("/run/trial/state"), "/mnt/state"),
    ],
    [NET_BIND_SERVICE, NET_ADMIN],
)


def test_enter_gets_the_user_and_each_capability() -> None:
    words = CONFINED.arguments()
    assert words[:2] == ["--root", "/"] and "--user=65534" in words
    assert words[-2:] == ["--capability=CAP_NET_BIND_SERVICE", "--capability=CAP_NET_ADMIN"]
    assert "/run/trial/server:/mnt/server:ro" in words and "/run/trial/state:/mnt/state" in words
    assert not [word for word in Confinement(MACHINE, as_root=True).arguments() if word.startswith("--user")]


def test_another_machine_confines_alike_in_its_own_folders(tmp_path: Path) -> None:
    remote = Remote("far", MachineSpec(ssh="far.example"), tmp_path)
    remote._places = {"/run/trial": "/var/far"}
    there = json.loads(json.dumps(remote._there(CONFINED.as_json())))
    assert Confinement.of_json(there) == Confinement(
        MACHINE,
        [
            BindMount(Path("/var/far/server"), "/mnt/server", read_only=True),
            BindMount(Path("/var/far/state"), "/mnt/state"),
        ],
        [NET_BIND_SERVICE, NET_ADMIN],
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_only_what_may_be_written_is_given_and_no_link_is_followed(tmp_path: Path) -> None:
    for name in ("shown", "written", "elsewhere"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    (tmp_path / "written/link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "written/file link").symlink_to(tmp_path / "elsewhere/file")
    binds = [BindMount(tmp_path / "shown", "/mnt/a", read_only=True), BindMount(tmp_path / "written", "/mnt/b")]
    Confinement(MACHINE, binds).give()
    given = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.lstat().st_uid == confinement.USER}
    assert given == {"written", "written/file", "written/link", "written/file link"}
