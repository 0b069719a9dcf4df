"""A file of machines that are reached over SSH: what each is called, and how ssh gets there."""

from __future__ import annotations

import difflib
import tomllib
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from dnsrig import foreign
from dnsrig.errors import UsageError
from dnsrig.rundir import NAME, MachineSpec

SUFFIX = ".toml"


def _absolute(path: str) -> str:
    if path and not path.startswith("/"):
        raise ValueError("it begins with /, as it is a folder of that machine")
    return path


def _no_option(destination: str) -> str:
    if destination.startswith("-") or len(destination.split()) != 1:
        raise ValueError("it is one word, as ssh takes it")
    return destination


class MachineDocument(BaseModel):
    """One machine."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ssh: Annotated[str, AfterValidator(_no_option)]
    """Destination for ssh: a name, user@name, ssh://user@name:port, or a Host of its configuration."""
    python: str = Field("python3", min_length=1)
    """Command that starts Python there, as its shell understands it."""
    cache: Annotated[str, AfterValidator(_absolute)] = ""
    """Folder there for what is brought; empty: dnsrig's default."""


class Document(BaseModel):
    """A file of machines."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    config: str = ""
    """Name of a configuration of ssh beside this file, which replaces the user's."""
    machines: dict[Annotated[str, Field(pattern=f"^{NAME}$")], MachineDocument] = Field(min_length=1)


def read(path: Path) -> Document:
    """Read a file of machines. Raises UsageError if it is something else."""
    try:
        document = Document.model_validate(foreign.toml(foreign.text(path)))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", hint="--on needs a file of machines") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from error
    except foreign.Refused as error:
        raise UsageError(f"{path} is not a file of machines: {error}") from error
    except ValidationError as error:
        raise _explained(error, path) from error
    names = dict[MachineDocument, str]()
    for name, machine in document.machines.items():
        place = machine.model_copy(update={"python": ""})
        if other := names.get(place):
            raise UsageError(
                f"{path}: {other} and {name} are the same machine, so trials would disturb each other",
                hint="name it once",
            )
        names[place] = name
    config = str(path.parent.resolve() / document.config) if document.config else ""
    return document.model_copy(update={"config": config})


def named(names: list[str], file: Path | None) -> dict[str, MachineSpec]:
    """Find the machines of an experiment in the user's file. Raises UsageError if one is missing."""
    if file is None:
        raise UsageError(
            f"the experiment needs the machine {names[0]}, whose address is not known",
            hint="name a file of machines: --machines machines.toml",
        )
    known = read(file)
    if missing := [name for name in names if name not in known.machines]:
        raise UsageError(
            f"{file} has no machine {missing[0]}",
            hint=f"it has: {', '.join(known.machines)}; write [machines.{missing[0]}]",
        )
    return {name: MachineSpec(**known.machines[name].model_dump(), config=known.config) for name in names}


def _explained(error: ValidationError, path: Path) -> UsageError:
    """Explain the first problem in one sentence."""
    first = error.errors()[0]
    location = [str(part) for part in first["loc"] if part != "[key]"]
    where = ".".join(location)
    known = [*(MachineDocument if len(location) == 3 else Document).model_fields]
    if first["type"] == "extra_forbidden":
        close = difflib.get_close_matches(location[-1], known, 1, cutoff=0.5)
        hint = f"did you mean {close[0]}?" if close else f"known keys: {', '.join(known)}"
        return UsageError(f"{path}: unknown key {where}", hint=hint)
    if first["type"] == "missing":
        hint = 'write [machines.NAME] and below it ssh = "root@…"'
        return UsageError(f"{path}: the key {where} is missing", hint=hint)
    said = str(first["msg"]).removeprefix("Value error, ")
    return UsageError(f"{path}: {where} = {first['input']!r}: {said[0].lower()}{said[1:]}")
