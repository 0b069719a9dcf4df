"""Made-up runs of every kind: query load, ramps, the instrument's transfers, replays, resolvers, far paths, a zone's
cycle, own zones, several machines, imported results, and transfers by servers."""

from __future__ import annotations

from pathlib import Path

import elsewhere_data
import load_rows
import path_data
import replay_data
import replication_data
import socket_data
import synthetic
import test_importers
import transfer_rows

from dnsrig.rundir import PathSpec, Resolving
from dnsrig.runs.run import Run


def of_every_kind(folder: Path) -> dict[str, Run]:
    """What a run is about -> the run."""
    small = synthetic.Plan(servers=["knot@system"], zones=[100])

    def made(name: str, plan: synthetic.Plan = small) -> Run:
        return Run.open(synthetic.build(folder / name, plan))

    names = (
        "loaded",
        "climbed",
        "pulled",
        "sites",
        "far",
        "narrow",
        "replayed",
        "resolved",
        "apart",
        "owned",
        "connected",
    )
    runs = {name: made(name) for name in names}
    runs["run"] = made("run", synthetic.Plan(stacks={"main;connect": 500}))
    runs["spread"] = made("spread", synthetic.Plan(samples=False, machines=("a", "b")))
    for trial in runs["run"].trials:
        trial.record.spec.options["cycle_s"] = 60.0
    for trial in runs["loaded"].trials:
        load_rows.load(trial, load_rows.Asked(), load_rows.log_normal(0.2, 0.4))
    for trial in runs["climbed"].trials:
        load_rows.ramp(trial, [{"rate_qps": 10_000, "holds": True}], 10_000)
    for trial in runs["pulled"].trials:
        connections = [transfer_rows.Connection(0, 0, 1, 9, "full")]
        transfer_rows.put(trial, transfer_rows.pipelined([300] * 100), connections, resumption=True)
        transfer_rows.whole(trial)
    for trial in runs["sites"].trials:
        replication_data.between_sites(trial)
    for trial in runs["far"].trials:
        socket_data.bulk(trial).record.spec.hosts["primary"].congestion = "cubic"
    for trial in runs["narrow"].trials:
        path_data.over_path(trial, PathSpec(delay_ms=50, jitter_ms=9, ordered=False, mtu_bytes=1300))
    for trial in runs["replayed"].trials:
        replay_data.put(trial)
    for trial in runs["resolved"].trials:
        replay_data.put(trial)
        trial.record.spec.hosts["internet"] = trial.record.spec.hosts["primary"].model_copy(update={"role": "world"})
        trial.record.spec.hosts[trial.subject].resolving = Resolving()
    for trial in runs["apart"].trials:
        elsewhere_data.put(trial, "primary", "rack-1")
    for trial in runs["owned"].trials:
        trial.record.instruments["records-secondary"] = {"outcome": "done", "rrsets": 3, "rrsets_different": 0}
        counts = {"attempted": 9, "established": 9, "open": 9}
        opening = {
            "start_ns": 0,
            "duration_s": 1.0,
            "sent": 9,
            "answered": 9,
            "connections": counts,
            "handshake_ns": {},
        }
        asked = {"transport": "tcp", "clients": 9, "sent": 9, "answered": 9, "timeouts": 0, "connections": counts}
        held = {"held_as": "idle", "every_s": 10.0, "opening": opening}
        trial.record.instruments["held"] = {**asked, "held": held}
        trial.record.instruments["compare-answers"] = {"queries": 3, "different": 0, "unanswered": 1}
        spec = trial.record.spec
        spec.next_dataset = spec.dataset.model_copy(update={"parameters": {"next": "", "unsigned_changes": True}})
        spec.dataset = spec.next_dataset
    for trial in runs["connected"].trials:
        counted = {"established": 8, "early_accepted": 10, "quic": {"full_handshake_bytes_min": 2_500}}
        asked = {"transport": "doq", "due": 1000, "sent": 1000, "connections": counted}
        trial.record.instruments |= {"load": {"model": "rate", **asked}, "ramp": {"model": "ramp", **asked}}
        trial.record.spec.options |= {"clients": 8, "transport": "doq"}
    return runs | {"imported": test_importers.made(folder, "dnsperf")}
