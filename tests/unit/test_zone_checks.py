"""What the checkers of servers print, and where the fault is in the user's file."""

from __future__ import annotations

from pathlib import Path

import pytest

from dnsrig import datasets
from dnsrig.confinement import Confinement
from dnsrig.rundir import DatasetSpec, ServerSource
from dnsrig.servers import zone_checks
from dnsrig.servers.zone_checks import Refusal

FILE = "zones/000/0000000.zone"


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        (
            "dns_master_load: /mnt/dataset/zones/000/0000000.zone:7: www.own.example: CNAME and other data\nzone x: failed\n",
            "dns_master_load: /mnt/dataset/zones/000/0000000.zone:7: www.own.example: CNAME and other data",
            7,
        ),
        ("warning: fine\nerror: [own.example.] file '0000000.zone', line 12 (bad)\n", None, 12),
        ("starting\n[Error] Record of type CNAME\n", "[Error] Record of type CNAME", None),
        ("", "exit status 3", None),
    ],
)
def test_the_reason_is_the_line_that_names_a_place_or_an_error(text: str, reason: str | None, line: int | None) -> None:
    said, place = zone_checks._reason(text, FILE, 3)
    assert place == line
    assert reason is None or said == reason


def test_a_sentence_names_the_users_own_line_and_who_accepts_the_zone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DNSRIG_CACHE", str(tmp_path / "cache"))
    own = tmp_path / "own.example.zone"
    own.write_text(
        "; long\n; comment\n$TTL 60\n@ IN SOA a. b. (\n 7 1 1 1 1 )\n@ IN NS a.\nw A 192.0.2.1\nw CNAME a.\n"
    )
    made = datasets.provide("files", {"files": str(own)})
    copy = (datasets.folder(made.key) / FILE).read_text().splitlines()
    found = Refusal("own.example", "CNAME and other data", copy.index("w CNAME a.") + 1)
    told = {"bind": [found], "knot": [Refusal("own.example", "no", None)], "nsd": [], "echo": None}

    def refusals(source: ServerSource, dataset: DatasetSpec) -> list[Refusal] | None:
        return told[source.kind]

    monkeypatch.setattr(zone_checks, "refusals", refusals)
    servers = {kind: ServerSource(kind=kind, source="x", version="1") for kind in told}
    assert zone_checks.sentences(servers, made, [own]) == [
        f"bind refuses {own} line 8: CNAME and other data; knot refuses own.example ({own}): no; accepted by nsd"
    ]


def test_a_dataset_that_another_process_makes_meanwhile_does_not_disturb_a_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever makes one removes what a killed process left in the folder of datasets."""
    monkeypatch.setenv("DNSRIG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(zone_checks.os, "geteuid", lambda: 0)
    made = datasets.provide("tiny-zones", {"zones": 1})
    checks = []

    def check(command: list[str], confined: Confinement) -> tuple[int, str]:
        places = [bind.machine for bind in confined.binds]
        datasets.provide("tiny-zones", {"zones": 2 + len(checks)})
        checks.append(all(place.exists() for place in places))
        return 0, ""

    monkeypatch.setattr(zone_checks, "_one", check)
    source = ServerSource(kind="nsd", source="system", version="4.15.4")
    assert [zone_checks.refusals(source, made) for _ in range(2)] == [[], []]
    assert checks == [True], "and what was found is kept"
    assert sorted(path.suffix for path in (tmp_path / "cache/zone-checks").iterdir()) == ["", ".json"]
