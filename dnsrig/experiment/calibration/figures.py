"""The figures of a certificate, from the trials of a calibration."""

from __future__ import annotations

import json

from dnsrig.analysis import calibration
from dnsrig.analysis.calibration import measured
from dnsrig.analysis.cpu_shares import shares_of
from dnsrig.analysis.metrics import all_metrics
from dnsrig.analysis.metrics.latency import timeout_ms
from dnsrig.analysis.read import Run, Trial
from dnsrig.certificate import VETH, Capacity, Floor, Noise
from dnsrig.rundir import TrialSpec
from dnsrig.servers import all_drivers, sources

ECHO = "echo@engine"
REAL = ("nsd", "knot", "bind", "powerdns")
"""Kinds of servers, the lightest first. One of them is measured beside the reflector."""
NOISE_METRIC = "p99_ms"


def noisy_servers() -> list[str]:
    """The reflector, and the first real server that is already installed."""
    for kind in REAL:
        for source in sources.all_sources().values():
            if found := source.installed(all_drivers()[kind]):
                return [ECHO, found[-1].name]
    return [ECHO]


def server_axis(servers: list[str]) -> str:
    """The axis of servers, as a value of `--set`."""
    return f"server={json.dumps(servers)}"


def floors(run: Run, path: str = VETH) -> list[Floor]:
    return [_floor(spec, path, run.of_variant(name)) for name, spec in run.manifest.specs.items()]


def _floor(spec: TrialSpec, path: str, trials: list[Trial]) -> Floor:
    def of_metric(name: str, factor: float) -> list[float | None]:
        values = [trial.value(name) for trial in trials]
        return [None if value is None else factor * value for value in values]

    lag_max_us = [None if (value := t.load.lag_ns.get("max")) is None else value / 1e3 for t in trials]
    return Floor(
        path=path,
        transport=str(spec.options["transport"]),
        rate_qps=float(spec.options["rate_qps"]),
        trials=len(trials),
        not_done=_not_done(trials),
        p50_us=measured(of_metric("p50_ms", 1e3)),
        p99_us=measured(of_metric("p99_ms", 1e3)),
        p99_9_us=measured(of_metric("p99_9_ms", 1e3)),
        lag_p50_us=measured(of_metric("send_lag_p50_us", 1)),
        lag_p99_us=measured(of_metric("send_lag_p99_us", 1)),
        lag_max_us=measured(lag_max_us),
    )


def _not_done(trials: list[Trial]) -> str:
    """Number of trials that are not `done`, and the reason of the first one; empty if all are."""
    others = [trial.record for trial in trials if trial.record.outcome != "done"]
    if not others:
        return ""
    return f"{len(others)} of {len(trials)} {others[0].outcome}: {others[0].reason}"


def capacities(run: Run) -> list[Capacity]:
    return [_capacity(spec, run.of_variant(name)) for name, spec in run.manifest.specs.items()]


def _capacity(spec: TrialSpec, trials: list[Trial]) -> Capacity:
    bounds = [calibration.bound(trial.ramp, _busiest_share(trial), _foreign_share(trial)) for trial in trials]
    sides = {bound.side for bound in bounds}
    # The certificate names the bottleneck only if all trials agree.
    agreed = bounds[0] if len(sides) == 1 else calibration.Bound("not known", "trials do not agree on it")
    return Capacity(
        transport=str(spec.options["transport"]),
        new_connections=bool(spec.options["queries_per_connection"]),
        trials=len(trials),
        # A ramp that ends at the instrument is `invalid` for a server, and here it is the answer.
        not_done="" if all(trial.ramp.capacity_qps for trial in trials) else _not_done(trials),
        qps=measured([trial.ramp.capacity_qps for trial in trials]),
        bound_by=agreed.side,
        why=agreed.why,
    )


def _busiest_share(trial: Trial) -> float | None:
    """Largest share of busy time on any of the server's CPUs."""
    shares = []
    for cpu in trial.record.spec.hosts[trial.subject].cpus:
        idle = trial.during_measure("machine", f"cpu{cpu}", "idle_us")
        shares.append(calibration.busiest_share(idle["time_ns"].to_list(), idle["value"].to_list()))
    known = [share for share in shares if share is not None]
    return max(known, default=None)


def _foreign_share(trial: Trial) -> float:
    shares = shares_of(trial, trial.subject)
    return shares[2] if shares else 0.0


def noise(run: Run) -> list[Noise]:
    return [_noise(spec, run.of_variant(name), run.manifest.order_seed) for name, spec in run.manifest.specs.items()]


def _noise(spec: TrialSpec, trials: list[Trial], seed: int) -> Noise:
    assert spec.server is not None
    ordered = sorted(trials, key=lambda trial: trial.key.repeat)
    values = [value for trial in ordered if (value := trial.value(NOISE_METRIC)) is not None]
    return Noise(
        server=spec.server.label if spec.server.kind != "echo" else ECHO,
        metric=NOISE_METRIC,
        unit=all_metrics()[NOISE_METRIC].unit,
        rate_qps=float(spec.options["rate_qps"]),
        transport=str(spec.options["transport"]),
        values=values,
        not_done="; ".join(filter(None, (_not_done(trials), _at_timeout(trials)))),
        smallest=calibration.smallest_differences(values, seed),
        seed=seed,
    )


def _at_timeout(trials: list[Trial]) -> str:
    """Number of trials at the client's timeout. Their true value is higher, so the real spread is wider."""
    limits = [(trial.value(NOISE_METRIC), timeout_ms(trial)) for trial in trials]
    reached = sum(value is not None and limit is not None and value >= limit for value, limit in limits)
    return f"{reached} of {len(trials)} at the client's timeout, so they spread more than this" if reached else ""
