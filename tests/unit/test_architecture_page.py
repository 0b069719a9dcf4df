"""docs/explanation/architecture.md: the files and definitions that it names are there; each folder says what lives in
it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import architecture
import architecture_picture
import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/explanation/architecture.md"
PLACES = re.findall(r"\[`([^`\]]+): ([\w:.]+)`\]\(([^)]+)\)", PAGE.read_text())
QUESTIONS = 14


@pytest.mark.parametrize(("file", "name", "target"), PLACES, ids=str)
def test_a_place_that_the_page_names_is_there(file: str, name: str, target: str) -> None:
    path = (PAGE.parent / target).resolve()
    assert path.as_posix().endswith(f"/{file}")
    text = path.read_text()
    for word in re.split(r"::|\.", name):
        defined = rf"^\s*(?:pub(?:\([^)]*\))? )?(?:struct|enum|trait|type|class|fn|def) {word}\b|^{word} = "
        assert re.search(defined, text, re.MULTILINE), f"{file} does not define {word}"


def test_questions_have_one_answer_each() -> None:
    rows = [row for row in PAGE.read_text().splitlines() if row.startswith("| Where ")]
    assert len(rows) == QUESTIONS
    assert all(len(re.findall(r"\[`[^`]+: [^`]+`\]", row)) == 1 for row in rows)


def test_thresholds_of_traps_are_argued_below_them() -> None:
    """Those that stand together share what is said below the last."""
    for path in architecture.PACKAGE.glob("traps/[a-z]*.py"):
        body = ast.parse(path.read_text()).body
        for i, node in enumerate(body):
            if isinstance(node, ast.Assign) and re.match(r"(?!ORDER)[A-Z_]+ = \(?\d", ast.unparse(node)):
                below = next(other for other in body[i:] if not isinstance(other, ast.Assign))
                assert isinstance(below, ast.Expr), f"{path}: {ast.unparse(node)}"


def test_what_follows_from_the_rest_is_not_drawn() -> None:
    uses = {"cli": {"plan", "lab"}, "plan": {"lab"}, "lab": set(), "report": {"lab"}}
    assert architecture_picture.indispensable(uses) == {
        "cli": {"plan"},
        "plan": {"lab"},
        "lab": set(),
        "report": {"lab"},
    }
    assert architecture_picture.layers(uses) == [["cli", "report"], ["plan"], ["lab"]]


def test_imports_of_the_package_are_read_also_inside_functions(tmp_path: Path) -> None:
    (tmp_path / "rig/cli").mkdir(parents=True)
    (tmp_path / "rig/cli/run.py").write_text(
        "import os\nfrom rig import text, __version__\ndef run():\n    import rig.lab.host\n"
    )
    (tmp_path / "rig/lab").mkdir()
    (tmp_path / "rig/lab/host.py").write_text("")
    (tmp_path / "rig/text.py").write_text("")
    assert architecture.package_uses(tmp_path / "rig") == {"cli": {"text", "lab"}, "lab": set(), "text": set()}


@pytest.mark.parametrize("folder", ["benches", "docs", "engine", "experiments", "packaging", "tests"])
def test_a_top_folder_says_what_lives_in_it(folder: str) -> None:
    assert (ROOT / folder / "README.md").read_text().count("\n") > 2


def test_each_folder_of_code_says_what_lives_in_it() -> None:
    for path in architecture.PACKAGE.rglob("__init__.py"):
        assert ast.get_docstring(ast.parse(path.read_text())), path
    for path in architecture.ENGINE.glob("dnsrig-*/src/**/mod.rs"):
        assert path.read_text().startswith("//! "), path
    said = ast.get_docstring(ast.parse((architecture.PACKAGE / "__init__.py").read_text())) or ""
    for path in architecture.PACKAGE.iterdir():
        assert not (path / "__init__.py").exists() or f"- ``{path.name}``" in said, path
