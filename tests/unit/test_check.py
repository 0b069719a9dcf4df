"""`dnsrig check`: what it says of links and kernels, without looking at any."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyroute2.netlink.exceptions import NetlinkError

from dnsrig.cli import check as command
from dnsrig.errors import DnsrigError
from dnsrig.lab import cgroup, check, conditions, disturbances, idle, removal, tcp, uml
from dnsrig.lab.disturbances import Grade, Remark
from dnsrig.lab.links import netem, tun


@pytest.fixture(autouse=True)
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)


@pytest.mark.parametrize(
    ("by_kernel", "by_engine", "grades", "says"),
    [
        (True, True, ["good", "good"], "by default"),
        (False, True, ["note", "good"], 'take link = "tun" by themselves'),
        (False, False, ["note", "note"], "mknod /dev/net/tun"),
    ],
)
def test_links(monkeypatch: pytest.MonkeyPatch, by_kernel: bool, by_engine: bool, grades: list[str], says: str) -> None:
    monkeypatch.setattr(netem, "unavailable", lambda: None if by_kernel else netem.LACKING)
    monkeypatch.setattr(tun, "unavailable", lambda: None if by_engine else "there is no TUN")
    found = list(check._links())
    assert [one.grade for one in found] == grades
    assert any(says in one.says + one.remedy for one in found)


def test_congestion_controls_that_are_lacking_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp, "congestion_controls", lambda: ("bbr", "cubic", "reno"))
    (found,) = check._congestion()
    assert found.grade == "note" and "not hybla, illinois" in found.says
    assert "tcp_hybla tcp_illinois" in found.remedy and 'kernel = "uml"' in found.remedy


@pytest.mark.parametrize(("is_there", "grade"), [(True, "good"), (False, "note")])
def test_idle_cpus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_there: bool, grade: str) -> None:
    device = tmp_path / "cpu_dma_latency"
    if is_there:
        device.touch()
    monkeypatch.setattr(idle, "DEVICE", device)
    (found,) = disturbances._idle()
    assert found.grade == grade and (is_there or str(device) in found.remedy)


@pytest.mark.parametrize(("says", "remarks"), [("1", 1), ("0", 0), (None, 0)])
def test_autogroups(monkeypatch: pytest.MonkeyPatch, says: str | None, remarks: int) -> None:
    monkeypatch.setattr(conditions, "read", lambda path: says if path == conditions.AUTOGROUPS else None)
    found = list(disturbances._autogroups())
    assert len(found) == remarks and all(one.grade == "note" and "=0" in one.remedy for one in found)


@pytest.mark.parametrize(
    ("why", "cached", "says"),
    [
        ("no apt-get", False, "no apt-get"),
        (None, False, "fetched when it is first needed"),
        (None, True, "congestion controls cubic, hybla"),
    ],
)
def test_kernel_uml(monkeypatch: pytest.MonkeyPatch, why: str | None, cached: bool, says: str) -> None:
    kernel = SimpleNamespace(release="6.1.1", congestion_controls=lambda: ["cubic", "hybla"])
    monkeypatch.setattr(uml, "available", lambda: why)
    monkeypatch.setattr(uml, "find", lambda: kernel if cached else None)
    (found,) = check._uml()
    assert says in found.says and found.grade == ("note" if why else "good")


class Refused:
    """A network that cannot be made."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __enter__(self) -> None:
        raise self.error

    def __exit__(self, *_: object) -> None: ...


@pytest.mark.parametrize(
    ("error", "says", "remedy"),
    [
        (DnsrigError("the cgroup /x cannot be made", hint="a writable tree"), "the cgroup /x", "a writable tree"),
        (OSError(1, "Operation not permitted"), "Operation not permitted", "CAP_SYS_ADMIN"),
        (NetlinkError(95, "Operation not supported"), "joined by veth", "have veth?"),
    ],
)
def test_veth_is_blamed_for_veth_alone(
    monkeypatch: pytest.MonkeyPatch, error: Exception, says: str, remedy: str
) -> None:
    monkeypatch.setattr(check, "Network", lambda *_: Refused(error))
    (found,) = check._network()
    assert found.grade == "bad" and says in found.says and remedy in found.remedy
    assert ("veth" in found.says + found.remedy) is isinstance(error, NetlinkError)


