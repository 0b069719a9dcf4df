"""The pages of runs, one run and several, as a browser gets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import test_importers
from browsing import FIRST, HOSTILE, SECOND, address, client, runs
from starlette.testclient import TestClient
from synthetic import Plan, build

from dnsrig.browse.scan import run_id
from dnsrig.browse.spec import all_units

DAMAGED = "broken/20250103T120000Z-cccc"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    folder = tmp_path_factory.mktemp("browse")
    hostile = Plan(zones=[50], repeats=1, servers=["bind@system"], title=HOSTILE, log_example=HOSTILE)
    build(runs(folder / "runs") / "hostile/20250104T120000Z-dddd", hostile)
    return client(folder / "runs", folder)


def test_all_runs(pages: TestClient) -> None:
    page = pages.get("/").text
    assert page.count('name="run"') == 4 and "1 damaged" in page
    filtered = pages.get("/", params={"q": "bbbb", "experiment": "synthetic", "page": "x"}).text
    assert filtered.count('name="run"') == 1 and SECOND in filtered
    assert "No run matches the filter" in pages.get("/", params={"q": "nothing like it"}).text


def test_a_run(pages: TestClient) -> None:
    page = pages.get(address(FIRST)).text
    for heading in ("Every variant in figures", "Charts", "Findings", "Every trial"):
        assert f">{heading}</h2>" in page
    assert page.count('href="' + address(FIRST, "trial")) == 4, "every repeat leads to its trial"
    assert f'data-chart="{address(FIRST, "chart", "time-by-variant")}.json"' in page


def test_a_damaged_run_is_shown_as_such(pages: TestClient) -> None:
    answer = pages.get(address(DAMAGED))
    assert answer.status_code == 200 and "Damaged." in answer.text
    assert pages.get(address(DAMAGED, "chart", "repeats.json")).status_code == 422


def test_charts_are_those_of_the_report_and_answer(pages: TestClient) -> None:
    (drawing,) = pages.get(address(FIRST, "chart", "time-by-variant.json")).json()
    spec = drawing["spec"]
    assert spec["$schema"].rpartition("/")[2].startswith("v6.")
    assert {param["bind"] for param in spec["params"]} <= {"scales", "legend"}
    assert f"'{address(FIRST, 'trial')}/' + datum.trial" in json.dumps(spec)
    assert drawing["switchable"]
    log = pages.get(address(FIRST, "chart", "time-by-variant.json"), params={"scale": "log"})
    assert '"type":"log"' in log.text
    assert pages.get(address(FIRST, "chart", "nothing.json")).status_code == 404
    assert pages.get(address(FIRST, "chart", "time-by-variant.json"), params={"scale": "x"}).status_code == 404


def test_two_runs_side_by_side(pages: TestClient) -> None:
    both = {"run": [run_id(FIRST), run_id(SECOND)], "metric": "zones_per_s"}
    page = pages.get("/compare", params=both).text
    assert page.count("transfer_time_s</code>") == 1 and "zones_per_s</code>" in page
    assert page.count("data-chart=") >= 4 and page.count("data-chart=") % 2 == 0
    assert "Nothing that is known" in pages.get("/differences", params=both).text
    assert "no metric" in pages.get("/compare", params=both | {"metric": "nonsense"}).text
    assert pages.get("/compare", params={"run": run_id(FIRST)}).status_code == 422
    assert pages.get("/compare", params={"run": "nothing"}).status_code == 404


@pytest.mark.parametrize(("page", "most"), [("/compare", 12), ("/differences", 12), ("/history", 200)])
def test_an_address_names_one_run_or_more_up_to_a_limit(pages: TestClient, page: str, most: int) -> None:
    """Runs that are not there show how far it came."""
    for count, status in ((0, 422), (1, 404), (most, 404), (most + 1, 422)):
        assert pages.get(page, params={"run": [f"none-{n}" for n in range(count)]}).status_code == status, count
    twice = {"run": [f"none-{n}" for n in range(most)] * 2}
    assert pages.get(page, params=twice).status_code == 404, "each counts once"


def test_marks_of_single_trials_lead_to_them_and_show_what_is_drawn(pages: TestClient) -> None:
    (drawing,) = pages.get(address(FIRST, "chart", "time-by-variant.json")).json()
    led = [unit for unit in all_units(drawing["spec"]) if "href" in unit.get("encoding", {})]
    assert led
    for unit in led:
        mark, fields = unit["mark"], [line["field"] for line in unit["encoding"]["tooltip"]]
        assert mark["type"] in ("point", "circle", "square") and mark["cursor"] == "pointer" and mark["size"] >= 60
        drawn = [channel["field"] for name, channel in unit["encoding"].items() if name in ("x", "y")]
        assert set(drawn) <= set(fields) and len(fields) == len(set(fields)), "each once"
        assert unit["transform"][-1] == {"calculate": f"'{address(FIRST, 'trial')}/' + datum.trial", "as": "href"}


def test_the_base_comes_first(pages: TestClient) -> None:
    asked = {"run": [run_id(FIRST), run_id(SECOND)], "base": run_id(SECOND)}
    answer = pages.get("/chosen", params=asked, follow_redirects=False)
    assert answer.headers["location"] == f"/compare?run={run_id(SECOND)}&run={run_id(FIRST)}"
    odd = pages.get("/chosen", params={"run": HOSTILE, "to": "//evil"}, follow_redirects=False)
    assert odd.headers["location"].startswith("/compare?run=%3C%2Fscript")


def test_names_of_a_run_are_text(pages: TestClient) -> None:
    where = address("hostile/20250104T120000Z-dddd")
    for path in ("/", where):
        page = pages.get(path).text
        assert "&lt;script&gt;alert(1)" in page
        assert "<script>alert" not in page and "\u202e" not in page
    drawn = pages.get(f"{where}/chart/time-by-variant.json")
    assert drawn.headers["content-type"] == "application/json"


def test_a_trial(pages: TestClient) -> None:
    where = address(FIRST, "trial/v00/1")
    page = pages.get(where, params={"series": "secondary/sockets/tcp_time_wait", "q": "nothing"}).text
    assert "series=secondary%2Fsockets%2Ftcp_time_wait" in page and "No line contains these words" in page
    for wrong in ("trial/v00/9", "trial/v09/1", "trial/v00/x"):
        assert pages.get(address(FIRST, wrong)).status_code == 404


def test_a_trial_on_one_axis(pages: TestClient) -> None:
    where = address(FIRST, "trial/v00/1/axis.json")
    (drawing,) = pages.get(where, params={"series": ["secondary/sockets/tcp_time_wait", "nonsense"]}).json()
    titles = [panel.get("title", {}).get("text") for panel in drawing["spec"]["vconcat"]]
    assert titles[:3] == ["Phases", "secondary/sockets/tcp_time_wait", "CPU, % of one core"] and "Zones done" in titles
    zooms = [param for param in drawing["spec"]["params"] if param["bind"] == "scales"]
    assert len(zooms) == 1 and len(zooms[0]["views"]) == len(titles), "all panels move together"
    (part,) = pages.get(where, params={"from": "0.1", "to": "0.2"}).json()
    assert part["range"] == [0.1, 0.2]
    for odd in ({"from": "nan", "to": "1e99"}, {"from": "9", "to": "-9"}, {"from": "x"}):
        assert pages.get(where, params=odd).status_code == 200


def test_findings_with_the_series_that_show_them(pages: TestClient) -> None:
    page = pages.get(address(FIRST, "findings")).text
    assert "seen in" in page and "axis.json?only=series&amp;series=" in page
    where = address(FIRST, "trial/v00/1/axis.json")
    (drawing,) = pages.get(where, params={"only": "series", "series": "secondary/sockets/tcp_time_wait"}).json()
    assert len(drawing["spec"]["vconcat"]) == 2
    assert pages.get(where, params={"only": "series"}).status_code == 200


def test_conditions(pages: TestClient) -> None:
    assert "Synthetic CPU" in pages.get(address(FIRST, "conditions")).text


def test_history(pages: TestClient) -> None:
    both = {"run": [run_id(FIRST), run_id(SECOND)]}
    page = pages.get("/history", params=both).text
    assert "no change can be distinguished" in page and page.count(address(FIRST, "trial")) == 4
    (drawing,) = pages.get("/history/transfer_time_s.json", params=both).json()
    assert drawing["spec"]["vconcat"]
    assert pages.get("/history/nothing.json", params=both).status_code == 404
    assert pages.get("/history").status_code == 422


def test_results_of_another_tool(tmp_path: Path) -> None:
    """Latencies from sending are on the trial's axis of time, and every page of the run is there."""
    folder = test_importers.made(tmp_path, "shotgun").directory
    pages = client(tmp_path / "runs", tmp_path / "cache")
    run = address(folder.name)
    (variant,) = [path.name for path in (folder / "trials").iterdir()]
    for more in ("", "/findings", "/conditions", "/live", f"/trial/{variant}/1"):
        assert pages.get(f"{run}{more}").status_code == 200, more
    (drawn,) = pages.get(f"{run}/trial/{variant}/1/axis.json").json()
    assert "Percentiles of latency" in json.dumps(drawn["spec"])
