"""The tables of a run, and of two, as JSON and as Markdown that nothing in a run can break out of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import synthetic
from command_line import output
from golden_files import same
from markdown_it import MarkdownIt

from dnsrig.comparison.compare import compare_runs
from dnsrig.comparison.summary import metric_tables
from dnsrig.comparison.thresholds import parse
from dnsrig.errors import UsageError
from dnsrig.report import comparison_markdown, export, markdown
from dnsrig.report.exports import json as json_export
from dnsrig.report.markdown import code, table, text
from dnsrig.runs.run import Run

GOLDEN = Path(__file__).parent / "golden/exports"
PLAN = synthetic.Plan(repeats=5, outcomes={("bind@system", 1000, 2): "timeout"})
HOSTILE = [
    "a|b",
    "a\\|b",
    "a\\\\|b",
    "`x` ``y``",
    "`",
    "<script>alert(1)</script>",
    "</details>",
    "line\n\n# heading",
    "\r\n| a | b |",
    "@somebody",
    "bind@forky",
    "[here](http://example.com)",
    "![x](http://example.com/x.png)",
    "www.example.com",
    "http://example.com",
    "GH-12 and #12",
    "*a* _b_ ~~c~~ :tada:",
    "&lt;b&gt;",
    "\u202ereversed\x1b[31m",
    "",
    " ",
]
ACTS = ("link_open", "image", "html_inline", "html_block", "heading_open", "em_open", "strong_open", "s_open")


def tokens(source: str) -> list[Any]:
    found = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(source)
    return [each for token in found for each in (token, *(token.children or []))]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run.open(synthetic.build(tmp_path_factory.mktemp("tables") / "run", PLAN))


def test_markdown_is_as_it_was(run: Run, tmp_path: Path) -> None:
    (path,) = export(run, "markdown", tmp_path)
    assert same(GOLDEN / "run.txt", path.read_text())


def test_json_is_as_it_was(run: Run, tmp_path: Path) -> None:
    (path,) = export(run, "json", tmp_path)
    found = json.loads(path.read_text())
    assert len(found["metrics"]) == len(metric_tables(run))
    found["metrics"] = found["metrics"][:1]
    assert same(GOLDEN / "run.json", json.dumps(found, indent=1) + "\n")


def test_the_main_metric_is_in_sight_and_the_others_are_folded_away(run: Run, tmp_path: Path) -> None:
    (path,) = export(run, "markdown", tmp_path)
    before, _, folded = path.read_text().partition("<details>")
    assert before.count("| :--- |") == 1 and "`transfer_time_s`" in before
    assert folded.count("| :--- |") == 12 and folded.rstrip().endswith("</details>")
    rows = [row.split(" | ") for row in before.splitlines() if row.startswith("| `")]
    assert [row[1] for row in rows] == ["100", "1,000"] * 2
    assert rows[1][2:4] == ["4 done, 1 timeout", "2.54 s"]
    assert rows[2][6:] == ["87.0 %", "[86.0..90.3]", "better |"]


def test_values_of_json_are_the_repeats(run: Run) -> None:
    (main, *_) = json_export.document(run)["metrics"]
    by_variant = {row["variant"]: row for row in main["variants"]}
    assert by_variant["v01"]["outcomes"] == {"done": 4, "timeout": 1}
    assert by_variant["v01"]["at_least"] == [60.0]
    assert by_variant["v00"]["of_baseline"] is None
    assert by_variant["v02"]["of_baseline"]["baseline"] == "v00"
    bounded = by_variant["v03"]["of_baseline"]
    assert (bounded["bound"], bounded["interval"]) == ("", None), "a repeat at its limit leaves the median as it is"
    assert bounded["percent"] == pytest.approx(100 * by_variant["v03"]["median"] / by_variant["v01"]["median"])
    done = [trial.result for trial in run.done("v02")]
    assert by_variant["v02"]["values"] == done


@pytest.mark.parametrize("value", HOSTILE)
def test_no_text_acts(value: str) -> None:
    for shown in (text(value), code(value)):
        inline = f"before {shown} after"
        found = tokens(inline)
        assert not [token.type for token in found if token.type in ACTS]
        kept = [token.content for token in found if token.type == "code_inline"]
        assert "\n" not in inline
        if kept:
            assert kept == [markdown.visible(value).strip()]
        else:
            assert not set("@`<>#*~|&") & set(shown) and "www" not in shown and "//" not in shown


@pytest.mark.parametrize("value", HOSTILE)
def test_no_text_leaves_its_cell(value: str) -> None:
    found = tokens("\n".join(table(["a", "b"], [[text(value), "1"], ["x", "2"]], 1)))
    cells = [token.type for token in found if token.type in ("td_open", "th_open")]
    assert cells == ["th_open"] * 2 + ["td_open"] * 4
    assert not [token.type for token in found if token.type in ACTS]


@pytest.mark.parametrize(("value", "cell"), [("a|b", "`a\\|b`"), ("a\\|b", "`a\\\\\\|b`"), ("a\\\\|b", "`a\\\\\\|b`")])
def test_an_odd_number_of_backslashes_stands_before_a_pipe(value: str, cell: str) -> None:
    assert table([text(value)], [], 1)[0] == f"| {cell} |"


def test_a_run_full_of_hostile_text_is_still_its_tables(tmp_path: Path) -> None:
    values: list[Any] = ["|", "`<b>@me</b>`", "\n\n# x"]
    plan = synthetic.Plan(
        zones=[100], repeats=1, title="<!-- @all |\n", extra_axes={"a|`x`": values}, log_example="|</details>\n@b"
    )
    (path,) = export(Run.open(synthetic.build(tmp_path / "run", plan)), "markdown", tmp_path)
    found = tokens(path.read_text())
    html = {token.content.strip() for token in found if token.type.startswith("html")}
    assert all(each == "</details>" or each.startswith("<details><summary>") for each in html)
    assert [token.tag for token in found if token.type == "heading_open"] == ["h3"]
    assert not [token for token in found if token.type in ("link_open", "image")]
    rows = [token for token in found if token.type == "tr_open"]
    assert len([token for token in found if token.type in ("td_open", "th_open")]) == 10 * len(rows)


def test_a_comparison_is_as_it_was(tmp_path: Path) -> None:
    slow = {("knot@system", 1000, repeat): 1.4 for repeat in range(1, 6)}
    runs = [
        Run.open(synthetic.build(tmp_path / name, synthetic.Plan(repeats=5, samples=False, slow=slowed, run=name)))
        for name, slowed in (("base", {}), ("new|<b>", slow))
    ]
    found = compare_runs(runs[0], runs[1], ["secondary_cpu"], [parse("transfer_time > 110 %")])
    said = comparison_markdown.as_markdown(found)
    assert same(GOLDEN / "compare.txt", said)
    assert not [token for token in tokens(said) if token.type.startswith("html")]


def test_the_command_prints_markdown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = str(synthetic.build(tmp_path / "run", synthetic.Plan(repeats=2, samples=False)))
    status, out, err = output(monkeypatch, capsys, "compare", one, one, "--markdown")
    assert (status, err) == (0, "")
    assert out.startswith("base: `20250101T120000Z-test`") and "| 100 % |" in out
    status, out, err = output(monkeypatch, capsys, "compare", one, one, "--markdown", "--json")
    assert (status, out) == (2, "") and "choose one" in err


def test_one_trial_is_exported_alone(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("export", str(run.directory), "--format", "perfetto", "--out", str(tmp_path), "--trial")
    status, out, _ = output(monkeypatch, capsys, *arguments, "v03/02")
    assert (status, out.split()) == (0, [str(tmp_path / "v03-2.pftrace")])
    status, out, err = output(monkeypatch, capsys, *arguments, "v03/77")
    assert (status, out) == (2, "") and "v00/1" in err
    with pytest.raises(UsageError):
        run.only("v03")
