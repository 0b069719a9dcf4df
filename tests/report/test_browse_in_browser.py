"""`dnsrig browse` in a real browser: every view is drawn, answers to the pointer, and lets no name of a run act."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import load_data
import pytest
import uvicorn
from browsing import FIRST, HOSTILE, SECOND, address, runs
from made_up import made_up_findings
from playwright.sync_api import Browser, Page, sync_playwright
from suites import quick
from synthetic import Plan, build

from dnsrig.browse import notes, serve
from dnsrig.browse.app import application
from dnsrig.browse.index import Index
from dnsrig.browse.scan import run_id
from dnsrig.browse.security import Access
from dnsrig.rundir import Findings, write_json
from dnsrig.runs.run import Run

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed; `make browser` installs it"),
]
LOAD, EVIL = "load/20250105T120000Z-eeee", "evil/20250106T120000Z-ffff"
TRIAL = address(FIRST, "trial/v00/1")
VIEWS = {
    "runs": "/",
    "run": address(FIRST),
    "load": address(LOAD),
    "damaged": address("broken/20250103T120000Z-cccc"),
    "compare": f"/compare?run={run_id(FIRST)}&run={run_id(SECOND)}",
    "differences": f"/differences?run={run_id(FIRST)}&run={run_id(SECOND)}",
    "trial": f"{TRIAL}?series=secondary/sockets/tcp_time_wait",
    "trial of load": address(LOAD, "trial/v00/1"),
    "findings": address(FIRST, "findings"),
    "conditions": address(FIRST, "conditions"),
    "history": f"/history?run={run_id(FIRST)}&run={run_id(SECOND)}",
    "live": address(FIRST, "live"),
    "evil": address(EVIL),
    "evil trial": address(EVIL, "trial/v00/1"),
    "evil findings": address(EVIL, "findings"),
    "evil conditions": address(EVIL, "conditions"),
    "evil live": address(EVIL, "live"),
    "evil history": f"/history?run={run_id(EVIL)}",
    "evil compare": f"/compare?run={run_id(EVIL)}&run={run_id(EVIL)}&run={run_id(FIRST)}&metric=%3Cscript%3E",
    "nothing": "/run/%3Cscript%3Ealert(1)%3C%2Fscript%3E",
}


def hostile(directory: Path) -> None:
    """Every name and text in the run wants to act."""
    build(
        directory,
        Plan(
            servers=["bind@system", "knot@system"],
            zones=[50],
            repeats=5,
            title=HOSTILE,
            log_example=HOSTILE,
            extra_axes={HOSTILE[:60]: [HOSTILE, "plain"]},
            stacks={f"{HOSTILE};inner": 5, "outer": 3},
        ),
    )
    found = made_up_findings(Run.open(directory))
    said = {"summary": HOSTILE, "remedy": HOSTILE, "source": HOSTILE, "series": [f"secondary/{HOSTILE}/x"]}
    write_json(directory / "findings.json", Findings(findings=[each.model_copy(update=said) for each in found]))
    for log in directory.glob("trials/*/*"):
        (log / "servers/secondary").mkdir(parents=True)
        (log / "servers/secondary/server.log").write_text(f"{HOSTILE}\n" * 3)
    notes.write(directory, notes.Notes(note=HOSTILE, tags=[HOSTILE[:40]]))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    """The address of a server with runs of all kinds."""
    folder = tmp_path_factory.mktemp("browse")
    root = runs(folder / "runs")
    shutil.rmtree(root / FIRST)
    build(root / FIRST, Plan(zones=[50, 200], repeats=5))
    load_data.build(root / LOAD)
    hostile(root / EVIL)
    listening = serve.listen("127.0.0.1", 0)
    access = Access("the-token", "127.0.0.1", listening.getsockname()[1])
    app = application(root, access, Index(root, folder / "index.sqlite"))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    yield access
    server.should_exit = True
    thread.join(10)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def page(site: Access, browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """Entered; whatever the browser complains of, or a dialog that opens, fails the test."""
    context = browser.new_context(viewport={"width": 1200, "height": 900}, **getattr(request, "param", {}))
    found, wrong = context.new_page(), list[str]()
    found.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    found.on("pageerror", lambda error: wrong.append(str(error)))
    found.on("dialog", lambda dialog: (wrong.append("a dialog"), dialog.dismiss()))
    found.on("request", lambda asked: None if asked.url.startswith(base(site)) else wrong.append(asked.url))
    found.goto(site.url)
    found.wait_for_url(f"{base(site)}/")
    yield found
    context.close()
    assert [text for text in wrong if "status of 404" not in text and "data:," not in text] == []


def until(page: Page, condition: Callable[[], bool], limit_s: float = 30) -> None:
    """A chart is drawn again when the browser finds time; other tests run beside this one."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        page.wait_for_timeout(50)


def base(site: Access) -> str:
    return site.url.partition("/?")[0]


def drawn(page: Page) -> None:
    """Every chart of the page comes into sight and is drawn."""
    for place in page.locator("[data-chart]").all():
        folder = place.locator("xpath=ancestor::details[not(@open)]")
        if folder.count():
            folder.first.locator("summary").first.click()
        place.scroll_into_view_if_needed()
        page.wait_for_function("place => place.dataset.drawn", arg=place.element_handle(), timeout=30_000)
        assert place.get_attribute("data-drawn") == "yes", place.inner_text()


