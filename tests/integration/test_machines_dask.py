"""Runs over the machines of a Dask cluster: real trials, and the loss of anything at any moment."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from conftest import DNSRIG, left_behind, wait_until
from dask_cluster import START_LIMIT_S, VICTIMS, Cluster
from distributed import Security
from distributed.comm import connect
from machine_runs import IMPATIENT, LEASE_S, PRETEND_S, finished, manifest_of, preload, pretending_trials
from suites import on_day, quick

from dnsrig.cli.machines import certificates
from dnsrig.errors import UsageError
from dnsrig.machines import dask

NAMES = ("rack-1", "rack-2", "rack-3")
CONNECT_LIMIT_S = 5


@contextlib.contextmanager
def cluster(folder: Path, names: Sequence[str], *, pretending: bool) -> Iterator[Cluster]:
    made = Cluster(folder, names, preload(folder) if pretending else None)
    try:
        yield made
    finally:
        made.end()


async def nobody_connects_without_a_certificate(machines: Cluster, folder: Path) -> None:
    """Only a client with a certificate of the cluster is let in, wherever other machines could connect."""
    files = {"ours": machines.environment("client")["DASK_CONFIG"], "other": str(folder / "other/client.json")}
    certificates(folder / "other")
    with_tls = {name: Security(**arguments(Path(path))) for name, path in files.items()}
    listeners = machines.listeners()
    assert len(listeners) >= 1 + len(machines.workers)

    async def are_let_in(scheme: str, security: Security) -> list[bool]:
        return await asyncio.gather(*(is_let_in(f"{scheme}://{address}", security) for address in listeners))

    assert all(await are_let_in("tls", with_tls["ours"])), listeners
    assert not any(await are_let_in("tls", with_tls["other"])), listeners
    assert not any(await are_let_in("tcp", Security())), listeners


async def is_let_in(address: str, security: Security) -> bool:
    try:
        comm = await connect(address, timeout=CONNECT_LIMIT_S, **security.get_connection_args("client"))
    except OSError:
        return False
    comm.abort()
    return True


def arguments(path: Path) -> dict[str, str]:
    tls = json.loads(path.read_text())["distributed"]["comm"]["tls"]
    return {
        "tls_ca_file": tls["ca-file"],
        "tls_client_cert": tls["client"]["cert"],
        "tls_client_key": tls["client"]["key"],
    }


@pytest.mark.full
def test_real_trials_on_two_machines(tmp_path: Path, nothing_left: None) -> None:
    """Takes a minute: Python starts anew on each machine, and two CPUs do the work of all machines."""
    settings = ("--set", "server=nsd@forky", "--set", "zones=20", "--repeats", "2")
    with cluster(tmp_path, NAMES[:2], pretending=False) as machines:
        command = [*DNSRIG, "run", "tour", *settings, "--on", machines.on]
        result = subprocess.run(
            command, cwd=tmp_path, env=machines.environment("client"),
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert len(finished(tmp_path)) == 2
    assert [machine.name for machine in manifest_of(tmp_path).machines] == ["rack-1", "rack-2"]
    for name in NAMES[:2]:
        assert [*machines.cache(name).glob("roots/forky/nsd-*/usr/sbin/nsd")]
        assert not [*machines.cache(name).glob("machines/*/*")]
    assert not left_behind()


@pytest.mark.full
def test_the_first_worker_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who starts everything in one script starts the run before the worker is known."""
    with cluster(tmp_path, (), pretending=False) as machines:
        keys = Security(**arguments(Path(machines.environment("client")["DASK_CONFIG"])))
        monkeypatch.setattr(dask, "FIRST_WORKER_LIMIT_S", 0.1)
        with pytest.raises(UsageError, match="no worker with the resource"), dask.workers(machines.on, keys):
            pass
        monkeypatch.setattr(dask, "FIRST_WORKER_LIMIT_S", START_LIMIT_S)
        machines.add("rack-1")
        with dask.workers(machines.on, keys) as found:
            assert [worker.name for worker in found] == ["rack-1"]


@on_day(2, of=3)
@pytest.mark.parametrize(
    ("victim", "seed"),
    quick([("worker", 0), *((victim, seed) for seed, victim in enumerate(VICTIMS, start=1))], ("worker", 0)),
)
def test_whatever_is_lost_the_run_is_completed(
    victim: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seed 0 has two machines, which take less time to start, and the others have three.

    Takes more than 30 s: each process of the cluster imports everything, and a lease must end before the run goes on.
    """
    chance, names = random.Random(f"{victim} {seed}"), NAMES if seed else NAMES[:2]
    monkeypatch.setenv("PRETEND_S", str(PRETEND_S))
    with cluster(tmp_path, names, pretending=True) as machines:
        words = ["run", "echo-baseline", "--repeats", str(2 * len(names)), "--on", machines.on]
        with (tmp_path / "runner.log").open("w") as log:
            runner = subprocess.Popen(
                [*IMPATIENT, *words],
                cwd=tmp_path,
                env=machines.environment("client"),
                stdout=log,
                stderr=log,
                text=True,
            )
        asyncio.run(nobody_connects_without_a_certificate(machines, tmp_path))
        wait_until(lambda: bool(finished(tmp_path)) or runner.poll() is not None, START_LIMIT_S)
        time.sleep(chance.uniform(0, 4))
        before = finished(tmp_path)
        bring_back = machines.lose(victim, runner, chance)
        runner.wait(120)
        bring_back()
        (directory,) = tmp_path.glob("runs/*/*")
        wait_until(lambda: not pretending_trials(tmp_path), LEASE_S + 20)
        again = subprocess.run(
            [*IMPATIENT, "run", "--resume", str(directory), "--on", machines.on],
            cwd=tmp_path, env=machines.environment("client"),
            capture_output=True, text=True, timeout=180, check=False,
        )  # fmt: skip
        assert again.returncode == 0, again.stderr + (tmp_path / "runner.log").read_text()
    after, manifest = finished(tmp_path), manifest_of(tmp_path)
    assert len(before) < len(after) == len(manifest.order) and before.items() <= after.items()
    for machine in manifest.machines:
        told = [path for path in after if (path.parent / "where").read_text() == str(machines.cache(machine.name))]
        assert set(Counter(path.parent.parent.name for path in told).values()) == {2}
        assert not [*machines.cache(machine.name).glob("machines/*/*")]
    assert not pretending_trials(tmp_path)
