"""What two runs do not have in common: every field of a spec counts, those that are added later, too."""

from __future__ import annotations

import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from pydantic import Field, create_model
from synthetic import Plan, build
from test_compare import SMALL, command, edit, held

from dnsrig.comparison import run_differences, thresholds
from dnsrig.comparison.compare import compare_runs
from dnsrig.comparison.run_differences import of_two_specs
from dnsrig.rundir import HostSpec, MachineSpec, OwnFile, PathSpec, Record, ServerSource, TrialSpec
from dnsrig.runs.run import Run

Leaf = tuple[str | int, ...]
"""Keys and places on the way to a value."""


def made(kind: Any, which: int) -> Any:
    """A value of ``kind`` with everything in it that a record can have; 0 and 1 are unlike each other in every leaf."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return made(arguments[0], which)
    if origin is Literal:
        return arguments[which % len(arguments)]
    if origin in (Union, types.UnionType):
        return made(next(argument for argument in arguments if argument is not type(None)), which)
    if origin is list:
        return [made(arguments[0], which)]
    if origin is tuple:
        return [made(argument, which) for argument in arguments]
    if origin is dict:
        return {"one": made(arguments[1], which)}
    if isinstance(kind, type) and issubclass(kind, Record):
        return kind(**{name: made(field.annotation, which) for name, field in kind.model_fields.items()})
    simple: dict[Any, tuple[Any, Any]] = {
        str: ("a", "b"),
        int: (600, 700),
        float: (1.0, 2.0),
        bool: (False, True),
        Any: (1, 2),
    }
    return simple[kind][which]


def leaves(value: Any, path: Leaf = ()) -> Iterator[Leaf]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else None
    if inside is None:
        yield path
    else:
        for name, item in inside:
            yield from leaves(item, (*path, name))


def changed(value: Any, path: Leaf, new: Any) -> Any:
    """``value`` with the leaf at ``path`` taken from ``new``."""
    if not path:
        return new
    first, rest = path[0], path[1:]
    if isinstance(value, dict):
        return {name: changed(item, rest, new[name]) if name == first else item for name, item in value.items()}
    return [changed(item, rest, new[place]) if place == first else item for place, item in enumerate(value)]


def untold(kind: type[TrialSpec]) -> set[str]:
    """The leaves of which a change is not told."""
    one, other = (made(kind, which).model_dump() for which in (0, 1))
    found = set()
    for leaf in leaves(one):
        theirs = changed(one, leaf, other)
        if theirs == one:
            continue
        if not list(of_two_specs(kind.model_validate(one), kind.model_validate(theirs))):
            found.add(".".join(str(part) for part in leaf))
    return found


def test_a_change_of_any_field_is_told_but_of_those_listed() -> None:
    assert untold(TrialSpec) == {
        *("schema_version", "run", "experiment", "variant.id", "variant.parameters.one", "repeat"),
        *("dataset.key", "next_dataset.key", "hosts.one.server.key", "hosts.one.address", "queries.key"),
        *(f"machines.one.{field}" for field in MachineSpec.model_fields),
    }


def test_so_is_a_field_that_does_not_exist_yet() -> None:
    host = create_model("Host", __base__=HostSpec, coalescing_us=(int, 0))
    later = create_model(
        "Later", __base__=TrialSpec, weather=(str, ""), hosts=(dict[str, host], Field(default_factory=dict))
    )
    known = untold(TrialSpec)
    assert untold(later) == known
    one, other = made(later, 0), made(later, 0)
    other.weather, other.hosts["one"].coalescing_us = "rain", 7
    assert {d.what for d in of_two_specs(one, other)} == {"hosts.one.coalescing_us", "weather"}


def far(manifest: dict[str, Any], delay_ms: float, loss_percent: float, **host: Any) -> None:
    """Puts a path between primary and secondary, and ``host`` into the latter's spec."""
    path = PathSpec(delay_ms=delay_ms, loss_percent=loss_percent).model_dump()
    for spec in manifest["specs"].values():
        spec["links"][0] |= {"kind": "tun", "forward": path, "reverse": path}
        spec["hosts"]["secondary"] |= host


def two(tmp_path: Path, base: Plan = SMALL, new: Plan = SMALL) -> tuple[Path, Path]:
    return build(tmp_path / "base", base), build(tmp_path / "new", new)


