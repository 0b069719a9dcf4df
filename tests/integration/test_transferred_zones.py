"""Zones that are transferred once: from a real server, with a key."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import specs
from suites import quick
from test_transports import in_progress

from dnsrig import datasets, paths
from dnsrig.datasets import transferred
from dnsrig.errors import DnsrigError
from dnsrig.lab.host import inside
from dnsrig.rundir import OBSERVER
from dnsrig.servers import keys

ZONE = "z000000.example"


@pytest.mark.parametrize("kind", quick(["bind", "knot", "nsd", "powerdns"], "bind"))
def test_zones_are_transferred_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    (spec,) = specs(
        "tour", "server=nsd@forky", "zones=2", f"hosts.primary.server={kind}@forky", "transfer.transport=tcp+tsig"
    )
    (tmp_path / "trial").mkdir()
    with in_progress(spec, tmp_path / "trial") as context:
        context.start_watch()
        context.start_ready("primary", limit_s=60)
        key, wrong = tmp_path / "key", tmp_path / "wrong"
        key.write_text(f"{keys.TSIG_ALGORITHM}:{keys.TSIG_NAME}:{context.workspace.keys.tsig_secret}\n")
        wrong.write_text(f"{keys.TSIG_ALGORITHM}:{keys.TSIG_NAME}:d3Jvbmc=\n")
        chosen = {"from": str(context.host("primary").address), "zones": ZONE, "key": str(key)}
        monkeypatch.setattr(paths, "cache", lambda: tmp_path / "cache")
        with inside(context.host(OBSERVER).namespace):
            made = datasets.provide("transferred", chosen)
            (copy,) = (tmp_path / "cache" / "transferred").rglob("*.zone")
            first_ns = copy.stat().st_mtime_ns
            assert (made.zones, made.serial, copy.name) == (1, spec.dataset.serial, f"{spec.dataset.serial}.zone")
            assert made.records == spec.dataset.records // 2

            transferred._copies.cache_clear()
            assert datasets.provide("transferred", chosen) == made
            assert copy.stat().st_mtime_ns == first_ns, "its serial is still the one of the server"

            for other, words in (
                ({"key": "", "zones": "z000001.example"}, "refuses|is not authoritative"),
                # PowerDNS refuses a key with NOTAUTH alone, without the TSIG error of RFC 8945 §5.2.1.
                ({"key": str(wrong)}, "does not accept the key" if kind != "powerdns" else "is not authoritative"),
                ({"zones": "nosuchzone.example"}, "refuses|is not authoritative"),
            ):
                with pytest.raises(DnsrigError, match=words):
                    datasets.provide("transferred", {**chosen, **other})
