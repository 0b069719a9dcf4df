"""Which file of the engine uses which, and which folder of the package: for the picture, and for tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ENGINE = Path(__file__).parents[1] / "engine"
PACKAGE = Path(__file__).parents[1] / "dnsrig"

CRATES = ("core", "dns", "net")
"""The libraries of the engine: ``core`` is ``engine/dnsrig-core``."""
SHARED = (*CRATES, "dataset", "query_stream", "world")
"""The crates and folders below the subcommands, each of which uses only those before it."""
PROGRAM = "dnsrig_engine"
"""The crate of the subcommands."""

ModulePath = tuple[str, ...]

_COMMENT = re.compile(r"//.*")
# The formatter puts the end of an item at the indentation of its start.
_TEST_ITEM = re.compile(r"^( *)#\[cfg\(test\)\]\n(?:\1#.*\n)*(?:\1[^\n{]*;\n|.*?^\1\}\n)", re.MULTILINE | re.DOTALL)
_MODULE = re.compile(r"^(?:pub(?:\([^)]*\))? )?mod (\w+);", re.MULTILINE)
_USE = re.compile(r"^ *(pub(?:\([^)]*\))? )?use ([^;]+);", re.MULTILINE)
_PATH = re.compile(r"(?<![\w:])\w+(?:::\w+)+")


class Module:
    """One file: modules that it declares, what it makes known under names of its own, all paths. Test code is left
    out."""

    def __init__(self, path: ModulePath, file: Path) -> None:
        text = _TEST_ITEM.sub("", _COMMENT.sub("", file.read_text()))
        self.path, self.file = path, file
        self.children: set[str] = set(_MODULE.findall(text))
        self.exports: dict[str, ModulePath] = {}
        self.uses: set[ModulePath] = set()
        for public, tree in _USE.findall(text):
            for name, used in _leaves(tree):
                absolute = self._absolute(used)
                if absolute and public:
                    # A re-export says where a thing is; who uses it says so.
                    self.exports[name] = absolute
                elif absolute:
                    self.uses.add(absolute)
        for words in _PATH.findall(_USE.sub("", text)):
            absolute = self._absolute(tuple(words.split("::")))
            if absolute:
                self.uses.add(absolute)

    def _absolute(self, path: ModulePath) -> ModulePath | None:
        """With the name of its crate first; None outside the engine."""
        if path[0] == "crate":
            return (self.path[0], *path[1:])
        if path[0].startswith("dnsrig_"):
            return path
        base = self.path
        if path[0] == "self":
            return base + path[1:]
        if path[0] in self.children:
            return base + path
        if path[0] != "super":
            return None
        while path and path[0] == "super":
            base, path = base[:-1], path[1:]
        return base + path


def engine_uses(root: Path = ENGINE) -> dict[str, set[str]]:
    """Each file of the engine, and those whose things it uses: ``{"probe/mod.rs": {"net/udp_batch.rs", ...}, ...}``.

    Paths of subcommands begin below their crate, other paths with the short name of the crate.
    """
    program = root / "dnsrig-engine/src"
    sources = {PROGRAM: program} | {f"dnsrig_{crate}": root / f"dnsrig-{crate}/src" for crate in CRATES}
    modules: dict[ModulePath, Module] = {}
    name: dict[ModulePath, str] = {}
    for crate, folder in sources.items():
        short = "" if crate == PROGRAM else crate.removeprefix("dnsrig_")
        for module in _modules((crate,), folder / "lib.rs"):
            modules[module.path] = module
            name[module.path] = Path(short, module.file.relative_to(folder)).as_posix()
    uses = {name[path]: _files(module, modules, name) for path, module in modules.items()}
    return uses | {"main.rs": _files(Module((PROGRAM,), program / "main.rs"), modules, name)}


def package_uses(root: Path = PACKAGE) -> dict[str, set[str]]:
    """Each folder and top file of the Python package, and the other ones that it imports, also inside functions."""
    found: dict[str, set[str]] = {}
    for file, used in package_file_uses(root).items():
        found.setdefault(_part(file), set()).update(map(_part, used))
    return {name: used - {name, "__init__", "__main__"} for name, used in found.items() if not name.startswith("__")}


@cache
def package_file_uses(root: Path = PACKAGE) -> dict[str, set[str]]:
    """Each file of the Python package, and the other ones that it imports, also inside functions and for types
    alone."""
    found: dict[str, set[str]] = {}
    for path in sorted(root.rglob("*.py")):
        names = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                names |= {f"{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
        file = path.relative_to(root).as_posix()
        found[file] = {home for name in names if (home := _file(name, root))} - {file}
    return found


@cache
def _file(name: str, root: Path) -> str:
    """The file of the package that defines ``name``: a module, or something in one; empty: another package's."""
    package, *words = name.split(".")
    for length in range(len(words), 0, -1) if package == root.name else ():
        module = Path(*words[:length])
        for file in (module.with_suffix(".py"), module / "__init__.py"):
            if (root / file).exists():
                return file.as_posix()
    return ""


def _part(file: str) -> str:
    """The folder or top file of the package that ``file`` belongs to."""
    return file.removesuffix(".py").split("/")[0]


def folder(file: str) -> str:
    """The subcommand, or the crate or folder below them, that a file belongs to."""
    return file.removesuffix(".rs").split("/")[0]


def folder_uses(uses: dict[str, set[str]]) -> dict[str, set[str]]:
    """Each folder, and the other ones that it uses."""
    found: dict[str, set[str]] = {folder(file): set() for file in uses}
    for file, used in uses.items():
        found[folder(file)] |= {folder(other) for other in used} - {folder(file)}
    return found


def reached(uses: dict[str, set[str]], start: str) -> set[str]:
    """The files that ``start`` uses, and that those use, and so on."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = uses[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def _modules(path: ModulePath, file: Path) -> Iterator[Module]:
    module = Module(path, file)
    yield module
    folder = file.parent if file.name in ("lib.rs", "mod.rs") else file.with_suffix("")
    for child in sorted(module.children):
        one = folder / f"{child}.rs"
        yield from _modules((*path, child), one if one.exists() else folder / child / "mod.rs")


def _files(module: Module, modules: dict[ModulePath, Module], name: dict[ModulePath, str]) -> set[str]:
    """The other files where what it uses is defined. The root of a crate only lists modules."""
    found = {_home(path, modules) for path in module.uses}
    return {name[path] for path in found if len(path) > 1 and path != module.path}


def _home(path: ModulePath, modules: dict[ModulePath, Module]) -> ModulePath:
    """The module that defines ``path``, past all re-exports."""
    home = path[:1]
    for depth, segment in enumerate(path[1:], 1):
        if (*home, segment) in modules:
            home = (*home, segment)
        elif segment in modules[home].exports:
            return _home(modules[home].exports[segment] + path[depth + 1 :], modules)
        else:
            break
    return home


def _leaves(tree: str, before: ModulePath = ()) -> Iterator[tuple[str, ModulePath]]:
    """``a::{b, c::{self, d as e}}`` as ``b: a::b``, ``c: a::c``, ``e: a::c::d``."""
    depth, item = 0, ""
    for character in f"{tree},":
        depth += (character == "{") - (character == "}")
        if character != "," or depth:
            item += character
            continue
        head, _, rest = item.strip().partition("{")
        words, _, alias = head.partition(" as ")
        path = before + tuple(word for word in words.strip().split("::") if word)
        if rest:
            yield from _leaves(rest[:-1], path)
        elif item.strip():
            path = path[:-1] if path[-1] == "self" and len(path) > 1 else path
            yield alias.strip() or path[-1], path
        item = ""
