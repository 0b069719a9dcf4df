"""dnsrig's own `load`, used by hand: the JSON lines that it writes into a pipe or a file, or its ``summary.json``.

Source: ``engine/dnsrig-engine/src/load/summary.rs``. It counts from the moment at which a query was due, with the
queries without an answer among the latencies, and says transport and rate, which become axes of the run. The figures
of its summary are exact ranks. Whole distributions are in ``latency.hlog`` of its ``--out``: the importer `hlog` reads
them.
"""

from __future__ import annotations

from typing import Any

from dnsrig import foreign
from dnsrig.importers import Asked, Result, Stretch
from dnsrig.rundir import DNSRIG_LOAD, Scalar
from dnsrig.runs.load_result import Figures, LoadResult

FILES = "what `dnsrig load` writes into a file (`dnsrig load … > load.jsonl`), or `summary.json` of its `--out`"
SERIES = ("latency_ns", "lower_latency_ns", "sent_latency_ns", "lag_ns")
MODELS = {"closed": "closed loop", "ramp": "ramp", "stream": "stream"}
"""Label on the axis of rates, if the load had no rate."""


def read(data: bytes, asked: Asked) -> Result:
    events = list(foreign.json_objects(data.decode(errors="replace")))
    told = next((event for event in reversed(events) if event.get("event", "summary") == "summary"), None)
    if told is None:
        raise ValueError("it has no `summary`: was `load` interrupted?")
    load = LoadResult.model_validate(told)
    if load.model is None:
        raise ValueError("its summary names no model: it is not one of `load`")
    lost = load.timeouts + sum(load.lost.values())
    return Result(
        version="",
        tool=DNSRIG_LOAD,
        basis="due",
        model=load.model,
        resolution_ns=1,
        duration_s=load.span_s,
        sent=load.sent,
        answered=load.answered,
        timeouts=lost,
        rcodes=load.rcodes,
        asked_qps=load.asked_qps,
        capacity_qps=load.capacity_qps,
        timeout_ns=load.timeout_ns,
        figures={name: found for name in SERIES if (found := _figures(told.get(name)))},
        stretches=[Stretch(0.0, load.span_s, load.sent, load.answered, lost)],
        axes=_axes(told, load),
        missing=["There is no distribution of latency, but percentiles: `latency.hlog` of --out has it."],
    )


def _figures(told: Any) -> Figures:
    return {name: value for name, value in (told or {}).items() if isinstance(value, int | float)}


def _axes(told: Any, load: LoadResult) -> dict[str, Scalar]:
    rate = load.asked_qps if load.model == "rate" else None
    whole = int(rate) if rate is not None and rate == int(rate) else rate
    return {"transport": str(told.get("transport", "")), "rate": MODELS[str(load.model)] if whole is None else whole}
