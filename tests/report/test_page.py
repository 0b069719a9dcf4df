from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest
from html_facts import Facts, read
from synthetic import Plan, build

from dnsrig import report, traps
from dnsrig.analysis.read import Run
from dnsrig.report.charts import all_charts
from dnsrig.rundir import Finding

SECTIONS = ["answer", "findings", "charts", "metrics", "trials", "conditions", "method"]


@pytest.fixture(scope="module")
def facts(page: Path) -> Facts:
    return read(page.read_text(encoding="utf-8"))


def test_every_element_is_closed_in_order(facts: Facts) -> None:
    assert facts.unclosed == []


def test_the_derived_files_are_there(page: Path) -> None:
    assert pl.read_parquet(page.parent / "summary.parquet").height > 0
    findings = json.loads((page.parent / "findings.json").read_text())["findings"]
    assert sum(finding["trap"] == "ports-exhausted" for finding in findings) == 5, "all are kept"


def test_sections_come_in_the_order_of_their_use(facts: Facts) -> None:
    assert [value for value in facts.values("id") if value in SECTIONS] == SECTIONS


def test_identifiers_are_unique_and_links_lead_somewhere(facts: Facts) -> None:
    ids = facts.values("id")
    assert len(ids) == len(set(ids))
    targets = [href.removeprefix("#") for href in facts.values("href")]
    assert targets
    assert set(targets) <= set(ids)


def test_references_inside_drawings_lead_to_their_own(facts: Facts) -> None:
    ids = set(facts.values("id"))
    references = [r for _, _, value in facts.attributes for r in re.findall(r"url\(#([^)]+)\)", value)]
    assert set(references) <= ids


def test_nothing_is_loaded_and_nothing_runs(page: Path, facts: Facts) -> None:
    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form", "use", "image"} & set(facts.tags)
    assert not facts.values("src")
    assert all(href.startswith("#") for href in facts.values("href"))
    assert not [name for _, name, _ in facts.attributes if name.startswith("on")]
    policy = facts.values("content")
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:" in policy
    style = page.read_text(encoding="utf-8").split("</style>")[0]
    assert "@import" not in style
    assert "url(" not in style


def test_every_chart_that_applies_is_drawn(run: Run, facts: Facts) -> None:
    for chart in all_charts():
        assert chart.applies(run)
        assert f"section-{chart.id}" in facts.values("id")
        assert any(value.startswith(f"chart-{chart.id}-") for value in facts.values("id"))


def test_at_most_one_variant_is_unfolded(facts: Facts) -> None:
    assert sum(tag == "details" and name == "open" for tag, name, _ in facts.attributes) == 1


def test_findings_of_all_repeats_are_one_entry(facts: Facts) -> None:
    assert "in 5 of 5 repeats" in facts.text
    assert facts.text.count("the ports ran out after") == 1
    assert "first_failure 31.0..35.0 s" in facts.text
    assert "Clear: clock-step" in facts.text
    assert "no io.pressure" in facts.text


def test_a_limit_reads_as_a_bound_and_gives_its_progress(facts: Facts) -> None:
    assert "≥ " in facts.text
    assert "66 of 200 zones after 10 s" in facts.text
    assert "not compared" in facts.text


def test_neutral_colours_follow_the_reader(page: Path, facts: Facts) -> None:
    """No drawing uses a neutral colour that the style sheet does not map; data colours are the palette's."""
    from dnsrig.report.charts import _look

    known = {*_look.NEUTRALS.values(), *_look.COLOURS, "none", "transparent"}
    used = {value for tag, name, value in facts.attributes if name in ("fill", "stroke")}
    assert used <= known
    for literal in _look.NEUTRALS.values():
        assert f'[fill="{literal}"]' in page.read_text(encoding="utf-8")


HOSTILE = '<script>alert(\'x\')</script>" onload="y" \x1b[31m\x00\u202egnp.\u2028{{ 7*7 }} ]]> &amp; $(id)'


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    """A page on which everything that came from outside wants to be more than text."""
    plan = Plan(
        servers=["bind@system", f"knot@{HOSTILE}"],
        zones=[20, 40],
        repeats=2,
        extra_axes={f"axis {HOSTILE}": [HOSTILE, f"other {HOSTILE}"]},
        baseline={"server": f"knot@{HOSTILE}"},
        title=HOSTILE,
        log_example=HOSTILE,
        zone_name=HOSTILE.replace("{", "{{").replace("}", "}}") + "{index}",
    )

    def findings(run: Run) -> list[Finding]:
        return [
            Finding(
                trap="ports-exhausted",
                verdict="found",
                variant=run.manifest.variants[0].id,
                summary=f"`{HOSTILE}`",
                evidence={HOSTILE: HOSTILE},
                series=[HOSTILE],
                metrics=["transfer_time_s"],
                remedy=HOSTILE,
                source=HOSTILE,
            )
        ]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(traps, "examine", findings)
        path = report.write_report(build(tmp_path_factory.mktemp("hostile") / "run", plan))
    return read(path.read_text(encoding="utf-8"))


def test_hostile_text_stays_text(hostile: Facts) -> None:
    assert "script" not in hostile.tags
    assert not [name for _, name, _ in hostile.attributes if name.startswith("on")]
    assert hostile.unclosed == []
    assert hostile.text.count("<script>alert('x')</script>") > 10, "shown, as what it is"
    assert "{{ 7*7 }}" in hostile.text


def test_hostile_text_cannot_turn_or_hide_anything(hostile: Facts) -> None:
    everything = "".join(hostile.texts) + "".join(value for _, _, value in hostile.attributes)
    assert not set("\x1b\x00\u202e\u2028") & set(everything)
    assert "\\u202egnp" in everything


def test_hostile_text_reaches_drawings_as_text(hostile: Facts) -> None:
    assert hostile.tags.count("svg") >= 3
    assert {"text", "path", "g"} <= set(hostile.tags)
    ids = hostile.values("id")
    assert len(ids) == len(set(ids))


def test_the_real_traps_and_an_empty_run(tmp_path: Path) -> None:
    """A run of which no trial is finished yet still has a page."""
    page = read(report.write_report(build(tmp_path / "run", Plan(repeats=0))).read_text(encoding="utf-8"))
    assert page.unclosed == []
    assert "There is nothing to draw yet." in page.text


def test_a_run_without_samples_or_zones_has_the_charts_that_remain(tmp_path: Path) -> None:
    directory = build(tmp_path / "run", Plan(repeats=1, samples=False))
    for rows in directory.glob("trials/*/*/zones.arrow"):
        rows.unlink()
    page = read(report.write_report(directory).read_text(encoding="utf-8"))
    assert "section-time-by-variant" in page.values("id")
    assert "section-timeline" not in page.values("id")
    assert "section-resources" not in page.values("id")


def test_the_file_stays_small(page: Path) -> None:
    """Six variants, three timelines each: two megabytes can be mailed and opened on a phone."""
    assert page.stat().st_size < 2_000_000