@pytest.mark.parametrize("view", quick(VIEWS, "evil"))
def test_every_view_is_drawn_and_no_name_acts(page: Page, site: Access, view: str) -> None:
    page.goto(base(site) + VIEWS[view])
    drawn(page)
    assert page.locator("main h1").count() == 1
    assert (
        page.evaluate("window.hacked === undefined && document.querySelectorAll('main script, main [onload]').length")
        == 0
    )
    assert "\u202e" not in page.content()
    unnamed = "[...document.querySelectorAll('a, button, input:not([type=hidden]), select, textarea')].filter(e => !(e.textContent || e.ariaLabel || e.labels?.length)).length"
    assert page.evaluate(unnamed) == 0, "everything that can be used has a name"


@pytest.mark.parametrize("page", [{"color_scheme": "dark"}], indirect=True)
@pytest.mark.parametrize(
    "view", quick(["runs", "run", "compare", "trial", "findings", "live", "evil", "evil trial"], "trial")
)
def test_views_fit_a_phone(page: Page, site: Access, view: str) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    page.goto(base(site) + VIEWS[view])
    drawn(page)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_the_first_screen_has_the_answer(page: Page, site: Access, width: int, height: int) -> None:
    page.set_viewport_size({"width": width, "height": height})
    page.goto(base(site) + address(FIRST))
    for name in ("h1", "#answer-chart", "#verdicts", "#headlines"):
        box = page.locator(name).bounding_box()
        assert box is not None and box["height"] > 0
        assert box["y"] + box["height"] <= height, name
    assert page.locator("#answer-chart svg").filter(visible=True).count() == 1
    assert not page.locator("textarea").is_visible(), "notes are below, folded"


@pytest.mark.full
def test_values_stand_under_the_pointer_and_a_mark_leads_to_its_trial(page: Page, site: Access) -> None:
    page.goto(base(site) + address(FIRST))
    drawn(page)
    mark = page.locator('[data-chart*="/repeats.json"] svg .mark-symbol.role-mark path').first
    mark.scroll_into_view_if_needed()
    page.wait_for_timeout(300)  # what moves hides what stands under the pointer
    mark.hover(force=True)
    tip = page.locator(".tip")
    tip.wait_for(state="visible")
    assert "repeat" in tip.inner_text() and "/run/" not in tip.inner_text()
    mark.click(force=True)
    page.wait_for_url("**/trial/v0*/*")


def ticks(page: Page, chart: str) -> list[str]:
    """Sorted: which of them is drawn first says nothing."""
    labels = page.locator(f'[data-chart*="{chart}"] svg').first.locator(".role-axis-label text")
    return sorted(labels.all_text_contents())


@pytest.mark.full
def test_charts_zoom_move_and_come_back(page: Page, site: Access) -> None:
    page.goto(base(site) + address(FIRST))
    drawn(page)  # all, so that nothing moves any more
    picture = page.locator('[data-chart*="time-per-zone"] svg').first
    picture.scroll_into_view_if_needed()
    box = picture.bounding_box()
    assert box is not None
    before = ticks(page, "time-per-zone")
    page.mouse.move(box["x"] + 300, box["y"] + 100)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -400)
    page.keyboard.up("Control")
    until(page, lambda: ticks(page, "time-per-zone") != before)
    page.mouse.dblclick(box["x"] + 300, box["y"] + 100)
    until(page, lambda: ticks(page, "time-per-zone") == before)
    page.locator('[data-chart*="time-per-zone"] .tools button').click()
    until(page, lambda: ticks(page, "time-per-zone") != before)  # the other scale


@pytest.mark.full
def test_a_legend_switches_lines_off_and_on(page: Page, site: Access) -> None:
    page.goto(base(site) + address(FIRST))
    drawn(page)
    faint = '[data-chart*="resources"] svg .role-mark path[opacity^="0.0"]:not([opacity="0"])'
    before = page.locator(faint).count()
    entry = page.locator('[data-chart*="resources"] svg .role-legend-symbol path').first
    entry.click(force=True)
    until(page, lambda: page.locator(faint).count() > before)
    entry.click(force=True)
    until(page, lambda: page.locator(faint).count() == before)


@pytest.mark.full
def test_panels_of_a_trial_zoom_together_and_the_address_has_it(page: Page, site: Access) -> None:
    page.goto(base(site) + TRIAL)
    drawn(page)
    box = page.locator("#axis svg").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 300, box["y"] + 110)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -600)
    page.keyboard.up("Control")
    page.wait_for_url("**from=*to=*")
    page.reload()
    drawn(page)
    assert page.locator("#axis .drawings").get_attribute("data-from")
    page.get_by_role("button", name="Measured part").click()
    page.wait_for_url(lambda address: "from=" not in address)


@pytest.mark.full
def test_a_note_is_written_and_found(page: Page, site: Access) -> None:
    page.goto(base(site) + address(SECOND))
    page.locator("#notes summary").click()
    page.get_by_label("Note", exact=True).fill("after the fix")
    page.get_by_label("Tags").fill("release, slow")
    page.get_by_role("button", name="Keep").click()
    page.wait_for_url(f"**{address(SECOND)}")
    assert page.locator(".notes .tag").all_inner_texts() == ["release", "slow"]
    page.goto(f"{base(site)}/?tag=release")
    assert page.locator("tbody tr").count() == 1


@pytest.mark.full
def test_the_keyboard_reaches_the_content(page: Page, site: Access) -> None:
    page.goto(base(site) + address(FIRST))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
