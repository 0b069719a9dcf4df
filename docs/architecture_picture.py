"""Draws docs/pictures/architecture.svg from the imports of the package and the engine: `make docs`."""

from __future__ import annotations

import re
import textwrap
from html import escape
from pathlib import Path

import architecture
from architecture import CRATES, ENGINE, PACKAGE, SHARED

WIDTH, MARGIN = 1000, 20
ROW, BOX, BAR = 74, 46, 44
CONTRACT = "rundir"
FONT = 'font-family="Helvetica, Arial, sans-serif"'
BLUE, GREEN, GREY = ("#e3eefc", "#3b6fb5"), ("#e6f4e6", "#3f8a3f"), ("#f2f2f2", "#888888")


def draw() -> str:
    package, height = _package(60)
    boundary = _boundary(height)
    engine, height = _engine(height + 74)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" {FONT}>\n'
        "<title>The parts of dnsrig and what each uses, drawn from the imports</title>\n"
        '<defs><marker id="end" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto">'
        '<path d="M0,0 L9,4 L0,8 z" fill="#555555"/></marker></defs>\n'
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>\n'
        + "\n".join([*package, *boundary, *engine])
        + "\n</svg>\n"
    )


def indispensable(uses: dict[str, set[str]]) -> dict[str, set[str]]:
    """``uses`` without what follows from the rest: where a uses b and b uses c, not that a uses c, too."""
    through = {
        name: {far for other in used for far in architecture.reached(uses, other)} for name, used in uses.items()
    }
    return {name: used - through[name] for name, used in uses.items()}


def layers(uses: dict[str, set[str]]) -> list[list[str]]:
    """The names, each below all that use it; in a layer in the order of those above, so that few arrows cross."""
    left = dict(uses)
    found: list[list[str]] = []
    while left:
        top = [name for name in left if not any(name in used for used in left.values())]
        assert top, f"a circle of imports among {', '.join(sorted(left))}"
        above = {name: i for i, name in enumerate(found[-1])} if found else {}
        users = {name: [above[user] for user in above if name in uses[user]] or [0] for name in top}
        found.append(sorted(top, key=lambda name: (sum(users[name]) / len(users[name]), name)))
        left = {name: used for name, used in left.items() if name not in top}
    return found


def _package(top: int) -> tuple[list[str], int]:
    """The folders of the package, and the contract between their two sides. Other top files are for all of them, and
    left out."""
    uses = architecture.package_uses()
    shown = {name for name in uses if (PACKAGE / name).is_dir()} | {CONTRACT}
    arrows = indispensable({name: used & shown for name, used in uses.items() if name in shown})
    says = _purposes()
    parts = [
        _heading(
            top - 34, "The rig, in Python: dnsrig/", "an arrow: imports that one, and perhaps what that one imports"
        )
    ]
    places: dict[str, tuple[float, int]] = {}
    wide: dict[str, float] = {}
    for row, names in enumerate(layers(arrows)):
        step = (WIDTH - 2 * MARGIN) / len(names)
        for i, name in enumerate(names):
            places[name] = (MARGIN + step * (i + 0.5), top + row * ROW)
            wide[name] = min(430, step - 10)
    for name, used in sorted(arrows.items()):
        for other in sorted(used):
            (x, y), (to_x, to_y) = places[name], places[other]
            parts.append(
                f'<path d="M{x:g},{y + BOX} C{x:g},{y + ROW - 6} {to_x:g},{to_y - 28} {to_x:g},{to_y - 1}" '
                'fill="none" stroke="#555555" stroke-width="1.3" marker-end="url(#end)"/>'
            )
    for name, (x, y) in sorted(places.items()):
        parts += _box(x - wide[name] / 2, y, wide[name], BOX, name, says[name], GREY if name == CONTRACT else BLUE)
    return parts, max(y for _, y in places.values()) + BOX + 30


