"""Checks pages and sentences: `python docs/check.py`, a part of `make lint`.

- Each link of a page leads to a file, and to a heading that is there.
- A reader gets from README.md to each page of docs/ in at most two links.
- No sentence that users read has a turn of phrase that they stumble over (`TURNS`).
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINKS_TO_A_PAGE = 2
SENTENCES = {".md", ".py", ".rs", ".toml", ".j2"}
READ_BY_USERS = ("dnsrig/browse/", "dnsrig/cli/", "dnsrig/experiment/builtin/", "dnsrig/report/", "dnsrig/traps/")
"""Folders of code in which nearly every sentence reaches users; so does every Markdown page."""

TURNS = {
    r"\b(?:is|are) told\b": "is described in, is reported",
    r"\b(?:held|hold|holds) (?:\w+ ){0,4}against\b": "compared with",
    r"\bmended\b": "fixed",
    r"\bso (?:many|much) (?:at|as|of)\b": "the number of, how much",
    r"\bno more[.;]": "no longer, not any more",
    r"\bby whom\b": "by which client",
    r"\bas of every\b": "as for every",
}
"""Regular expressions of turns that never read well, each with words to write instead."""


def links(page: Path) -> Iterator[tuple[str, str]]:
    """The path and the anchor of each link of ``page`` to another file of the repository; either may be empty."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(\s*([^)\s]+)\)", text):
        if "://" not in target and not target.startswith("mailto:"):
            path, _, anchor = target.partition("#")
            yield path, anchor


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub and GitLab give to the headings of ``page``."""
    found: dict[str, int] = {}
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for heading in re.findall(r"^#+ +(.*?) *$", text, re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        found[anchor] = found.get(anchor, -1) + 1
    return {
        anchor if number == 0 else f"{anchor}-{number}" for anchor, last in found.items() for number in range(last + 1)
    }


def broken_links(pages: Iterable[Path]) -> Iterator[str]:
    for page in pages:
        for path, anchor in links(page):
            target = page.parent / path if path else page
            if not target.exists():
                yield f"{page}: {path} is not there"
            elif anchor and target.suffix == ".md" and anchor not in anchors(target):
                yield f"{page}: {path}#{anchor}: no such heading"


def far_pages(first: Path, pages: Iterable[Path]) -> Iterator[str]:
    """Pages that take more than `LINKS_TO_A_PAGE` links from the page ``first``."""
    reached = {first.resolve()}
    for _ in range(LINKS_TO_A_PAGE):
        reached |= {
            (page.parent / path).resolve()
            for page in reached
            if page.suffix == ".md" and page.is_file()
            for path, _ in links(page)
            if path
        }
    for page in pages:
        if page.resolve() not in reached:
            yield f"{page}: more than {LINKS_TO_A_PAGE} links from {first.name}"


def is_for_users(path: Path) -> bool:
    return path.suffix == ".md" or path.relative_to(ROOT).as_posix().startswith(READ_BY_USERS)


def turns(path: Path) -> Iterator[str]:
    text = path.read_text()
    for pattern, better in TURNS.items():
        for found in re.finditer(pattern, text):
            line = text.count("\n", 0, found.start()) + 1
            yield f"{path}:{line}: “{found.group()}”: better {better}"


def main() -> int:
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [path for name in listing.splitlines() if (path := ROOT / name).is_file() and path.suffix in SENTENCES]
    pages = [path for path in files if path.suffix == ".md"]
    faults = [
        *broken_links(pages),
        *far_pages(ROOT / "README.md", [page for page in pages if ROOT / "docs" in page.parents]),
        *(fault for path in files if is_for_users(path) for fault in turns(path)),
    ]
    for fault in faults:
        print(fault.replace(f"{ROOT}/", ""), file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
