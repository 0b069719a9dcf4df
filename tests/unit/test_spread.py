"""Runs over several machines, which are processes here: what is brought, executed, fetched, and what a loss costs."""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
import synthetic
from machine_processes import Processes
from test_runner import Silent

from dnsrig.errors import DnsrigError, UsageError
from dnsrig.experiment import needed, resume, runner, spread, trial_calls, trial_specs
from dnsrig.machines import dask, folders, leases
from dnsrig.machines.folders import Archive
from dnsrig.rundir import Machine, Manifest, read_json, trial_dir, write_json


def filled(folder: Path) -> Path:
    """A folder with what root file systems have."""
    (folder / "etc").mkdir(parents=True)
    (folder / "etc/hosts").write_text("127.0.0.1 localhost\n")
    (folder / "lib").symlink_to("etc")
    (folder / "etc/run").write_text("#!/bin/sh\n")
    (folder / "etc/run").chmod(0o750)
    return folder


class TestContent:
    def test_a_folder_arrives_as_it_was(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(folders, "PART_BYTES", 100)
        packed = folders.pack(filled(tmp_path / "folder"), tmp_path / "archive")
        for offset in range(0, packed.size_bytes, folders.PART_BYTES):
            folders.add(tmp_path / "arrived", offset, folders.part(str(packed.path), offset))
        made = tmp_path / "made"
        folders.unpack(Archive(tmp_path / "arrived", packed.size_bytes, packed.sha256), made)
        assert (made / "lib/hosts").read_text() == "127.0.0.1 localhost\n"
        assert (made / "etc/run").stat().st_mode & 0o777 == 0o750
        assert (made / "lib").is_symlink()

    def test_a_part_may_come_twice(self, tmp_path: Path) -> None:
        for offset, data in ((0, b"abc"), (3, b"xx"), (3, b"def")):
            folders.add(tmp_path / "file", offset, data)
        assert (tmp_path / "file").read_bytes() == b"abcdef"

    def test_what_is_damaged_does_not_appear(self, tmp_path: Path) -> None:
        packed = folders.pack(filled(tmp_path / "folder"), tmp_path / "archive")
        packed.path.write_bytes(packed.path.read_bytes()[:-1] + b"x")
        with pytest.raises(DnsrigError, match="arrived damaged"):
            folders.unpack(packed, tmp_path / "made")
        assert not (tmp_path / "made").exists()


class TestLeases:
    @pytest.fixture(autouse=True)
    def cache(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DNSRIG_CACHE", str(tmp_path))

    def test_who_has_it_is_named(self) -> None:
        assert leases.take("a", "anna, run 1") == ""
        assert leases.take("b", "bert, run 2") == "anna, run 1"
        leases.give_back("b")
        assert leases.take("b", "bert, run 2") == "anna, run 1"
        leases.give_back("a")
        assert leases.take("b", "bert, run 2") == ""

    def test_a_run_that_goes_on_takes_it_from_itself(self) -> None:
        assert leases.take("a", "anna, run 1") == leases.take("b", "anna, run 1") == ""

    def test_one_that_is_not_renewed_ends(self, monkeypatch: pytest.MonkeyPatch) -> None:
        leases.take("a", "anna, run 1")
        now = time.monotonic()
        monkeypatch.setattr(leases.time, "monotonic", lambda: now + leases.LEASE_S - 1)
        leases.renew("a", "anna, run 1")
        monkeypatch.setattr(leases.time, "monotonic", lambda: now + 2 * leases.LEASE_S - 2)
        assert leases.take("b", "bert, run 2") == "anna, run 1"
        monkeypatch.setattr(leases.time, "monotonic", lambda: now + 2 * leases.LEASE_S)
        assert leases.take("b", "bert, run 2") == ""
        with pytest.raises(DnsrigError, match="bert, run 2 has taken"):
            leases.renew("a", "anna, run 1")

    def test_one_of_before_a_restart_is_over(self, monkeypatch: pytest.MonkeyPatch) -> None:
        leases.take("a", "anna, run 1")
        monkeypatch.setattr(leases.conditions, "boot_id", lambda: "another")
        assert leases.take("b", "bert, run 2") == ""


@pytest.fixture
def places(tmp_path: Path) -> Iterator[list[Processes]]:
    made = [Processes(name, tmp_path / f"cache-{name}") for name in ("rack-1", "rack-2")]
    yield made
    for place in made:
        place.end()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Manifest, Path]:
    """A run of four rounds over two machines, of which nothing has been executed."""
    monkeypatch.setenv("DNSRIG_CACHE", str(tmp_path / "cache"))
    directory = synthetic.build(tmp_path / "run")
    shutil.rmtree(directory / "trials")
    made = read_json(directory / "manifest.json", Manifest)
    order = trial_specs.order([variant.id for variant in made.variants], 4, 1)
    machines = [Machine(name=name, conditions={}) for name in ("rack-1", "rack-2")]
    manifest = made.model_copy(update={"order": order, "repeats": 4, "machines": machines})
    write_json(directory / "manifest.json", manifest)
    for spec in manifest.specs.values():
        for folder in needed.data(spec):
            if not folder.exists():
                filled(folder)
    return manifest, directory


@contextlib.contextmanager
def lanes(run: tuple[Manifest, Path], places: list[Processes]) -> Iterator[list[spread.MachineLane]]:
    made = [spread.MachineLane(place, *run, "lease", "anna, run 1") for place in places]
    with spread.held(made):
        yield made


def where(directory: Path, key: object) -> str:
    return Path((trial_dir(directory, key.variant, key.repeat) / "where").read_text()).name  # type: ignore[attr-defined]


def test_each_round_is_executed_on_its_machine(run: tuple[Manifest, Path], places: list[Processes]) -> None:
    manifest, directory = run
    progress = Silent()
    with lanes(run, places) as made:
        assert runner.execute_on(made, manifest, directory, progress) == 0
    assert progress.numbers == [*range(1, 1 + len(manifest.order))]
    for key in manifest.order:
        assert where(directory, key) == ("cache-rack-1" if key.repeat % 2 else "cache-rack-2")
    (spec, *_) = manifest.specs.values()
    for folder in needed.data(spec):
        assert (places[1].cache / folder.relative_to(places[1].cache.with_name("cache")) / "lib/hosts").exists()
    assert not list(places[0].cache.glob("machines/*/*"))


def test_what_was_measured_while_the_run_was_away_is_fetched(
    run: tuple[Manifest, Path], places: list[Processes]
) -> None:
    manifest, directory = run
    (key, *_) = (key for key in manifest.order if key.repeat == 1)
    spec = manifest.specs[key.variant].model_copy(update={"repeat": 1})
    with lanes(run, places[:1]) as (machine,):
        machine.bring(spec)
        told = places[0].submit_reporting(print, trial_calls.execute, spec.model_dump_json(), "lease").result()
        assert not trial_dir(directory, key.variant, 1).exists() and Path(told["archive"]).exists()
        machine.fetch_finished()
    assert where(directory, key) == "cache-rack-1" and not Path(told["archive"]).exists()


def test_a_finished_trial_is_never_replaced(run: tuple[Manifest, Path], places: list[Processes]) -> None:
    manifest, directory = run
    (key, *_) = (key for key in manifest.order if key.repeat == 1)
    spec = manifest.specs[key.variant].model_copy(update={"repeat": 1})
    with lanes(run, places[:1]) as (machine,):
        for _ in range(2):
            machine.bring(spec)
            machine.fetch(
                places[0].submit_reporting(print, trial_calls.execute, spec.model_dump_json(), "lease").result(),
                trial_dir(directory, key.variant, 1),
            )
            (trial_dir(directory, key.variant, 1) / "mark").touch()
    assert (trial_dir(directory, key.variant, 1) / "mark").exists()


def test_the_other_machine_goes_on_when_one_is_lost(
    run: tuple[Manifest, Path], places: list[Processes], monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest, directory = run
    monkeypatch.setattr(spread.MachineLane, "is_lost", property(lambda machine: machine.worker.is_gone))
    with lanes(run, places) as made:
        places[1].kill()
        errors = runner.execute_on(made, manifest, directory, Silent())
    assert errors == sum(key.repeat % 2 == 0 for key in manifest.order)
    assert {key.repeat % 2 for key in runner.missing(manifest, directory)} == {0}


def test_a_trial_that_fails_leaves_its_logs_here_and_nothing_there(
    run: tuple[Manifest, Path], places: list[Processes], monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest, directory = run
    monkeypatch.setenv("PRETEND_FAILS", "the moon is full")
    monkeypatch.setattr(runner, "ERRORS_IN_A_ROW", 100)
    progress = Silent()
    with lanes(run, places) as made:
        assert runner.execute_on(made, manifest, directory, progress) == len(manifest.order)
    assert set(progress.reasons) == {"rack-1: the moon is full", "rack-2: the moon is full"}
    key = manifest.order[0]
    target = trial_dir(directory, key.variant, key.repeat)
    assert (target.with_name(f"{target.name}.aborted") / "log").read_text() == "of a trial that fails\n"
    assert not [*places[0].cache.glob("machines/*/*")] and not [*places[1].cache.glob("machines/*/*")]


def test_a_trial_whose_run_is_gone_ends(
    run: tuple[Manifest, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest, _ = run
    monkeypatch.setenv("PRETEND_S", "60")
    place = Processes("rack-3", tmp_path / "cache-rack-3")
    try:
        place.at_once(leases.take, "lease", "anna, run 1")
        (spec, *_) = manifest.specs.values()
        executing = place.submit_reporting(
            print, trial_calls.execute, spec.model_copy(update={"repeat": 1}).model_dump_json(), "lease"
        )
        threading.Timer(1, place.at_once, (leases.give_back, "lease")).start()
        with pytest.raises(DnsrigError, match="no longer has a lease on this machine"):
            executing.result(timeout=30)
        assert place.submit(trial_calls.finished, manifest.run).result() == []
    finally:
        place.end()


def test_a_machine_that_is_taken_is_refused(run: tuple[Manifest, Path], places: list[Processes]) -> None:
    places[0].at_once(leases.take, "other", "bert@far, run tour/1")
    with pytest.raises(DnsrigError, match=r"rack-1 is in use by bert@far, run tour/1"), lanes(run, places):
        pass


class Slow:
    """A machine that waits for ``meeting`` before it gives a lease back."""

    address = "tls://127.0.0.1:1"

    def __init__(self, name: str, meeting: Callable[[], object]) -> None:
        self.name, self._meeting, self.given_back = name, meeting, False

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        answer = Future[Any]()
        answer.set_result([])
        return answer

    def execute(self, spec_json: str, lease: str, report: Callable[[dict[str, Any]], None]) -> Future[Any]:
        return Future()

    def at_once(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        if function is leases.give_back:
            self._meeting()
            self.given_back = True


def test_machines_are_given_back_side_by_side(run: tuple[Manifest, Path]) -> None:
    both = threading.Barrier(2, timeout=60)
    slow = [Slow(name, both.wait) for name in ("rack-1", "rack-2")]
    with spread.held([spread.MachineLane(place, *run, "lease", "anna, run 1") for place in slow]):
        pass
    assert all(place.given_back for place in slow)


def test_nobody_waits_for_a_machine_that_is_silent(run: tuple[Manifest, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    for_ever = threading.Event()
    place = Slow("rack-1", for_ever.wait)
    with spread.held([spread.MachineLane(place, *run, "lease", "anna, run 1")]):
        monkeypatch.setattr(spread.MachineLane, "is_lost", False)  # not yet: it has been silent for a moment
        monkeypatch.setattr(leases, "LEASE_S", 0.1)
    assert not place.given_back
    for_ever.set()


def test_a_call_is_lost_if_its_worker_was_started_again_meanwhile(
    run: tuple[Manifest, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dask may repeat the call at the address of the old worker, where it waits for ever."""
    monkeypatch.setattr(spread, "LOOK_S", 0.01)
    monkeypatch.setattr(spread.MachineLane, "is_lost", False)  # the new worker renews the lease
    place = Slow("rack-1", lambda: None)
    lane = spread.MachineLane(place, *run, "lease", "anna, run 1")
    threading.Timer(0.05, lambda: setattr(place, "address", "tls://127.0.0.1:2")).start()
    with pytest.raises(dask.Lost):
        lane.wait(Future())


def told(**differences: object) -> dict[str, object]:
    conditions = {"kernel": "6.1", "architecture": "x86_64", "cpu_model": "A", "cpus": 2, "memory_total_bytes": 8_000}
    mine = {key: differences.pop(key) for key in [*differences] if key in conditions}
    return {"available_cpus": [0, 1], "conditions": {**conditions, "boot_id": "1", **mine}, **differences}


def test_machines_have_to_be_equal() -> None:
    found = spread.where({"b": told(), "a": told()})
    assert [machine.name for machine in found.machines] == ["a", "b"] and found.cpus == [0, 1]
    with pytest.raises(UsageError, match="a and b differ in cpu_model"):
        spread.where({"a": told(), "b": told(cpu_model="B")})
    with pytest.raises(UsageError, match="differ in kernel, memory_total_bytes"):
        spread.where({"a": told(), "b": told(kernel="6.2", memory_total_bytes=9_000)})
    assert spread.where({"a": told(), "b": told(memory_total_bytes=8_001)}).machines, "each boot leaves a little less"
    with pytest.raises(UsageError, match="may use different CPUs"):
        spread.where({"a": told(), "b": told(available_cpus=[0])})


def test_a_run_goes_on_only_where_it_began(run: tuple[Manifest, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    manifest, _ = run
    monkeypatch.setattr(runner, "check_material", lambda manifest: None)
    begun = manifest.model_copy(update={"machines": spread.where({"a": told(), "b": told()}).machines})
    spread.check_unchanged(begun, {"a": told(), "b": told()})
    with pytest.raises(DnsrigError, match="the machine b is missing"):
        spread.check_unchanged(begun, {"a": told()})
    with pytest.raises(DnsrigError, match="the machine b was restarted"):
        restarted = told()
        restarted["conditions"]["boot_id"] = "2"  # type: ignore[index]
        spread.check_unchanged(begun, {"a": told(), "b": restarted})
    with pytest.raises(UsageError, match="begun on one machine"):
        spread.check_unchanged(manifest.model_copy(update={"machines": []}), {"a": told()})
    with pytest.raises(UsageError, match="on several machines"):
        runner.check_unchanged(begun)


def test_rounds_are_equally_many_on_each_machine(run: tuple[Manifest, Path]) -> None:
    trial_specs.check_rounds(12, 3)
    trial_specs.check_rounds(10, 1)
    trial_specs.check_rounds(10, 0)
    with pytest.raises(UsageError, match="10 repeats over 3 machines") as caught:
        trial_specs.check_rounds(10, 3)
    assert caught.value.hint == "--repeats 9 or 12"
    with pytest.raises(UsageError) as caught:
        trial_specs.check_rounds(2, 3)
    assert caught.value.hint == "--repeats 3"
    with pytest.raises(UsageError, match="5 repeats over 2"):
        resume.extended(run[0], 5, None)


@pytest.mark.parametrize(
    "address", ["tls://scheduler.example:8786", "tcp://127.0.0.1:8786", "tcp://[::1]:8786", "tcp://localhost:1"]
)
def test_addresses_of_schedulers(address: str) -> None:
    dask.check_address(address)


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("tcp://198.51.100.1:8786", "any program that reaches this scheduler"),
        ("tcp://scheduler.example:8786", "any program that reaches this scheduler"),
        ("scheduler:8786", "is not the address of a scheduler"),
        ("http://127.0.0.1", "is not the address of a scheduler"),
    ],
)
def test_schedulers_that_anybody_could_use_are_refused(address: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        dask.check_address(address)
