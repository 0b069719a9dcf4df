"""What the pages share: the index, runs that were opened, templates, errors as a page."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, NoReturn
from urllib.parse import quote, urlencode

from jinja2 import ChoiceLoader, Environment, PackageLoader
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse

from dnsrig import traps
from dnsrig.browse import derived, vega
from dnsrig.browse.guard import access_of
from dnsrig.browse.index import Index
from dnsrig.browse.scan import Entry
from dnsrig.errors import DnsrigError
from dnsrig.report import page
from dnsrig.report.charts import _look
from dnsrig.report.first import First
from dnsrig.report.gather import TrapReport, gather
from dnsrig.rundir import Finding
from dnsrig.runs.run import Run

MOST_OPEN = 8
"""Runs that are kept in memory, the last ones used."""


@dataclass
class Opened:
    """A run that was read, with what was found in it. Its ``lock`` is held while something is derived from it."""

    entry: Entry
    run: Run
    lock: threading.RLock = field(default_factory=threading.RLock)
    specs: dict[tuple[str, str], Any] = field(default_factory=dict)
    """Drawings of charts, by chart and scale."""
    first: First | None = None
    """Its first screen, once it was asked for."""

    @cached_property
    def findings(self) -> list[Finding]:
        kept = derived.findings(self.run)
        return traps.examine(self.run) if kept is None else kept

    @cached_property
    def reports(self) -> list[TrapReport]:
        return gather(self.run, self.findings)


class Shelf:
    """The index, and the runs that were opened last. Threads share it."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._lock = threading.Lock()
        self._opened: OrderedDict[str, Opened] = OrderedDict()

    def entry(self, run: str) -> Entry:
        found = self.index.get(run)
        if found is None:
            raise HTTPException(404, "there is no such run here")
        return found

    def opened(self, run: str) -> Opened:
        """The run of this id; read again when it changed. Raises HTTPException where it cannot be read."""
        entry = self.entry(run)
        state = f"{entry.stamp}/{entry.finished}"
        with self._lock:
            known = self._opened.get(entry.id)
            if known is None or f"{known.entry.stamp}/{known.entry.finished}" != state:
                known = Opened(entry, _open(self.index, entry))
            self._opened[entry.id] = known
            self._opened.move_to_end(entry.id)
            while len(self._opened) > MOST_OPEN:
                self._opened.popitem(last=False)
            return known


def _open(index: Index, entry: Entry) -> Run:
    try:
        run = Run.open(index.directory(entry))
        _ = run.trials
    except DnsrigError as error:
        refuse(error)
    return run


def refuse(error: DnsrigError) -> NoReturn:
    raise HTTPException(422, error.message) from error


def shelf_of(request: Request) -> Shelf:
    found: Shelf = request.app.state.shelf
    return found


@cache
def environment() -> Environment:
    """The templates of the pages and of the report: values are made visible and escaped as in the report."""
    found = page.make_environment()
    loaders = [PackageLoader("dnsrig.browse", "templates"), PackageLoader("dnsrig.report", "template")]
    found.loader = ChoiceLoader(loaders)
    found.globals.update(url=url, vega_version=vega.version())
    return found


def url(*parts: object, **query: object) -> str:
    """An address of ours: each of ``parts`` becomes one part of the path, whatever is in it."""
    path = "/" + "/".join(quote(str(part), safe="") for part in parts)
    asked = [(name, str(value)) for name, value in query.items() if value not in (None, "")]
    return path + (f"?{urlencode(asked)}" if asked else "")


def shown(request: Request, template: str, status: int = 200, **context: Any) -> HTMLResponse:
    """The page of ``template``."""
    known: Mapping[str, Any] = {"form_token": access_of(request).form_token, "asked": request.query_params}
    text = environment().get_template(template).render(**known, **context)
    return HTMLResponse(text, status)


def style() -> str:
    """The report's style sheet, and what pages with forms and live charts need beyond it."""
    context = {"font": Markup(_look.FONT), "neutrals": _look.NEUTRALS}
    sheets = (environment().get_template(name) for name in ("report.css.j2", "browse.css.j2"))
    return "\n".join(sheet.render(**context) for sheet in sheets)