def test_another_path_is_told_and_no_rule_judges(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    base, new = two(tmp_path)
    edit(base, lambda manifest: far(manifest, 10, 0))
    edit(new, lambda manifest: far(manifest, 200, 5, congestion="reno", advmss_bytes=500))
    code, out, err = command(monkeypatch, capsys, str(base), str(new), "--fail-if", "transfer_time < 200 %")
    assert code == 3, "with the same path it is a regression"
    for told in (
        "links.primary-secondary.forward.delay_ms: 10 in the base, 200 in the new run",
        "links.primary-secondary.forward.loss_percent: 0 in the base, 5 in the new run",
        "links.primary-secondary.reverse.delay_ms: 10 in the base, 200 in the new run",
        "hosts.secondary.congestion: not set in the base, reno in the new run",
        "hosts.secondary.advmss_bytes: not set in the base, 500 in the new run",
    ):
        assert f"differs: {told}" in err
    said = " ".join(out.split())
    assert "by the figures a regression; but the runs differ in" in said and "--may-differ NAME" in said
    meant = ("--may-differ", "links", "--may-differ", "hosts.secondary")
    code, out, _ = command(monkeypatch, capsys, str(base), str(new), "--fail-if", "transfer_time < 200 %", *meant)
    assert code == 1
    assert "result: regression (of all that differs together: hosts.secondary.congestion" in " ".join(out.split())


def test_without_a_path_and_with_one(tmp_path: Path) -> None:
    base, new = two(tmp_path)
    edit(new, lambda manifest: far(manifest, 10, 0))
    found = compare_runs(Run.open(base), Run.open(new), [], [])
    assert [str(difference) for difference in found.differences][1:2] == [
        "links.primary-secondary.forward: not set in the base, delay_ms 10, ordered yes, limit_packets 1000, icmp yes in the new run"
    ]


def test_a_server_that_is_not_compared_is_a_difference_like_any(tmp_path: Path) -> None:
    base, new = two(tmp_path)

    def newer(manifest: dict[str, Any], host: str) -> None:
        for spec in manifest["specs"].values():
            spec["hosts"][host]["server"]["version"] = "9.9.9"

    edit(new, lambda manifest: newer(manifest, "secondary"))
    found = compare_runs(Run.open(base), Run.open(new), [], [])
    assert all(difference.asked_for for difference in found.differences)
    edit(new, lambda manifest: newer(manifest, "primary"))
    found = compare_runs(Run.open(base), Run.open(new), [], [])
    unasked = [difference.what for difference in found.differences if not difference.asked_for]
    assert unasked == ["hosts.primary.server"]


def test_the_same_version_built_anew_is_told() -> None:
    one = made(TrialSpec, 0)
    other = one.model_copy(deep=True)
    server = other.hosts["one"].server
    assert isinstance(server, ServerSource)
    server.fingerprint = "other"
    assert [d.what for d in of_two_specs(one, other)] == ["hosts.one.server.fingerprint"]


def test_what_boots_change_is_no_difference_and_another_machine_is(tmp_path: Path) -> None:
    base, new = two(tmp_path)
    memory = {
        "memory_total_bytes": 8_350_000_000,
        "sysctls": {"net.ipv4.tcp_mem": "93462 124618 186924"},
        "boot_id": "a",
    }
    edit(base, lambda manifest: manifest["conditions"].update(memory))
    memory = {
        "memory_total_bytes": 8_351_000_000,
        "sysctls": {"net.ipv4.tcp_mem": "93460 124614 186920"},
        "boot_id": "b",
    }
    edit(new, lambda manifest: manifest["conditions"].update(memory))
    assert compare_runs(Run.open(base), Run.open(new), [], []).differences == []
    edit(new, lambda manifest: manifest["conditions"].update(memory_total_bytes=4_175_000_000, psi=False))
    found = compare_runs(Run.open(base), Run.open(new), [], [])
    assert [d.what for d in found.differences] == ["machine.memory_total_bytes", "machine.psi"]


def test_what_is_the_same_of_many_hosts_is_told_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    base, new = two(tmp_path)

    def many(manifest: dict[str, Any], congestion: str) -> None:
        for number, spec in enumerate(manifest["specs"].values()):
            client = {"address": "198.18.0.9", "cpus": [0], "congestion": congestion if number else "cubic"}
            spec["hosts"] |= {f"client{name}": client for name in range(50)}

    edit(base, lambda manifest: many(manifest, "cubic"))
    edit(new, lambda manifest: many(manifest, "bbr"))
    _, _, err = command(monkeypatch, capsys, str(base), str(new))
    assert err == "differs: hosts.*.congestion, 50 of them: cubic in the base, bbr in the new run (in 3 of 4 variants)"


def test_what_differs_in_some_variants_keeps_only_these_undecided(tmp_path: Path) -> None:
    base, new = two(tmp_path)

    def later(manifest: dict[str, Any]) -> None:
        next(iter(manifest["specs"].values()))["limit_s"] = 30

    edit(new, later)
    found = compare_runs(Run.open(base), Run.open(new), [], [thresholds.parse("transfer_time > 120 %")])
    assert [verdict.judgement.decision for verdict in found.verdicts] == ["undecided", "pass", "pass", "pass"]


def test_two_builds_held_against_each_other_are_judged(tmp_path: Path) -> None:
    one, other = (Plan(servers=[n], zones=[100], repeats=5, samples=False, baseline={}) for n in ("bind@/a", "bind@/b"))
    assert held(tmp_path, one, other, "transfer_time > 200 %").decision == "pass"


def on_another_machine(manifest: dict[str, Any], **conditions: Any) -> None:
    usual = {"kernel": "6.1.0-1", "boot_id": "one", "cpus": 8, "sysctls": {"net.core.rmem_max": "212992"}}
    manifest["conditions"]["other_machines"] = {"rack-1": usual | conditions}


def test_conditions_of_another_machine_are_conditions(tmp_path: Path) -> None:
    base, new = two(tmp_path)
    edit(base, on_another_machine)
    edit(new, lambda manifest: on_another_machine(manifest, boot_id="two"))
    assert compare_runs(Run.open(base), Run.open(new), [], []).differences == [], "each boot has another id"
    edit(new, lambda m: on_another_machine(m, kernel="6.12.0-1", sysctls={"net.core.rmem_max": "4194304"}))
    found = compare_runs(Run.open(base), Run.open(new), [], [])
    assert [str(difference) for difference in found.differences] == [
        "machine.other_machines.rack-1.kernel: 6.1.0-1 in the base, 6.12.0-1 in the new run",
        "machine.other_machines.rack-1.sysctls.net.core.rmem_max: 212992 in the base, 4194304 in the new run",
    ]


def with_interface(directory: Path, **facts: Any) -> Run:
    run = Run.open(directory)
    usual = {"name": "eno1", "driver": "ice 6.1", "channels": {"combined": 8}, "irqs": {"45": "0", "46": "1"}}
    for trial in run.trials:
        trial.record.read_back["nics"] = {"secondary": usual | facts}
    return run


def test_interfaces_of_hosts_are_conditions(tmp_path: Path) -> None:
    base, new = two(tmp_path)
    one, alike = with_interface(base), with_interface(new, name="eno2", irqs={"71": "1", "70": "0"})
    assert compare_runs(one, alike, [], []).differences == [], "what a boot changes does not count"
    other = with_interface(new, channels={"combined": 2}, irqs={"70": "0", "71": "0"})
    assert [str(difference) for difference in compare_runs(one, other, [], []).differences] == [
        "nics.secondary.channels.combined: 8 in the base, 2 in the new run",
        "nics.secondary.irqs: 0, 1 in the base, 0, 0 in the new run",
    ]
    assert compare_runs(one, Run.open(new), [], []).differences == [], "nothing is known of those of the new run"


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (1000, 990, True),
        (990, 1000, True),
        (1000, 989, False),
        ("1000 5", "990 5", True),
        ("1000 5", "1000 6", False),
        ("1000 5", "1000", False),
        (0, 0, True),
        (0, 1, False),
        ("a", "a", True),
        ("a", "b", False),
        ("6.1", "6.1 ", False),
        ("", "1", False),
        (None, None, True),
        (None, 5, False),
    ],
)
def test_numbers_of_a_machine_may_differ_by_a_hundredth(one: object, other: object, alike: bool) -> None:
    assert run_differences._nearly_alike(one, other) is alike


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "not set"),
        (True, "yes"),
        (False, "no"),
        (0, "0"),
        (1e6, "1000000"),
        (0.25, "0.25"),
        ("x", "x"),
        ([], "none"),
        ({}, "none"),
        ([1, 2, 3, 4], "1, 2, 3, 4"),
        ([1, 2, 3, 4, 5], "1, …, 5, (5 in all)"),
        ([*range(2000)], "0, …, 1999, (2,000 in all)"),
        ({"a": 1, "b": None, "c": False, "d": 0.5}, "a 1, d 0.5"),
        (OwnFile(name="my.conf", text="x", sha256="0123456789abcdef"), "my.conf (0123456789ab)"),
    ],
)
def test_how_a_value_is_shown(value: object, shown: str) -> None:
    assert run_differences._shown(value) == shown


@pytest.mark.parametrize(
    ("what", "name", "begins"),
    [("links", "links", True), ("links.a.b", "links", True), ("links2", "links", False), ("links", "links.a", False)],
)
def test_a_difference_is_named_by_its_beginning(what: str, name: str, begins: bool) -> None:
    assert run_differences._begins(what, name) is begins
