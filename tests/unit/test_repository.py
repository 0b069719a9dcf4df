"""Docs: the generated reference is what the code says; links lead somewhere; the repository keeps its own rules."""

from __future__ import annotations

import ast
import importlib.util
import io
import re
import subprocess
import sys
import tarfile
import tokenize
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pictures
import pytest
from pydantic import BaseModel

import dnsrig
from dnsrig.experiment import model
from dnsrig.rundir import Settings
from dnsrig.servers import all_drivers

ROOT = Path(__file__).parents[2]
PROSE_COLUMNS = 120
ABOVE_RUNS = ("runs", "stats", "comparison", "prediction", "metrics", "checks", "traps")
"""Folders of the package that read run directories, or what was read from them."""
FOR_TOOLS = ("# type: ignore", "# fmt: skip", "# noqa")
AT_A_BEGINNING = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


def _module(path: str) -> ModuleType:
    """A script of the repository, imported."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec and spec.loader
    found = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # dataclasses look themselves up there
    spec.loader.exec_module(found)
    return found


def test_what_is_generated_is_up_to_date() -> None:
    for path, text in _module("docs/generate.py").files().items():
        assert (ROOT / path).read_text() == text, f"{path} is out of date: run `make docs`"


def test_every_key_of_an_experiment_is_in_the_reference() -> None:
    def below(base: type[BaseModel]) -> set[type[BaseModel]]:
        return {base}.union(*map(below, base.__subclasses__()))

    parts = (below(model.Part) | below(Settings)) - {model.Part, Settings}

    text = (ROOT / "docs/reference/experiments.md").read_text().partition("## Keys")[2].partition("## Datasets")[0]
    tables = text.count("| key |")
    assert tables == len(parts), "a table for each part of a document"
    for part in parts:
        assert [name for name in part.model_fields if f"| `{name}` |" not in text] == []


def test_package_and_engine_have_one_version() -> None:
    workspace = tomllib.loads((ROOT / "engine/Cargo.toml").read_text())["workspace"]
    assert workspace["package"]["version"] == dnsrig.__version__


def tracked() -> list[Path]:
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listing.stdout.splitlines() if (ROOT / name).is_file()]


def python(text: str) -> Iterator[str]:
    """The lines of docstrings, which are texts that begin a statement, and of comments."""
    lines, before = text.splitlines(), tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        comment = token.type == tokenize.COMMENT and not token.string.startswith(FOR_TOOLS)
        if comment or (token.type == tokenize.STRING and before in AT_A_BEGINNING):
            yield from lines[token.start[0] - 1 : token.end[0]]
        if token.type not in (tokenize.NL, tokenize.COMMENT):  # which also stand within a statement
            before = token.type


def rust(text: str) -> Iterator[str]:
    yield from re.findall(r"^ *//.*$", text, re.MULTILINE)


def toml(text: str) -> Iterator[str]:
    yield from re.findall(r"^ *#.*$", text, re.MULTILINE)


def markdown(text: str) -> Iterator[str]:
    """Without code."""
    yield from re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL).splitlines()


PROSE: dict[str, Callable[[str], Iterator[str]]] = {".py": python, ".rs": rust, ".toml": toml, ".md": markdown}


def too_long(path: Path) -> list[str]:
    """Lines of tables and pictures stay whole, and so does a word such as a link."""
    text, whole = path.read_text(), re.compile(r" *(//[/!]?|#)? *(\||!\[|\S+$)")
    if max(map(len, text.splitlines()), default=0) <= PROSE_COLUMNS:
        return []
    return [line for line in PROSE[path.suffix](text) if len(line) > PROSE_COLUMNS and not whole.match(line)]


@pytest.mark.parametrize("suffix", PROSE)
def test_lines_of_prose_are_short(suffix: str) -> None:
    found = {path.name: lines for path in tracked() if path.suffix == suffix and (lines := too_long(path))}
    assert found == {}


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.py", f"x = 1  # {'a ' * 60}\n", 1),
        ("a.py", f'"""A.\n\n{"a " * 70}\n"""\nx = "{"a " * 70}"\n', 1),
        ("a.rs", f'    /// {"a " * 60}\nlet x = "{"a " * 60}";\n', 1),
        ("a.toml", f'# {"a " * 60}\nx = "{"a " * 60}"\n', 1),
        ("a.md", f"{'a ' * 61}\n| {'a ' * 60}|\n```text\n{'a ' * 61}\n```\n[a](https://{'a' * 120})\n", 1),
    ],
)
def test_a_long_line_is_noticed(tmp_path: Path, name: str, text: str, expected: int) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert len(too_long(path)) == expected


def test_no_registry_host_is_named() -> None:
    """Packages come from wherever the user's own tools are set up to fetch them."""
    pattern = re.compile(r"https?://[^\s\"]*(debian|pypi|pythonhosted|crates|npmjs)[^\s\"]*")
    for path in tracked():
        if path.name != "Cargo.lock" and path.suffix not in (".png", ".arrow"):
            assert not pattern.search(path.read_text(errors="replace")), path