def test_a_tree_of_cgroups_that_cannot_be_written_is_bad(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cgroup, "hierarchies", lambda: [cgroup.Hierarchy(tmp_path, 2)])
    monkeypatch.setattr("os.access", lambda path, mode: path != tmp_path)
    found = list(check._cgroups())
    assert [remark.grade for remark in found] == ["good", "bad"] and str(tmp_path) in found[1].says


def test_what_a_dead_trial_of_root_left_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "clean", lambda: ([], ["what trial aaaaa left, which takes root"]))
    (found,) = check._remains()
    assert found.grade == "note" and "aaaaa" in found.says and "dnsrig clean" in found.remedy


def test_brackets_are_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(removal, "clean", lambda: ([], []))
    monkeypatch.setattr(check, "remarks", lambda: iter([Remark("link", "note", "none", "for a [path]")]))
    with pytest.raises(SystemExit, match="0"):
        command.command()
    assert "[path]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("free_bytes", "grade", "says"),
    [(5 << 30, "good", "5 GB free at "), ((5 << 30) - 1, "note", "5.4 GB free at "), (0, "note", "0.0 GB free at ")],
)
def test_a_disk_has_room_for_roots_and_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, free_bytes: int, grade: str, says: str
) -> None:
    """The cache may not exist yet."""
    monkeypatch.setenv("DNSRIG_CACHE", str(tmp_path / "not/yet"))
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=free_bytes))
    (found,) = check._disk()
    assert (found.grade, found.says) == (grade, f"{says}{tmp_path}") and bool(found.remedy) == (grade == "note")


@pytest.mark.parametrize(("limit", "remarks"), [(20_000, 0), (19_999, 1)])
def test_few_open_files_are_noted(monkeypatch: pytest.MonkeyPatch, limit: int, remarks: int) -> None:
    monkeypatch.setattr(conditions, "snapshot", lambda: {"open_files_limit": limit})
    assert [remark.grade for remark in check._files()] == ["note"] * remarks


@pytest.mark.parametrize(("user", "grade"), [(0, "good"), (1000, "bad")])
def test_hosts_need_root(monkeypatch: pytest.MonkeyPatch, user: int, grade: str) -> None:
    monkeypatch.setattr("os.geteuid", lambda: user)
    assert [remark.grade for remark in check._root()] == [grade]
    assert user == 0 or [*check._links(), *check._network()] == [], "without root nothing is tried"


@pytest.mark.parametrize(("works", "grade"), [(True, "good"), (False, "bad")])
def test_a_link_that_carries_nothing_is_bad(monkeypatch: pytest.MonkeyPatch, works: bool, grade: str) -> None:
    class Made:
        def __enter__(self) -> Made:
            return self

        def __exit__(self, *_: object) -> None: ...

        def check_links(self) -> list[dict[str, object]]:
            return [{"works": works, "rtt_median_us": 31.0}]

    monkeypatch.setattr(check, "Network", lambda *_: Made())
    (found,) = check._network()
    assert found.grade == grade and bool(found.remedy) != works


@pytest.mark.parametrize(
    ("grades", "as_json", "status"),
    [(["good", "note", "not known"], False, 0), (["good", "bad"], False, 1), ([], True, 0), (["bad"], True, 1)],
)
def test_only_what_is_bad_keeps_dnsrig_from_working(
    capsys: pytest.CaptureFixture[str], grades: list[Grade], as_json: bool, status: int
) -> None:
    remarks = [Remark(f"thing {number}", grade, "it is so", "do it") for number, grade in enumerate(grades)]
    assert command._here(remarks, as_json) == status
    shown = capsys.readouterr().out
    if as_json:
        assert json.loads(shown)["ready"] is (status == 0) and len(json.loads(shown)["remarks"]) == len(grades)
    else:
        assert shown.count("remedy: do it") == len(grades)
