"""What a paper hands in: figures, their data and captions, and an experiment that can be run again."""

from __future__ import annotations

import csv
import json
import shutil
import string
import subprocess
import tomllib
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import altair as alt
import pytest
import synthetic
import tomli_w
from golden_files import same
from made_up import once

from dnsrig.experiment import model
from dnsrig.report import export, latex
from dnsrig.report.charts import Drawing, all_charts
from dnsrig.report.draw import Rendered
from dnsrig.report.exports import paper
from dnsrig.report.setting import _file_of_queries, setting
from dnsrig.rundir import Manifest, QueriesSpec, read_json
from dnsrig.runs.run import Run

GOLDEN = Path(__file__).parent / "golden/exports"
HOSTILE = f"{string.printable}\\input{{/etc/passwd}}^^41$x$%c\u202e中é≥"


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run in which everything has a hostile name."""
    return once(tmp_path_factory, "paper", hostile) / "paper"


def hostile(folder: Path) -> None:
    plan = synthetic.Plan(zones=[100], repeats=2, title=HOSTILE, extra_axes={"=1+1": [HOSTILE, "@SUM(1)"]})
    run = Run.open(synthetic.build(folder / "run", plan))
    paths = export(run, "paper", folder)
    assert not list(run.failures)
    assert set(paths) == {path for path in (folder / "paper").rglob("*") if path.is_file()}


def stems(folder: Path) -> list[str]:
    return sorted(path.stem for path in (folder / "figures").glob("*.svg"))


def test_each_figure_is_whole(exported: Path) -> None:
    assert len(stems(exported)) > 3
    for name in stems(exported):
        figure = exported / "figures" / name
        assert ElementTree.parse(figure.with_suffix(".svg")).getroot().tag.endswith("svg")
        data = figure.with_suffix(".pdf").read_bytes()
        assert data.startswith(b"%PDF-") and data.rstrip().endswith(b"%%EOF")
        assert list(figure.parent.glob(f"{name}-*.csv"))
        assert len(figure.with_suffix(".txt").read_text().splitlines()) == 1


def test_data_are_what_was_drawn_and_no_cell_is_a_formula(exported: Path) -> None:
    cells = 0
    for path in (exported / "figures").glob("*.csv"):
        columns, *rows = csv.reader(path.read_text(encoding="utf-8").splitlines())
        assert len(set(columns)) == len(columns)
        for row in rows:
            cells += len(row)
            assert not [cell for cell in row if cell.startswith(("=", "@"))]
    assert cells > 100


@pytest.mark.full
def test_a_caption_says_repeats_spread_and_conditions(tmp_path: Path) -> None:
    run = Run.open(synthetic.build(tmp_path / "run", synthetic.Plan(repeats=3, samples=False)))
    run.manifest.conditions = {"kernel": "6.1.0-21-amd64", "cpus": 2, "cpu_model": "EPYC_9 <x>"}
    export(run, "paper", tmp_path)
    figures = tmp_path / "paper/figures"
    said = (figures / "time-by-variant-all.txt").read_text()
    assert "3 repeats of each variant (12 done)." in said
    assert "server=bind@system zones=100 0.61" in said and "[0.592..0.62" in said
    assert "bind 1.2.3 (system)" in said and "2 CPUs (EPYC_9 <x>); Linux 6.1.0-21-amd64;" in said
    assert same(GOLDEN / "caption.tex", (figures / "time-by-variant-all.tex").read_text())
    assert same(GOLDEN / "readme.txt", (tmp_path / "paper/README.md").read_text())


def test_of_several_machines_the_setting_has_what_is_the_same(tmp_path: Path) -> None:
    run = Run.open(synthetic.build(tmp_path / "run", synthetic.Plan(machines=["a", "b"], samples=False)))
    for machine, kernel in zip(run.manifest.machines, ("6.1", "6.2")):
        machine.conditions = {"kernel": kernel, "cpus": 4, "cpu_model": None}
    assert "; 2 machines, each with 4 CPUs (model not known); dnsrig" in setting(run)


def test_latex_takes_no_orders_from_text() -> None:
    shown = latex.latex('\\input{a} $x$ 50% #1 a_b ^^41 ~ & `code_x` "q" <b> ≥2 × µs … \n 中 é')
    assert shown == (
        "\\textbackslash{}input\\{a\\} \\$x\\$ 50\\% \\#1 a\\_b \\textasciicircum{}\\textasciicircum{}41"
        " \\textasciitilde{} \\& \\texttt{code\\_x} \\char34{}q\\char34{} \\textless{}b\\textgreater{} $\\geq$2 $\\times$"
        " $\\mu$s \\ldots{} \\textbackslash{}x0a [U+4E2D] é"
    )


def test_a_long_caption_is_not_cut() -> None:
    assert latex.latex("a" * 5_000) == "a" * 5_000


@pytest.mark.parametrize(
    ("char", "shown"),
    [("\x7f", "\x7f"), ("\x80", "[U+0080]"), ("ſ", "ſ"), ("ƀ", "[U+0180]"), ("÷", "[U+00F7]"), ("中", "[U+4E2D]")],
)
def test_letters_that_every_latex_knows_end_at_u_017f(char: str, shown: str) -> None:
    assert latex._letter(char) == shown


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_latex_sets_hostile_captions(exported: Path, tmp_path: Path) -> None:
    inputs = "".join(f"\\input{{figures/{name}}}\\clearpage\n" for name in stems(exported))
    head = "\\documentclass{article}\\usepackage{graphicx}\\graphicspath{{figures/}}\\begin{document}\n"
    shutil.copytree(exported / "figures", tmp_path / "figures")
    (tmp_path / "all.tex").write_text(f"{head}{inputs}\\end{{document}}\n")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert b"(/etc" not in done.stdout  # a file that is read stands in brackets


@pytest.mark.parametrize("name", model.builtin())
def test_the_experiment_can_be_run_again(name: str, tmp_path: Path) -> None:
    document = model.load(model.find(name), "quick", [])
    path = tmp_path / "experiment.toml"
    path.write_text(tomli_w.dumps(paper._without_null(document.model_dump())))
    for scale in ("quick", "published"):
        assert model.load(path, scale, []).model_dump() == document.model_dump()


def test_the_document_is_the_manifests(exported: Path) -> None:
    found = tomllib.loads((exported / "experiment.toml").read_text(encoding="utf-8"))
    assert found == {"title": HOSTILE, "matrix": {"zones": [100]}}
    assert json.loads((exported / "conditions.json").read_text())["servers"]["bind@system"]["version"] == "1.2.3"


def test_a_document_that_is_no_toml_costs_that_file_only(tmp_path: Path) -> None:
    folder = synthetic.build(tmp_path / "run", synthetic.Plan(zones=[100], repeats=1, samples=False))
    manifest = read_json(folder / "manifest.json", Manifest)
    manifest.document = {"title": None, "seed": 10**400}
    run = Run(folder, manifest)
    paths = export(run, "paper", tmp_path)
    assert "README.md" in {path.name for path in paths}
    assert not [failure for failure in run.failures if failure.name != "paper experiment.toml"]


def test_damage_costs_what_lies_behind_it(tmp_path: Path) -> None:
    folder = synthetic.build(tmp_path / "run", synthetic.Plan(zones=[100], repeats=2))
    for path in folder.rglob("samples.arrow"):
        path.write_bytes(path.read_bytes()[:5_000])
    run = Run.open(folder)
    assert len(export(run, "paper", tmp_path)) > 10
    assert not list(run.failures) and run.is_damaged


@pytest.mark.parametrize(("variants", "more"), [(8, ""), (9, "; and 1 more"), (10, "; and 2 more")])
def test_a_caption_names_the_first_eight_variants(tmp_path: Path, variants: int, more: str) -> None:
    plan = synthetic.Plan(servers=["bind@system"], zones=range(1, variants + 1), repeats=1, samples=False)
    run = Run.open(synthetic.build(tmp_path / "run", plan))
    chart = next(chart for chart in all_charts() if chart.id == "time-by-variant")
    figure = Rendered(chart, "Each mark is a repeat.", {"transfer_time_s"}, Drawing("all", alt.vconcat()), "")
    said = paper._caption(run, figure)
    assert said.startswith(f"{chart.title} Each mark is a repeat. 1 repeat of each variant ({variants} done). Median ")
    spread = paper._spread(run, figure)
    assert spread in said and spread.endswith(f"{more}.") and (" more." in spread) == bool(more)
    assert spread.count("server=bind@system zones=") == 8 and " zones=8 " in spread and " zones=9 " not in spread
    assert paper._spread(run, replace(figure, metrics={"p99_ms"})) == "", "it shows nothing that was measured"


@pytest.mark.parametrize(
    ("types", "skipped", "said"),
    [
        ({"A": 100, "AAAA": 60, "MX": 40}, 0, "50% A, 30% AAAA, 20% MX"),
        (
            {"MX": 20, "AAAA": 60, "A": 100, "TXT": 20},
            1234,
            "50% A, 30% AAAA, 10% MX, others, 1,234 bad lines left out",
        ),
    ],
)
def test_the_setting_has_the_most_frequent_types_of_queries(types: dict[str, int], skipped: int, said: str) -> None:
    queries = QueriesSpec(name="mine.txt", sha256="ab" * 32, queries=200, types=types, skipped=skipped)
    assert _file_of_queries(queries) == f"queries of mine.txt (sha256 abababababab, 200: {said})"
