"""Charts to SVG, PNG and PDF, and SVG made fit to stand inside a page beside others."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import altair as alt
import vl_convert
from markupsafe import Markup

from dnsrig.report.charts import _look

_NAMESPACE = "http://www.w3.org/2000/svg"
VEGA_LITE = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LONG_NUMBER = re.compile(r"(-?\d+\.\d)\d+")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")


def render(chart: alt.TopLevelMixin) -> str:
    """``chart`` as an SVG document; nothing is fetched to draw it.

    Tests compare charts with the schema of Vega-Lite; here that would take a fifth of the time.
    """
    return render_spec(chart.to_dict(validate=False))


def render_spec(specification: dict[str, Any]) -> str:
    """A specification of Vega-Lite as an SVG document."""
    text: str = vl_convert.vegalite_to_svg(specification, vl_version=VEGA_LITE, allowed_base_urls=[])
    return _NOT_XML.sub("\ufffd", text)


def size(svg: str) -> tuple[float, float]:
    """Width and height of an SVG document, in CSS pixels."""
    root = ElementTree.fromstring(svg)
    return float(root.get("width", 0)), float(root.get("height", 0))


def png(svg: str) -> bytes:
    """An SVG document as a PNG, at twice the size so that it stays sharp."""
    data: bytes = vl_convert.svg_to_png(svg, scale=2)
    return data


def pdf(svg: str) -> bytes:
    """An SVG document as a PDF of one page."""
    data: bytes = vl_convert.svg_to_pdf(svg)
    return data


def embed(svg: str, prefix: str, description: str, *, least_width: bool = True) -> Markup:
    """``svg`` for use inside HTML; with ``least_width`` it does not shrink below the width at which it can be read.

    Identifiers get ``prefix``, so that several drawings share a page; coordinates lose the digits that no screen
    shows; what carries no ink goes. Text and attributes are written again by the XML library: what
    a server or a zone was called cannot become markup.
    """
    root = ElementTree.fromstring(svg)
    _prune(root)
    for element in root.iter():
        _shorten(element, prefix)
    root.set("role", "img")
    root.set("aria-label", description)
    if least_width:
        root.set("style", f"min-width:min({root.get('width', '0')}px, {_look.WIDTH}px)")
    # A plain tag for each element: in HTML, <svg> needs no namespace.
    for element in root.iter():
        element.tag = element.tag.removeprefix(f"{{{_NAMESPACE}}}")
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _prune(parent: ElementTree.Element) -> None:
    """Remove paths without a shape and the marks for screen readers, which ``role=img`` replaces."""
    for child in list(parent):
        _prune(child)
        if child.tag.endswith("}path") and child.get("d", "") in ("", "M0,0h0v0h0Z"):
            parent.remove(child)


def _shorten(element: ElementTree.Element, prefix: str) -> None:
    for name, value in list(element.attrib.items()):
        if name == "class" or name.startswith("aria-") or name == "role" or name == "pointer-events":
            del element.attrib[name]
        elif name == "id":
            element.set(name, f"{prefix}-{value}")
        elif name in ("d", "transform"):
            element.set(name, _LONG_NUMBER.sub(r"\1", value))
        elif name == "font-family":
            del element.attrib[name]  # the style sheet of the page says it once
        elif "url(" in value:
            element.set(name, _REFERENCE.sub(rf"url(#{prefix}-\1)", value))
