"""What the checkers of servers print, and where the fault is in the user's file."""

from __future__ import annotations

from pathlib import Path

import pytest

from dnsrig import datasets
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
