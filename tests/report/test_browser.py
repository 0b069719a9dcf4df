"""Looks at the page with a real browser: at the width of a phone and of a desk, light and dark, and printed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from html_facts import read
from suites import quick

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed; `make browser` installs it"),
]

QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--hide-scrollbars", "--enable-logging=stderr"),
)

MEASURE = """
<script>
addEventListener("load", () => {
  const first = ["h1", "#answer-chart", "#verdicts", "#headlines"].map(name => document.querySelector(name));
  const bottoms = first.map(e => e && e.getBoundingClientRect().height > 0 ? e.getBoundingClientRect().bottom : 1e6);
  const legible = [...document.querySelectorAll("#answer-chart svg")].filter(e => e.getBoundingClientRect().height > 0)
    .map(e => e.getBoundingClientRect().width / e.getAttribute("width"));
  document.querySelectorAll("details").forEach(folder => { folder.open = true; });
  const wide = [...document.querySelectorAll("body *")].filter(e => !e.closest(".wide") || e.matches(".wide"));
  const drawn = [...document.querySelectorAll(".chart svg")].map(e => e.getBoundingClientRect());
  parent.postMessage(JSON.stringify({
    width: innerWidth,
    bottoms: bottoms,
    legible: legible,
    overflow: document.documentElement.scrollWidth - innerWidth,
    outside: wide.filter(e => e.getBoundingClientRect().right > innerWidth + 0.5).map(e => e.tagName + "." + e.className),
    cut: [...document.querySelectorAll("#section-repeats svg")].flatMap(svg => {
      const box = svg.getBoundingClientRect();
      const texts = [...svg.querySelectorAll("text")].filter(text => text.textContent.includes("repeat "));
      return texts.filter(text => {
        const words = text.getBoundingClientRect();
        return words.left < box.left || words.right > box.right || words.top < box.top || words.bottom > box.bottom;
      }).map(text => text.textContent);
    }),
    causes: [...document.querySelectorAll("#section-repeats svg text")].filter(t => t.textContent.includes("repeat ")).length,
    drawings: drawn.filter(box => box.width > 200 && box.height > 100).length,
    paper: getComputedStyle(document.body).backgroundColor,
    ink: getComputedStyle(document.body).color,
    label: getComputedStyle(document.querySelector(".chart svg text")).fill,
    font: parseFloat(getComputedStyle(document.body).fontSize),
  }), "*");
});
</script>
"""

FRAME = """<!DOCTYPE html>
<meta name="color-scheme" content="light dark">
<script>addEventListener("message", event => { document.body.dataset.measured = event.data; });</script>
<body><iframe src="copy.html" style="border: 0; width: WIDTHpx; height: 800px"></iframe></body>
"""


def chromium(profile: Path, page: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    assert CHROMIUM is not None
    return subprocess.run(
        [CHROMIUM, *QUIET, f"--user-data-dir={profile}", *arguments, page.as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )


def measure(folder: Path, page: Path, width: int, dark: bool) -> dict[str, Any]:
    """What the browser says of a copy of ``page`` whose policy lets one more script in: ours.

    The copy stands in a frame of the wanted width, for a window cannot be as narrow as a phone.
    """
    policy, ours = "default-src 'none';", "default-src 'none'; script-src 'unsafe-inline';"
    html = page.read_text(encoding="utf-8").replace(policy, ours, 1)
    (folder / "copy.html").write_text(html.replace("</body>", MEASURE + "</body>"), encoding="utf-8")
    (folder / "frame.html").write_text(FRAME.replace("WIDTH", str(width)), encoding="utf-8")
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    dom = chromium(folder / "profile", folder / "frame.html", "--window-size=1400,900", scheme, "--dump-dom").stdout
    found = re.search(r'data-measured="([^"]*)"', dom)
    assert found, "the browser has not run the measuring script"
    measured: dict[str, Any] = json.loads(unescape(found.group(1)))
    return measured


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2) of ``rgb(…)``."""
    channels = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


VIEWS = [(width, dark) for width in (360, 1200) for dark in (False, True)]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("width", "dark"), quick(VIEWS, (360, True), (1200, False)))
def test_the_page_fits_and_can_be_read(page: Path, tmp_path: Path, width: int, dark: bool) -> None:
    seen = measure(tmp_path, page, width, dark)
    assert seen["width"] == width
    assert seen["overflow"] <= 0
    assert seen["outside"] == []
    assert seen["drawings"] >= 4
    assert seen["causes"] >= 1, "the outlier has its words"
    assert seen["cut"] == [], "and they lie inside the drawing"
    assert (luminance(seen["paper"]) < 0.1) == dark
    assert contrast(seen["ink"], seen["paper"]) > 7
    assert contrast(seen["label"], seen["paper"]) > 4.5
    assert seen["font"] >= 16


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_the_first_screen_has_the_answer(page: Path, tmp_path: Path, width: int, height: int) -> None:
    seen = measure(tmp_path, page, width, dark=False)
    assert max(seen["bottoms"]) <= height, "question, chart, verdicts and findings"
    assert len(seen["legible"]) == 1, "one drawing, made for this width"
    assert seen["legible"][0] > 0.95, "its letters are not made smaller"


@pytest.mark.full
def test_the_policy_refuses_nothing_of_ours(page: Path, tmp_path: Path) -> None:
    result = chromium(tmp_path / "profile", page, "--dump-dom")
    assert read(result.stdout).tags.count("svg") > 3
    assert "Content Security Policy" not in result.stderr


@pytest.mark.full
def test_it_prints(page: Path, tmp_path: Path) -> None:
    pdf = tmp_path / "page.pdf"
    chromium(tmp_path / "profile", page, "--no-pdf-header-footer", f"--print-to-pdf={pdf}")
    assert pdf.read_bytes().startswith(b"%PDF")
