"""What another machine needs to run dnsrig: the Python packages that are installed here, and the engine."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import dnsrig
from dnsrig import discovery, paths
from dnsrig.errors import DnsrigError
from dnsrig.machines import arrival

COMPILED = "__pycache__"
OURS = "dnsrig"
EXTRA = "dask"


@dataclass(frozen=True)
class Part:
    """Files of a folder, which is named by their hash."""

    name: str
    files: Mapping[str, Path]


def parts() -> list[Part]:
    """Collect two parts, in the order of PYTHONPATH: dnsrig with its engine, which often change, and all others."""
    own = {**_package(OURS, Path(dnsrig.__file__).parent), "bin/dnsrig-engine": paths.engine().resolve()}
    others = {name: path for package in distributions() for name, path in files(package).items()}
    return [Part(arrival.digest(found), found) for found in (own, others)]


def distributions() -> list[metadata.Distribution]:
    """List the packages that dnsrig and the packages with plug-ins require here, without dnsrig itself."""
    from packaging.requirements import Requirement  # Dask requires it

    found: dict[str, metadata.Distribution] = {}
    looked = set[tuple[str, str]]()
    todo = [(OURS, ""), (OURS, EXTRA), *((name, "") for name in discovery.packages())]
    while todo:
        name, extra = todo.pop()
        key = re.sub(r"[-_.]+", "-", name).lower()
        if (key, extra) in looked:
            continue
        looked.add((key, extra))
        package = found[key] = metadata.distribution(name)
        for text in package.requires or []:
            wanted = Requirement(text)
            if wanted.marker is None or wanted.marker.evaluate({"extra": extra}):
                todo += [(wanted.name, one) for one in ("", *wanted.extras)]
    return [package for key, package in sorted(found.items()) if key != OURS]


def files(package: metadata.Distribution) -> dict[str, Path]:
    """Map names, as all packages have them in one folder, to the files of a package."""
    if package.files is None:
        raise DnsrigError(
            f"the files of the package {package.name} are not recorded", hint="install it with pip, in a venv"
        )
    listed = [file for file in package.files if not file.is_absolute() and ".." not in file.parts]
    if not _is_editable(package):
        return {str(file): Path(str(package.locate_file(file))) for file in listed if COMPILED not in file.parts}
    about = {str(f): Path(str(package.locate_file(f))) for f in listed if f.parts[0].endswith(".dist-info")}
    return about | {name: path for module in _modules(package) for name, path in module}


def _is_editable(package: metadata.Distribution) -> bool:
    source = json.loads(package.read_text("direct_url.json") or "{}")
    return bool(source.get("dir_info", {}).get("editable"))


def _modules(package: metadata.Distribution) -> Iterator[Iterator[tuple[str, Path]]]:
    """List the modules that entry points name, of a package whose files are elsewhere."""
    names = sorted({point.value.partition(":")[0].partition(".")[0] for point in package.entry_points})
    if not names:
        raise DnsrigError(
            f"the package {package.name} is installed editable: its files are not known",
            hint="install it without --editable",
        )
    for name in names:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise DnsrigError(f"the package {package.name} has no module {name}", hint="install it again")
        origin = Path(spec.origin)
        single = {f"{name}.py": origin}
        yield iter((_package(name, origin.parent) if spec.submodule_search_locations else single).items())


def _package(name: str, folder: Path) -> dict[str, Path]:
    return {
        str(Path(name, path.relative_to(folder))): path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and COMPILED not in path.parts
    }
