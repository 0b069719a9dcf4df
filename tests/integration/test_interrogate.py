"""What each server supports as a primary, found by asking it: the facts that do not depend on its version of the
day."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import specs
from suites import quick
from test_transports import WITH_TLS, in_progress

from dnsrig import datasets
from dnsrig.procedures.instrument import Instrument
from dnsrig.rundir import TrialSpec
from dnsrig.servers import all_drivers, keys

KINDS = sorted(kind for kind, server in all_drivers().items() if server.answers_zones and not server.only_source)
ZONES = 300
LARGE_RECORDS = 20_000
"""Of the one zone that is in the way of others: about a megabyte."""
LIMIT_S = 90
Features = dict[tuple[str, str], dict[str, Any]]


def with_large_zone(spec: TrialSpec, folder: Path) -> TrialSpec:
    """``spec`` with one more zone in its dataset, larger than all others together."""
    dataset = shutil.copytree(datasets.folder(spec.dataset.key), folder / "dataset")
    records = "".join(f"h{number} IN A 192.0.2.{number % 256}\n" for number in range(LARGE_RECORDS))
    soa = f"ns1.example. hostmaster.example. {spec.dataset.serial} 3600 900 1209600 300"
    (dataset / "large.zone").write_text(
        f"$ORIGIN large.example.\n$TTL 3600\n@ IN SOA {soa}\n@ IN NS ns1.example.\n{records}"
    )
    with (dataset / "zones.list").open("a") as zones:
        zones.write("large.example\tlarge.zone\n")
    changed = {"key": str(dataset), "zones": ZONES + 1, "records": spec.dataset.records + LARGE_RECORDS + 2}
    return spec.model_copy(update={"dataset": spec.dataset.model_copy(update=changed)})


def interrogate(folder: Path, kind: str, transport: str, *settings: str, changes: bool = False) -> Features:
    """The features of ``kind`` as a primary with its zones behind ``transport``, by name and transport of the check.

    ``changes``: each zone was updated before.
    """
    (spec,) = specs(
        "tour",
        "server=nsd@forky",
        f"zones={ZONES}",
        f"hosts.primary.server={kind}@forky",
        f"transfer.transport={transport}",
        *settings,
    )
    spec = with_large_zone(spec, folder)
    (folder / "trial").mkdir()
    with in_progress(spec, folder / "trial") as context:
        context.start_watch()
        context.start_ready("primary", limit_s=60)
        if changes:
            zones = f"--zones={datasets.folder(spec.dataset.key) / 'zones.list'}"
            change = context.instruments.start_change(
                "change", "primary", [zones, f"--changes-per-s={ZONES + 1}", "--duration-s=1"]
            )
            assert context.wait(change, limit_s=30)["accepted"] > ZONES / 2
        arguments = [
            "interrogate",
            spec.hosts["primary"].address,
            f"--zones={datasets.folder(spec.dataset.key) / 'zones.list'}",
        ]
        if spec.transfer.tsig:
            arguments.append(f"--tsig={keys.TSIG_ALGORITHM}:{keys.TSIG_NAME}:{context.workspace.keys.tsig_secret}")
        errors = folder / "interrogation.txt"
        instrument = Instrument.start("interrogation", context.host("observer"), arguments, errors)
        context.instruments.started["interrogation"] = instrument
        summary = context.wait(instrument, limit_s=LIMIT_S)
        print(errors.read_text())
    return {(feature["name"], feature["transport"]): feature for feature in summary["features"]}


@pytest.mark.parametrize("kind", quick(KINDS, "bind"))
def test_what_a_primary_supports(tmp_path: Path, kind: str) -> None:
    has_tls = kind in WITH_TLS
    features = interrogate(tmp_path, kind, "xot+tsig" if has_tls else "tcp+tsig")
    verdicts = {key: feature["verdict"] for key, feature in features.items()}

    def on(name: str, transport: str = "tcp") -> str:
        return str(verdicts[name, transport])

    for name in ("axfr", "soa-over-tcp", "many-transfers-on-one-connection", "pipelining", "tsig", "tsig-every"):
        assert on(name) == "yes", features[name, "tcp"]
    assert features["tsig", "tcp"]["evidence"]["unsigned"] != "served"
    for transport in ("tcp", "xot") if has_tls else ("tcp",):
        in_order = kind != "bind"
        assert on("order", transport) == ("yes" if in_order else "no"), features["order", transport]
        assert on("interleaving", transport) == ("no" if in_order else "yes"), features["interleaving", transport]
        assert on("pipelining", transport) == "yes", features["pipelining", transport]
        if in_order:
            assert on("small-behind-large", transport) == "yes", features["small-behind-large", transport]
    assert (on("messages-for-a-tiny-zone") == "yes") == (kind != "powerdns")
    assert (on("delayed-ack-pause") == "yes") == (kind == "powerdns"), features["delayed-ack-pause", "tcp"]
    assert on("xot", "xot") == ("yes" if has_tls else "no"), features["xot", "xot"]
    # Accepted is not answered: the query in it is lost.
    assert (on("tls-early-data", "xot") in ("yes", "partly")) == (kind == "knot"), features["tls-early-data", "xot"]
    if has_tls:
        assert on("tls-resumption", "xot") == "yes", features["tls-resumption", "xot"]
        together = features["several-queries-in-one-tls-record", "xot"]
        assert together["verdict"] == ("yes" if kind == "bind" else "no"), together
    at_once = features["transfers-at-once-limit", "tcp"]
    # On a machine where others run, some have no answer in time: that is no limit, which would refuse them.
    assert at_once["verdict"] in ("no", "partly") and at_once["evidence"]["refused"] == 0, at_once


@pytest.mark.full
def test_limit_is_met(tmp_path: Path) -> None:
    """BIND's own limit of transfers at a time, which dnsrig raises."""
    features = interrogate(tmp_path, "bind", "tcp", 'hosts.primary.settings."transfers-out"=10')
    limit = features["transfers-at-once-limit", "tcp"]
    assert limit["verdict"] == "yes" and limit["evidence"]["refused"] > 0, limit
    assert "SERVFAIL" in limit["detail"]


@pytest.mark.full
@pytest.mark.parametrize("kind", ["bind", "knot"])
def test_differences_where_zones_changed(tmp_path: Path, kind: str) -> None:
    features = interrogate(tmp_path, kind, "tcp", "transfer.ixfr=true", "transfer.updates=true", changes=True)
    assert features["ixfr", "tcp"]["verdict"] == "yes", features["ixfr", "tcp"]
