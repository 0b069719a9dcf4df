"""`dnsrig compare`: two runs matched, compared and judged; exit status and JSON that scripts can use."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import output
from golden_files import same
from synthetic import Plan, build
from test_terminal import printed

from dnsrig.comparison import thresholds
from dnsrig.comparison.compare import TwoRuns, compare_runs, metric_name
from dnsrig.comparison.run_differences import Difference
from dnsrig.errors import UsageError
from dnsrig.report import comparison
from dnsrig.runs.run import Run
from dnsrig.stats.samples import Sample, Samples

BIND, KNOT = "bind@system", "knot@system"
GOLDEN = Path(__file__).parent / "golden" / "compare.json"
SMALL = Plan(servers=[BIND, KNOT], zones=[100, 1000], repeats=5, samples=False)


def slower(factor: float, repeats: int = 5) -> Plan:
    """As ``SMALL``, but Knot takes ``factor`` times as long for its 1,000 zones."""
    slow = {(KNOT, 1000, repeat): factor for repeat in range(1, repeats + 1)}
    return Plan(servers=[BIND, KNOT], zones=[100, 1000], repeats=repeats, samples=False, slow=slow)


def held(tmp_path: Path, base: Plan, new: Plan, *texts: str, metrics: tuple[str, ...] = ()) -> TwoRuns:
    runs = [Run.open(build(tmp_path / name, plan)) for name, plan in (("base", base), ("new", new))]
    return compare_runs(*runs, metrics, [thresholds.parse(text) for text in texts])


def edit(directory: Path, change: Callable[[dict[str, Any]], None]) -> None:
    path = directory / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, str, str]:
    monkeypatch.setenv("COLUMNS", "80")
    return output(monkeypatch, capsys, "compare", *arguments)


def test_a_slower_variant_is_found_and_no_other(tmp_path: Path) -> None:
    found = held(tmp_path, SMALL, slower(1.4), "transfer_time > 120 %")
    said = {tuple(v.pair.new.parameters.values()): v.judgement.decision for v in found.verdicts}
    assert said == {(BIND, 100): "pass", (BIND, 1000): "pass", (KNOT, 100): "pass", (KNOT, 1000): "regression"}
    assert found.decision == "regression"
    changes = {line.pair.label: line.comparison.change for line in found.lines}
    assert changes[f"server={KNOT} zones=1000"] == "worse"


def test_turned_round_the_percentages_are_the_inverse(tmp_path: Path) -> None:
    there = held(tmp_path / "a", SMALL, slower(1.4))
    back = held(tmp_path / "b", slower(1.4), SMALL)
    for one, other in zip(there.lines, back.lines, strict=True):
        assert one.comparison.percent is not None and other.comparison.percent is not None
        assert one.comparison.percent == pytest.approx(1e4 / other.comparison.percent)
        assert one.comparison.p == pytest.approx(other.comparison.p)
        assert one.comparison.difference == pytest.approx(-(other.comparison.difference or 0))
        turned = {"better": "worse", "worse": "better"}
        assert other.comparison.change == turned.get(one.comparison.change, one.comparison.change)


def test_a_run_is_not_different_from_itself(tmp_path: Path) -> None:
    found = held(tmp_path, SMALL, SMALL, "transfer_time > 110 %", "zones_per_s < 90 %")
    assert found.differences == []
    assert {line.comparison.percent for line in found.lines} == {100.0}
    assert {line.comparison.change for line in found.lines} == {"undecided"}


def test_a_limit_in_the_new_run_is_a_regression_of_every_rule(tmp_path: Path) -> None:
    new = Plan(servers=[BIND, KNOT], zones=[100, 1000], repeats=5, samples=False, outcomes={(BIND, 100, 2): "timeout"})
    found = held(tmp_path, SMALL, new, "secondary_cpu > 300 %")
    assert found.verdicts[0].judgement.decision == "regression"
    line = found.lines[0]
    assert line.comparison.percent is None, "those that did finish are a biased choice"


def test_variants_without_a_fellow_are_named(tmp_path: Path) -> None:
    new = Plan(servers=[BIND, "nsd@system"], zones=[100, 1000], repeats=5, samples=False)
    found = held(tmp_path, SMALL, new)
    assert [line.pair.new.parameters["server"] for line in found.lines] == [BIND, BIND]
    assert {v.parameters["server"] for v in found.only_in_base} == {KNOT}
    assert {v.parameters["server"] for v in found.only_in_new} == {"nsd@system"}
    assert found.decision is None


@pytest.mark.parametrize(
    ("base", "new", "limit", "decision"),
    [
        ([BIND, KNOT], [BIND], 120, "undecided"),
        ([BIND, KNOT], [BIND], 20, "regression"),
        ([BIND], [BIND, KNOT], 120, "pass"),
    ],
)
def test_a_variant_that_was_dropped_does_not_pass(
    tmp_path: Path, base: list[str], new: list[str], limit: int, decision: str
) -> None:
    plans = [Plan(servers=names, zones=[100, 1000], repeats=5, samples=False, baseline={}) for names in (base, new)]
    assert held(tmp_path, *plans, f"transfer_time > {limit} %").decision == decision


def test_a_variant_that_was_dropped_is_said_to_be_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    base, fewer = build(tmp_path / "base", SMALL), Plan(servers=[BIND], zones=[100, 1000], repeats=5, samples=False)
    runs = [str(base), str(build(tmp_path / "new", fewer))]
    code, out, _ = command(monkeypatch, capsys, *runs, "--fail-if", "transfer_time > 120 %")
    assert code == 3
    said = " ".join(out.split())
    assert f"undecided: server={KNOT} zones=100: only in the base" in said and "result: undecided" in said
    code, out, _ = command(monkeypatch, capsys, *runs)
    assert (code, "undecided:" in out) == (0, False), "without a rule nothing was to be decided"


def test_two_builds_of_a_server_are_held_against_each_other(tmp_path: Path) -> None:
    one, other = (Plan(servers=[name], zones=[100], samples=False, baseline={}) for name in ("bind@/a", "bind@/b"))
    found = held(tmp_path, one, other)
    assert len(found.lines) == 1
    assert [d.what for d in found.differences] == ["hosts.secondary.server"]


def test_runs_without_a_common_variant_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no variant in common"):
        held(tmp_path, SMALL, Plan(zones=[7], samples=False))


def test_what_differs_in_the_conditions_is_told_once(tmp_path: Path) -> None:
    base, new = build(tmp_path / "base", SMALL), build(tmp_path / "new", SMALL)

    def change(manifest: dict[str, Any]) -> None:
        manifest["conditions"]["kernel"] = "6.12"
        manifest["conditions"]["boot_id"] = "another"
        manifest["conditions"]["sysctls"] = {"net.core.rmem_max": "1"}
        manifest["scale"] = "standard"
        for spec in manifest["specs"].values():
            spec["limit_s"] = 30
            spec["dataset"]["parameters"] = {"seed": 2}
            host = spec["hosts"]["secondary"]
            host |= {"settings": {"transfers-in": 100}, "source_addresses": ["198.18.1.1"], "profile": True}
            spec["hosts"]["observer"]["role"] = "secondary"

    edit(new, change)
    edit(base, lambda manifest: manifest["conditions"].update(sysctls={"net.core.rmem_max": "2"}, kernel="6.1"))
    found = compare_runs(Run.open(base), Run.open(new), [], [])
    assert [str(difference) for difference in found.differences] == [
        "scale: quick in the base, standard in the new run",
        "machine.kernel: 6.1 in the base, 6.12 in the new run",
        "machine.sysctls.net.core.rmem_max: 2 in the base, 1 in the new run",
        "hosts.secondary.profile: no in the base, yes in the new run",
        "hosts.secondary.settings.transfers-in: not set in the base, 100 in the new run",
        "hosts.secondary.source_addresses: none in the base, 198.18.1.1 in the new run",
        "hosts.observer.role: not set in the base, secondary in the new run",
        "dataset.parameters.seed: not set in the base, 2 in the new run",
        "limit_s: 60 in the base, 30 in the new run",
    ]


def test_more_comparisons_than_so_many_repeats_bear_are_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    base, new = build(tmp_path / "base", SMALL), build(tmp_path / "new", slower(1.4))
    rules_ = [word for limit in (110, 120) for word in ("--fail-if", f"transfer_time > {limit} %")]
    code, out, _ = command(monkeypatch, capsys, str(base), str(new), *rules_)
    said = " ".join(out.split())
    assert "chance, transfer_time_s: with 5 repeats and 4 comparisons the least p is 0.032 " in said
    assert "chance, the rules: with 5 repeats and 8 comparisons the least p is 0.063: no difference can be told" in said
    assert code == 3, "each rule by itself would have been a regression"
    code, _, _ = command(monkeypatch, capsys, str(base), str(new), *rules_[:2])
    assert code == 1


def test_other_metrics_are_corrected_together(tmp_path: Path) -> None:
    found = held(tmp_path, SMALL, slower(1.4), metrics=("secondary_cpu", "time_per_zone"))
    p = {
        line.metric.name: line.comparison.p_corrected
        for line in found.lines
        if line.pair.new.parameters["zones"] == 1000
    }
    assert p["transfer_time_s"] == pytest.approx(4 * 2 / 252)
    assert p["secondary_cpu_s"] == p["time_per_zone_ms"] == pytest.approx(8 * 2 / 252)


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("transfer_time_s", "transfer_time_s"),
        ("transfer_time", "transfer_time_s"),
        ("secondary_memory_peak", "secondary_memory_peak_bytes"),
        ("time_per_zone", "time_per_zone_ms"),
    ],
)
def test_the_unit_of_a_metric_may_be_left_out(name: str, metric: str) -> None:
    assert metric_name(name, []) == metric


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("speed", "dnsrig list metrics"),
        ("transfer", "transfer_packets"),
        ("zones_s", ""),
    ],
)
def test_an_unknown_metric_is_bad_input(name: str, hint: str) -> None:
    with pytest.raises(UsageError) as raised:
        metric_name(name, [])
    assert hint in raised.value.hint


@pytest.mark.parametrize(
    ("factor", "repeats", "rule", "status"),
    [
        (1.0, 5, "transfer_time > 120 %", 0),
        (1.4, 5, "transfer_time > 120 %", 1),
        (1.4, 5, "transfer_time > 140 %", 3),
        (1.4, 3, "transfer_time > 120 %", 3),
        (1.4, 5, None, 0),
    ],
)
def test_exit_status(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    factor: float,
    repeats: int,
    rule: str | None,
    status: int,
) -> None:
    base, new = build(tmp_path / "base", slower(1.0, repeats)), build(tmp_path / "new", slower(factor, repeats))
    options = ["--fail-if", rule] if rule else []
    code, out, err = command(monkeypatch, capsys, str(base), str(new), *options)
    assert (code, err) == (status, "")
    assert ("result: " + {0: "pass", 1: "regression", 3: "undecided"}[status] in out) == bool(rule)
    assert max(map(len, out.splitlines())) <= 80


def test_what_keeps_it_from_comparing_is_no_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run = str(build(tmp_path / "run", SMALL))
    assert command(monkeypatch, capsys, run, run, "--fail-if", "slower")[:2] == (2, "")
    assert command(monkeypatch, capsys, run, run, "--metric", "speed")[:2] == (2, "")
    assert command(monkeypatch, capsys, run, "nowhere")[:2] == (2, "")
    other = str(build(tmp_path / "other", Plan(zones=[7], samples=False)))
    assert command(monkeypatch, capsys, run, other)[:2] == (2, "")
    edit(Path(other), lambda manifest: manifest.update(schema_version=99))
    code, out, err = command(monkeypatch, capsys, run, other)
    assert (code, out) == (2, "") and "newer dnsrig" in err


def test_warnings_go_to_standard_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    base, new = build(tmp_path / "base", SMALL), build(tmp_path / "new", SMALL)
    edit(new, lambda manifest: manifest["conditions"].update(governor="\x1b[31mpowersave"))
    code, out, err = command(monkeypatch, capsys, str(base), str(new))
    assert code == 0
    assert err == "differs: machine.governor: not set in the base, \\x1b[31mpowersave in the new run"
    assert "governor" not in out
    code, out, with_json = command(monkeypatch, capsys, str(base), str(new), "--json")
    assert (code, with_json) == (0, err)
    assert json.loads(out)["differences"][0]["what"] == "machine.governor"


def test_the_json_is_as_it_was(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """With DNSRIG_UPDATE_GOLDEN=1 in the environment, what is printed becomes what is expected."""
    base, new = build(tmp_path / "base", SMALL), build(tmp_path / "new", slower(1.4))
    arguments = [str(base), str(new), "--json", "--metric", "secondary_cpu", "--fail-if", "transfer_time > 120 %"]
    code, out, err = command(monkeypatch, capsys, *arguments)
    assert (code, err) == (1, "")
    if os.environ.get("DNSRIG_UPDATE_GOLDEN"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(out, encoding="utf-8")
    assert json.loads(out) == json.loads(GOLDEN.read_text(encoding="utf-8"))


def test_the_help_tells_what_the_exit_status_means(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = command(monkeypatch, capsys, "--help")
    assert code == 0
    assert "1 a regression; 3 undecided; 2 bad input: runs that cannot be compared" in " ".join(out.split())
    assert "--fail-if" in out


def test_a_terminal_shows_it_as_it_was(tmp_path: Path) -> None:
    found = held(tmp_path, SMALL, slower(1.4), "transfer_time > 120 %", metrics=("secondary_cpu_s",))
    shown = "\n".join(printed(comparison.as_text(found), width) for width in (80, 160))
    assert same(GOLDEN.parent / "compare.txt", shown)


def test_repeats_without_a_figure_are_not_compared(tmp_path: Path) -> None:
    line = held(tmp_path, SMALL, slower(1.4)).lines[-1]
    assert comparison._change(line) == line.comparison.change != "undecided"
    unfinished = replace(line.base, outcomes=Counter({"done": 4, "timeout": 1}))
    without = replace(line.base, samples=Samples.exact([]))
    ceiling = replace(line.base, samples=Samples([Sample(9.0, 9.0, at_least=True)] * 5))
    for part in (unfinished, without):
        assert comparison._change(replace(line, base=part)) == "not compared"
        assert comparison._change(replace(line, new=part)) == "not compared"
    assert comparison._change(replace(line, base=ceiling, new=ceiling)) == "not compared"
    assert comparison._change(replace(line, new=ceiling)) == line.comparison.change, "one median is known"


@pytest.mark.parametrize(
    ("names", "result"),
    [
        ([], "result: pass"),
        (["a", "b", "c"], "result: pass (of all that differs together: a, b, c)"),
        (["a", "b", "c", "d", "d", "e"], "result: pass (of all that differs together: a, b, c and 2 more)"),
    ],
)
def test_a_result_names_three_of_what_differs(tmp_path: Path, names: list[str], result: str) -> None:
    found = held(tmp_path, SMALL, SMALL, "transfer_time > 120 %")
    differences = [Difference(name, "1", "2") for name in names]
    assert comparison.whole_in_a_line(replace(found, differences=differences)) == result
    assert comparison.whole_in_a_line(replace(found, differences=differences, verdicts=[])) == ""


@pytest.mark.parametrize(
    ("hosts", "said"),
    [
        (2, ["hosts.h0.cpus: 1 in the base, 2 in the new run", "hosts.h1.cpus: 1 in the base, 2 in the new run"]),
        (4, ["hosts.*.cpus, 4 of them: 1 in the base, 2 in the new run"]),
    ],
)
def test_what_differs_on_many_hosts_is_said_once(tmp_path: Path, hosts: int, said: list[str]) -> None:
    differences = [Difference(f"hosts.h{n}.cpus", "1", "2") for n in range(hosts)]
    found = replace(held(tmp_path, SMALL, SMALL), differences=differences)
    assert comparison._differences(found) == said
