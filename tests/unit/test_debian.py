"""Root file systems from packages of Debian: packages are made here, and nothing is downloaded."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from dnsrig.errors import DnsrigError
from dnsrig.servers import debian

SUITE = "forky"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DNSRIG_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def packed(cache: Path, name: str, version: str, *files: str) -> Path:
    """A package among those that apt downloaded; each file has its own path as its content."""
    source = cache.parent / "source" / name
    for file in files:
        (source / file).parent.mkdir(parents=True, exist_ok=True)
        (source / file).write_text(file)
    (source / "DEBIAN").mkdir(parents=True)
    (source / "DEBIAN/control").write_text(
        f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: T <t@example>\nDescription: none\n"
    )
    target = cache / "apt" / SUITE / "cache/archives" / f"{name}_{version.replace(':', '%3a')}_all.deb"
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["dpkg-deb", "-Znone", "--build", source, target], check=True, capture_output=True)
    return target


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is not installed")
class TestUnpacked:
    def test_old_packages_have_their_files_below_usr_and_manuals_are_left_out(
        self, cache: Path, tmp_path: Path
    ) -> None:
        packed(cache, "old", "1:2.0-1", "sbin/named", "lib/x.so", "usr/share/man/man8/named.8", "etc/named.conf")
        packed(cache, "new", "3", "usr/bin/dig", "usr/share/locale/de/dig.mo")
        packed(cache, "other", "3", "usr/bin/other")
        tree = tmp_path / "tree"
        debian._unpack(SUITE, {"old": "1:2.0-1", "new": "3"}, tree)
        assert (tree / "usr/sbin/named").read_text() == (tree / "sbin/named").read_text() == "sbin/named"
        assert [str((tree / name).readlink()) for name in ("bin", "sbin", "lib", "lib64")] == [
            f"usr/{name}" for name in ("bin", "sbin", "lib", "lib64")
        ]
        assert (tree / "bin/dig").exists() and (tree / "etc/named.conf").exists()
        assert not (tree / "usr/share/man/man8").exists() and not (tree / "usr/share/locale/de").exists()
        assert not (tree / "bin/other").exists(), "apt may have downloaded it for another server"
        assert "nobody:x:65534:65534:" in (tree / "etc/passwd").read_text()

    @pytest.mark.parametrize("version", ["4", "3.1"])
    def test_another_version_is_not_the_one_that_was_wanted(self, cache: Path, tmp_path: Path, version: str) -> None:
        packed(cache, "new", "3", "usr/bin/dig")
        with pytest.raises(DnsrigError, match="apt downloaded 0 of 1 packages of forky"):
            debian._unpack(SUITE, {"new": version}, tmp_path / "tree")

    def test_a_package_that_is_cut_is_an_error(self, cache: Path, tmp_path: Path) -> None:
        package = packed(cache, "new", "3", *(f"usr/bin/{number}" for number in range(20)))
        package.write_bytes(package.read_bytes()[:-5000])
        with pytest.raises(DnsrigError, match=r"cannot unpack new_3_all\.deb: \S"):
            debian._unpack(SUITE, {"new": "3"}, tmp_path / "tree")


def made(name: str, at_s: int, **changes: object) -> Path:
    path = debian.folder(SUITE) / name
    path.mkdir(parents=True)
    record = {"suite": SUITE, "packages": {"a": "1"}, "layout": debian.LAYOUT_VERSION, **changes}
    (path / debian.RECORD).write_text(json.dumps(record))
    os.utime(path / debian.RECORD, (at_s, at_s))
    return path


def test_the_newest_root_is_the_last() -> None:
    newest, oldest = made("bind-abc", 30), made("bind-def", 10)
    made("bind-ghi", 20, layout=debian.LAYOUT_VERSION + 1)
    made("bind-of-others-abc", 20)
    (debian.folder(SUITE) / "bind-unfinished").mkdir()
    (broken := made("bind-broken", 40) / debian.RECORD).write_text("{")
    assert debian.roots(SUITE, "bind") == [debian.Root(path, SUITE, {"a": "1"}) for path in (oldest, newest)]
    assert broken.exists() and debian.roots("trixie", "bind") == []


def test_a_root_is_known_by_its_versions() -> None:
    keys = {debian._key(versions) for versions in ({"a": "1", "b": "2"}, {"b": "2", "a": "1"}, {"a": "1", "b": "3"})}
    assert len(keys) == 2 and {len(key) for key in keys} == {12}


def test_apt_says_which_versions_it_would_install() -> None:
    said = (
        "Inst libc6 (2.41-1 Debian:13 [amd64])\nInst bind9 [1:9.18] (1:9.20.4-1 Debian:13 [amd64])\nConf libc6 (2.4)\n"
    )
    found = {match["name"]: match["version"] for match in debian.INSTALLATION.finditer(said)}
    assert found == {"libc6": "2.41-1", "bind9": "1:9.20.4-1"}
