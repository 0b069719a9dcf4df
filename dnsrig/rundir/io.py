"""Reading and writing the documents of a run."""

from __future__ import annotations

import shlex
from itertools import chain
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from dnsrig import files
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.rundir.base import SCHEMA_VERSION, SEARCH_FILE

Model = TypeVar("Model", bound=BaseModel)


def write_json(path: Path, record: BaseModel) -> None:
    """Write ``record`` to ``path``, whole or not at all."""
    files.write(path, f"{record.model_dump_json(indent=2)}\n".encode())


class NewerSchema(DnsrigError):
    """A newer dnsrig wrote the document: this one would misread it."""


def read_json(
    path: Path,
    model: type[Model],
    *,
    version: tuple[str, int] = ("schema_version", SCHEMA_VERSION),
    where_from: str = "is this a run directory of dnsrig?",
    inside: Path | None = None,
) -> Model:
    """Read the document ``path`` as ``model``. Raises DnsrigError if it is missing, damaged or newer.

    ``version``: the key of its version, and the newest known version; ``where_from``: a hint for a missing file;
    ``inside``: the folder below which no link is followed, by default the parent.
    """
    try:
        data = files.document(path, inside)
    except FileNotFoundError as error:
        raise DnsrigError(f"{path} does not exist", hint=where_from) from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise DnsrigError(f"{path} cannot be read: {why}") from error
    key, newest = version
    found = data.get(key) if isinstance(data, dict) else None
    if isinstance(found, int) and found > newest:
        raise NewerSchema(
            f"{path} was written by a newer dnsrig ({key.removesuffix('_version')} {found}; this one reads up to {newest})",
            hint="update dnsrig to read it",
        )
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise DnsrigError(f"{path} is not what dnsrig writes: {where}: {first['msg']}") from error


def trial_dir(run_dir: Path, variant: str, repeat: int) -> Path:
    return run_dir / "trials" / variant / f"{repeat:02d}"


def check_ours(run_dir: Path) -> None:
    """Refuse to write into a run that belongs to another user, or in which a folder of trials is a link."""
    if owner := files.other_owner(run_dir):
        raise UsageError(
            f"{run_dir} belongs to {owner}: dnsrig writes nothing into it",
            hint=f"copy it first: cp -r {shlex.quote(str(run_dir))} COPY",
        )
    trials = run_dir / "trials"
    for folder in chain([trials], trials.glob("*"), trials.glob("*/*")):  # none is opened before it was looked at
        if folder.is_symlink() or (folder.is_dir() and files.other_owner(folder)):
            raise UsageError(
                f"{folder} is a link, or belongs to another user: dnsrig writes nothing into it",
                hint="put a folder of your own there",
            )


def resume_command(run_dir: Path) -> str:
    """The command that continues the run."""
    return f"dnsrig {'bisect' if (run_dir / SEARCH_FILE).exists() else 'run'} --resume {run_dir}"
