from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import polars as pl
import pytest
from drawn import GOLDEN, as_it_was
from golden_files import same
from html_facts import Facts, lines, read
from made_up import made_up_findings, once, reported
from synthetic import Plan, build

from dnsrig import report, traps
from dnsrig.report.charts import _series, all_charts, resources
from dnsrig.report.page import _prose
from dnsrig.rundir import Finding
from dnsrig.runs.run import Run

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


def test_code_in_prose_may_hold_what_html_escapes() -> None:
    text = "Compare (`dnsrig compare A B --fail-if 'p99.9 > 110 %'`); `a` & <b> `"
    expected = "Compare (<code>dnsrig compare A B --fail-if &#39;p99.9 &gt; 110 %&#39;</code>); <code>a</code> &amp; &lt;b&gt; `"
    assert _prose(text) == expected


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
    applying = [chart for chart in all_charts() if chart.applies(run)]
    assert len(applying) > 5
    for chart in applying:
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
        zones=[20],
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

    folder = once(tmp_path_factory, "hostile", partial(reported, plan, findings))
    return read((folder / "report.html").read_text(encoding="utf-8"))


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
    page = read(report.write_report(build(tmp_path / "run", Plan(repeats=0))).path.read_text(encoding="utf-8"))
    assert page.unclosed == []
    assert "There is nothing to draw yet." in page.text


def test_a_run_without_samples_or_zones_has_the_charts_that_remain(tmp_path: Path) -> None:
    directory = build(tmp_path / "run", Plan(repeats=1, samples=False))
    for rows in directory.glob("trials/*/*/zones.arrow"):
        rows.unlink()
    page = read(report.write_report(directory).path.read_text(encoding="utf-8"))
    assert "section-time-by-variant" in page.values("id")
    assert "section-timeline" not in page.values("id")
    assert "section-resources" not in page.values("id")


def test_the_file_stays_small(page: Path) -> None:
    """Six variants, three timelines each: two megabytes can be mailed and opened on a phone."""
    assert page.stat().st_size < 2_000_000


def test_a_run_that_loads_a_zone_is_told_of_its_primary(tmp_path: Path) -> None:
    plan = Plan(zones=[1], repeats=6, subject="primary", slow={("bind@system", 1, 2): 4.0})
    page = read(report.write_report(build(tmp_path / "run", plan)).path.read_text(encoding="utf-8"))
    assert page.unclosed == []
    assert "seconds since the start of the primary" in page.text
    assert "CPU of the primary" in page.text
    assert "start of the secondary" not in page.text
    resources = page.text.split("Which resources did each variant use over time?")[1].split("What each metric is")[0]
    assert "in TIME_WAIT" not in resources, "nothing is transferred"
    answer = page.text.split("Every variant in figures")[1].split("Findings")[0]
    assert "0.40" in answer, "load_time_s is the main metric"
    assert "repeat 2 (+300 %)" in page.text


def test_several_primaries_are_drawn_together(tmp_path: Path) -> None:
    directory = build(tmp_path / "run", Plan(servers=["bind@system"], zones=[50], repeats=1, baseline={}))
    for path in [directory / "manifest.json", *directory.glob("trials/*/*/trial.json")]:
        data = json.loads(path.read_text())
        for spec in data["specs"].values() if "specs" in data else [data["spec"]]:
            spec["hosts"]["primary2"] = spec["hosts"]["primary"] | {"address": "198.18.0.4"}
        path.write_text(json.dumps(data))
    (rows,) = directory.glob("trials/*/*/samples.arrow")
    samples = pl.read_ipc_stream(rows)
    second = samples.filter(pl.col("source") == "link:primary").with_columns(
        source=pl.lit("link:primary2"), time_ns=pl.col("time_ns") + 300_000
    )
    pl.concat([samples, second]).write_ipc_stream(rows)
    trial = Run.open(directory).trials[0]
    one = resources._received(trial, "primary")["value"].to_list()
    together = _series.total([resources._received(trial, name) for name in trial.record.spec.primaries])
    assert together["value"].to_list() == pytest.approx([2 * value for value in one])
    page = read(report.write_report(directory).path.read_text(encoding="utf-8"))
    assert "Received from the primaries, MB/s" in page.text
    assert "2 primaries" in page.text


def test_published_figures_stand_beside_measured_ones(tmp_path: Path) -> None:
    plan = Plan(zones=[1], repeats=5, samples=False, extra_axes={"transport": ["tcp", "tcp+tsig"]})
    directory = build(tmp_path / "run", plan)
    manifest = json.loads((directory / "manifest.json").read_text())
    manifest["experiment"] = "tld-transfer"
    for spec in manifest["specs"].values():
        spec["transfer"]["transport"] = spec["variant"]["parameters"]["transport"]
    (directory / "manifest.json").write_text(json.dumps(manifest))
    page = read(report.write_report(directory).path.read_text(encoding="utf-8"))
    assert page.unclosed == []
    said = page.text.split("Published figures and ours")[1].split("Charts")[0]
    assert "26.5 s [26.34..26.66]" in said
    assert "4 records here, 14,000,000 in the source" in said
    assert "111 ±3 % of tcp" in said
    assert "The mean lies below the published range." in said
    assert "P. Špaček, ISC" in said


def test_without_a_published_figure_there_is_no_such_section(facts: Facts) -> None:
    assert "published" not in facts.values("id")
    assert "#published" not in facts.values("href")


def test_what_is_unsure_of_all_variants_alike_is_said_once(tmp_path: Path) -> None:
    def findings(run: Run) -> list[Finding]:
        return [
            Finding(trap="cold-cache", verdict="cannot-tell", variant=variant.id, summary="no io.pressure")
            for variant in run.manifest.variants
        ]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(traps, "examine", findings)
        path = report.write_report(build(tmp_path / "run", Plan(repeats=1, samples=False))).path
    text = read(path.read_text(encoding="utf-8")).text
    assert text.count("no io.pressure") == 1
    assert "cold-cache all variants: no io.pressure" in text


def test_the_page_is_as_it_was(page: Path) -> None:
    assert same(GOLDEN / "page.txt", lines(page.read_text(encoding="utf-8")))


def test_the_charts_of_the_page_are_as_they_were(run: Run) -> None:
    ids = ("time-by-variant", "repeats", "resources", "time-per-zone")
    assert as_it_was("drawn/page", run, *ids, findings=made_up_findings(run))
