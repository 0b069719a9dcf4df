"""What a page consists of, as the HTML parser of the standard library sees it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "br", "link", "img", "input", "hr"}


@dataclass
class Facts:
    tags: list[str] = field(default_factory=list)
    attributes: list[tuple[str, str, str]] = field(default_factory=list)
    """(tag, name, value)"""
    texts: list[str] = field(default_factory=list)
    unclosed: list[str] = field(default_factory=list)

    def values(self, name: str) -> list[str]:
        return [value for _, attribute, value in self.attributes if attribute == name]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.facts = Facts()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.facts.tags.append(tag)
        self.facts.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.facts.unclosed.append(tag)

    def handle_data(self, data: str) -> None:
        self.facts.texts.append(data)


def read(html: str) -> Facts:
    reader = _Reader()
    reader.feed(html)
    reader.close()
    reader.facts.unclosed += reader.open
    return reader.facts


def without_drawings(html: str) -> str:
    return re.sub(r"<(svg|style)\b.*?</\1>", "", html, flags=re.DOTALL)


def lines(html: str) -> str:
    """The text of a page without its drawings, each piece on a line of its own."""
    pieces = (" ".join(piece.split()) for piece in read(without_drawings(html)).texts)
    return "".join(f"{piece}\n" for piece in pieces if piece)


def parts(html: str) -> dict[str, str]:
    """Each heading of a page, and what is below it, without drawings; what is above all headings has none."""
    first, *others = without_drawings(html).split("<h2>")
    return {"": first} | {heading: below for heading, _, below in (other.partition("</h2>") for other in others)}