def _engine(top: int) -> tuple[list[str], int]:
    """The subcommands side by side, what lies below them as bars, and a dot where a subcommand uses a bar."""
    uses = architecture.folder_uses(architecture.engine_uses())
    commands = sorted(set(uses) - {*SHARED, "lib", "main"})
    bars = [name for name in reversed(SHARED) if name in uses]
    step = (WIDTH - 2 * MARGIN) / len(commands)
    first = top + BOX + 24
    parts = [_heading(top - 34, "The engine, in Rust: engine/", "a dot: the subcommand above uses it")]
    for i, name in enumerate(commands):
        x = MARGIN + step * (i + 0.5)
        dots = [first + row * (BAR + 22) - 11 for row, bar in enumerate(bars) if bar in uses[name]]
        parts.append(f'<path d="M{x:g},{top + BOX - 12} V{max(dots, default=top)}" stroke="#777777"/>')
        for y in dots:
            parts.append(f'<circle cx="{x:g}" cy="{y}" r="4.5" fill="{GREEN[1]}"/>')
            parts.append(f'<path d="M{x:g},{y} v11" stroke="{GREEN[1]}" stroke-width="2"/>')
        parts += _box(x - step / 2 + 3, top, step - 6, BOX - 12, name, "", GREEN)
    for row, name in enumerate(bars):
        used = ", ".join(other for other in bars if other in uses[name])
        says = first_sentence(name) + (f" Uses {used}." if used else " Uses none of the others.")
        parts += _box(MARGIN, first + row * (BAR + 22), WIDTH - 2 * MARGIN, BAR, label(name), says, GREEN)
    return parts, first + len(bars) * (BAR + 22) + 4


def _boundary(y: int) -> list[str]:
    text = "the boundary: processes. Arguments go down; JSON lines and files of rows come up."
    line = f'<path d="M{MARGIN},{y + 6} H{WIDTH - MARGIN}" stroke="#888888" stroke-dasharray="6 5"/>'
    return [line, f'<text x="{WIDTH / 2:g}" y="{y}" font-size="12" text-anchor="middle" fill="#333333">{text}</text>']


def _heading(y: int, text: str, more: str) -> str:
    bold = f'<tspan font-weight="bold">{escape(text)}</tspan>'
    return f'<text x="{MARGIN}" y="{y + 14}" font-size="14" fill="#222222">{bold}<tspan dx="14" font-size="11">{escape(more)}</tspan></text>'


def _box(x: float, y: float, width: float, height: float, name: str, says: str, colours: tuple[str, str]) -> list[str]:
    fill, stroke = colours
    lines = textwrap.wrap(says, int(width / 5.3), max_lines=2, placeholder=" …")
    rect = f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5" fill="{fill}" stroke="{stroke}"/>'
    middle = x + width / 2
    first = y + height / 2 + 4.5 - 6 * len(lines)
    label = f'<text x="{middle:g}" y="{first:g}" font-size="13" font-weight="bold" text-anchor="middle" fill="#222222">{name}</text>'
    return [rect, label] + [
        f'<text x="{middle:g}" y="{first + 13 * (n + 1):g}" font-size="11" text-anchor="middle" fill="#333333">{escape(line)}</text>'
        for n, line in enumerate(lines)
    ]


def _purposes() -> dict[str, str]:
    """What the package's docstring says of its folders."""
    text = (PACKAGE / "__init__.py").read_text()
    return {name: says.strip() for name, says in re.findall(r"^- ``(\w+)`` +(.+)$", text, re.MULTILINE)}


def label(module: str) -> str:
    """The name of a folder of the engine; a crate has its full name."""
    return f"dnsrig-{module}" if module in CRATES else module


def source(module: str) -> Path:
    """The file that declares a crate or a folder of the engine."""
    if module in CRATES:
        return ENGINE / f"dnsrig-{module}/src/lib.rs"
    return ENGINE / "dnsrig-engine/src" / module / "mod.rs"


def first_sentence(folder: str) -> str:
    """The first sentence of the comment at the top of a crate or a folder of the engine."""
    lines = [
        line.removeprefix("//!").strip() for line in source(folder).read_text().splitlines() if line.startswith("//!")
    ]
    text = " ".join(lines[: lines.index("")] if "" in lines else lines)
    return re.sub(r"\[`?([^`\]]+)`?\](\([^)]*\))?", r"\1", text.split(". ")[0].rstrip(".") + ".")


if __name__ == "__main__":
    print(draw(), end="")