def test_readers_of_runs_never_import_the_lab() -> None:
    """So a report can be drawn on another machine. Of servers they may know what drivers declare."""
    parts = r"lab|servers\.(?!behaviour)|servers import (?!all_drivers$)|procedures|experiment|cli|datasets"
    forbidden = re.compile(rf"^\s*(from|import) dnsrig\.({parts})", re.MULTILINE)
    for folder in (*ABOVE_RUNS, "report"):
        for path in (ROOT / "dnsrig" / folder).rglob("*.py"):
            assert not forbidden.search(path.read_text()), path


def test_servers_and_datasets_know_nothing_above_them() -> None:
    parts = "|".join(("lab", "procedures", "experiment", "cli", "report", *ABOVE_RUNS))
    forbidden = re.compile(rf"^\s*(from|import) dnsrig\.({parts})\b", re.MULTILINE)
    for folder in ("servers", "datasets"):
        for path in (ROOT / "dnsrig" / folder).rglob("*.py"):
            assert not forbidden.search(path.read_text()), path


def test_lower_parts_never_import_upper_ones() -> None:
    order = ["cli", "experiment", "procedures", "lab"]
    for number, lower in enumerate(order):
        for upper in order[:number]:
            pattern = re.compile(rf"^\s*(from|import) dnsrig\.{upper}\b", re.MULTILINE)
            for path in (ROOT / "dnsrig" / lower).rglob("*.py"):
                assert not pattern.search(path.read_text()), f"{path} imports dnsrig.{upper}"


def test_browse_stands_on_the_report_and_only_its_command_knows_of_it() -> None:
    parts = r"lab|servers|procedures|experiment|cli|datasets|streams"
    forbidden = re.compile(rf"^\s*(from|import) dnsrig\.({parts})\b", re.MULTILINE)
    for path in (ROOT / "dnsrig/browse").rglob("*.py"):
        assert not forbidden.search(path.read_text()), path
    knows = re.compile(r"^\s*(from|import) dnsrig\.browse\b", re.MULTILINE)
    knowing = [path for path in (ROOT / "dnsrig").rglob("*.py") if knows.search(path.read_text())]
    assert {path.relative_to(ROOT / "dnsrig").parts[0] for path in knowing} == {"browse", "cli"}


def test_cores_of_browse_know_nothing_of_http() -> None:
    shells = {"app.py", "connections.py", "guard.py", "shared.py", "serve.py"}
    for path in (ROOT / "dnsrig/browse").glob("*.py"):
        if path.name not in shells:
            assert not re.search(r"^\s*(from|import) (starlette|uvicorn)", path.read_text(), re.MULTILINE), path


