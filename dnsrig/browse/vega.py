"""The program that draws charts in a browser, from vl-convert: made once, without a network, and kept in the cache."""

from __future__ import annotations

import contextlib
from importlib import metadata
from pathlib import Path

from dnsrig import outputs, paths
from dnsrig.report import svg

SNIPPET = "window.vegaEmbed = vegaEmbed;"


def version() -> str:
    """Another one: the bundle is another."""
    return f"{metadata.version('vl-convert-python')}-{svg.VEGA_LITE}"


def bundle() -> str:
    """Vega-Embed with all that it needs, its interpreter of expressions among it; takes 3 s the first time."""
    path = paths.cache() / "browse" / f"vega-{version()}.js"
    with contextlib.suppress(OSError):
        return path.read_text(encoding="utf-8")
    import vl_convert

    text: str = vl_convert.javascript_bundle(SNIPPET, vl_version=svg.VEGA_LITE)
    with contextlib.suppress(OSError):
        _keep(path, text)
    return text


def _keep(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    outputs.write(path, text.encode())