def test_readers_of_runs_name_no_server_and_no_procedure() -> None:
    """Drivers declare what they need to know; what is told for its source, in docstrings and ``SOURCE``, may name
    them."""
    names = "|".join(
        re.escape(name) for kind, driver in all_drivers().items() if driver.packages for name in (kind, driver.title)
    )
    server = re.compile(rf"\b({names}|BIND|PowerDNS)\b")
    folders = [ROOT / "dnsrig" / folder for folder in ABOVE_RUNS]
    for path in (path for folder in folders for path in folder.rglob("*.py")):
        if path.parent.name == "published":
            continue  # what a source measured
        tree = ast.parse(path.read_text())
        said = [node for node in ast.walk(tree) if isinstance(node, ast.Expr | ast.Assign)]
        sources = [n for n in said if isinstance(n, ast.Expr) or getattr(n.targets[0], "id", "").endswith("SOURCE")]
        exempt = {id(inner) for node in sources for inner in ast.walk(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in exempt:
                assert not server.search(node.value), f"{path}:{node.lineno}"
            assert not (isinstance(node, ast.Attribute) and node.attr == "procedure"), f"{path}:{node.lineno}"


def test_the_places_that_are_broken_to_see_whether_tests_notice_are_there() -> None:
    """benches/mutations.py runs seldom, and code moves."""
    for place in _module("benches/mutations.py").PLACES:
        assert (ROOT / place.file).read_text().count(place.old) == 1, f"{place.file}: {place.old}"


FIGURES = ROOT / "docs/reference/figures.md"
RESULTS = [path for path in sorted((ROOT / "docs/results").glob("*.md")) if path.name != "README.md"]
HEAD = ["Measured", "Servers", "Machine", "Command", "Still holds"]
DAY = re.compile(r"\b2\d{3}-[01]\d-[0-3]\d\b")


def slug(heading: str) -> str:
    """The anchor that a heading has on a forge."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def sections(page: Path) -> Iterator[tuple[str, list[str]]]:
    """Anchor and lines of each section."""
    for section in re.split(r"^#+ ", page.read_text(), flags=re.MULTILINE)[1:]:
        heading, *lines = section.splitlines()
        yield slug(heading), lines


def figure_rows() -> list[list[str]]:
    """What, date, commit, made by, still holds."""
    lines = [line for line in FIGURES.read_text().splitlines() if line.startswith("| ")]
    return [line.strip("| ").split(" | ") for line in lines if not line.startswith(("| what", "| ---"))]


def test_every_picture_is_made_by_the_script_and_shown_on_a_page() -> None:
    there = {path.name for path in (ROOT / "docs/pictures").iterdir()}
    assert there == set(pictures.PICTURES)
    pages = "".join(page.read_text() for page in tracked() if page.suffix == ".md" and page != FIGURES)
    assert [name for name in sorted(there) if f"pictures/{name})" not in pages] == []


def test_runs_that_pictures_show_are_stored_and_small() -> None:
    needed = {each.run for each in pictures.PICTURES.values() if isinstance(each, pictures.View)}
    stored = {path.name.removesuffix(".tar.xz"): path for path in (ROOT / "docs/runs").iterdir()}
    assert set(stored) == needed
    for path in stored.values():
        assert path.stat().st_size < 1_000_000
        with tarfile.open(path) as run:
            names = run.getnames()
        assert f"{names[0]}/manifest.json" in names and not any(name.endswith(pictures.DERIVED) for name in names)


def test_every_picture_has_a_row_in_the_list_of_figures() -> None:
    shown = {Path(target).name for row in figure_rows() for target in re.findall(r"\]\((\S+)\)", row[0])}
    assert {path.name for path in (ROOT / "docs/pictures").iterdir()} <= shown


@pytest.mark.parametrize("page", RESULTS, ids=lambda page: page.name)
def test_every_table_of_results_has_a_row_in_the_list_of_figures(page: Path) -> None:
    listed = set(re.findall(rf"{re.escape(page.name)}#(\S+?)\)", FIGURES.read_text()))
    tables = [anchor for anchor, lines in sections(page) if any(line.startswith("| ---") for line in lines)]
    assert [anchor for anchor in tables if anchor not in listed] == []


@pytest.mark.parametrize("page", RESULTS, ids=lambda page: page.name)
def test_a_page_of_results_begins_with_what_was_measured_and_whether_it_holds(page: Path) -> None:
    head = page.read_text().split("\n\n")[1]
    assert re.findall(r"^- \*\*(.+):\*\*", head, re.MULTILINE) == HEAD
    assert DAY.search(head) and "dnsrig 0." in head and "reference/figures.md" in head
    answers = [row[4] for row in figure_rows() if f"results/{page.name}#" in row[0] and "../pictures/" not in row[0]]
    holding = sum(answer.startswith("yes") for answer in answers)
    assert f"{holding} of {len(answers)} results" in " ".join(head.split())


def test_every_page_of_results_is_in_their_index() -> None:
    index = (ROOT / "docs/results/README.md").read_text()
    assert [page.name for page in RESULTS if f"]({page.name}" not in index] == []


def test_rows_of_figures_have_a_date_a_commit_an_answer_and_a_place_that_is_there() -> None:
    for what, day, commit, _, holds in figure_rows():
        assert DAY.fullmatch(day) and re.fullmatch(r"[0-9a-f]{8}", commit), what
        assert re.match(r"yes$|yes \(|not measured again: |withdrawn: ", holds), what
        for target, anchor in re.findall(r"\]\(([^)#\s]+)#(\S+?)\)", what):
            assert anchor in dict(sections((FIGURES.parent / target).resolve())), f"{target}#{anchor}"
