"""Opens and writes files of a run, which somebody else may have made.

Each function takes a path and a folder ``inside`` that the path is below, by default its parent. The user chose that
folder, so links may lead to it. Below it no symbolic link is followed: each part of the path is opened below the
descriptor of the one before (openat(2), O_NOFOLLOW). Only regular files are opened: FIFOs, sockets and devices, which
can block or have side effects, are an OSError with a sentence.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pwd
import secrets
import stat
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from dnsrig import foreign

MOST_BYTES = 1 << 31
"""Largest file of rows. Such a file is read as a whole: a reader needs as much memory and more."""
MOST_DOCUMENT_BYTES = 64 << 20
"""Largest JSON document; the manifest of 10,000 variants has some 30 MB."""
MOST_VALUES = 2_000_000
"""Values of a JSON document: each takes up to 100 bytes of memory. A manifest of 10,000 variants has half as many."""
DESCRIPTORS = Path("/dev/fd")
"""Has a name for each file that a process has open (proc_pid_fd(5))."""
_GZIP = 31
"""For zlib: a header of gzip, and the largest window."""
_OF_OTHERS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


def other_owner(folder: Path) -> str:
    """The name of the user whose ``folder`` it is, if that is not the one who executes this; otherwise empty."""
    owner = folder.stat().st_uid
    if owner == os.geteuid():
        return ""
    try:
        return pwd.getpwuid(owner).pw_name
    except KeyError:
        return f"user {owner}"


@contextlib.contextmanager
def opened(path: Path, inside: Path | None = None) -> Iterator[BinaryIO]:
    """``path``, to be read. It may be a descriptor that this process inherited. Raises OSError."""
    if path.parent == DESCRIPTORS:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    else:
        with _folder(path, inside) as folder, _raised_for(path):
            _check_regular(path, os.stat(path.name, dir_fd=folder, follow_symlinks=False))
            handle = os.open(path.name, os.O_RDONLY | _OF_OTHERS, dir_fd=folder)
    with os.fdopen(handle, "rb") as file:
        _check_regular(path, os.fstat(handle))  # it may be another file by now
        yield file


def read(path: Path, inside: Path | None = None, most_bytes: int = MOST_BYTES) -> bytes:
    """The content of ``path``. Raises OSError, also of a file that is larger."""
    with opened(path, inside) as file:
        is_larger = os.fstat(file.fileno()).st_size > most_bytes
        data = b"" if is_larger else file.read(most_bytes + 1)
    if is_larger or len(data) > most_bytes:
        _refuse(path, errno.EFBIG, f"it is larger than {most_bytes / 1e6:,.0f} MB")
    return data


def beginning(path: Path, most_bytes: int, inside: Path | None = None) -> tuple[bytes, bool]:
    """The first ``most_bytes`` of a text, which was compressed if it was large when its trial ended, and whether there
    is more. Nothing if the file cannot be read."""
    try:
        with opened(path, inside) as file:
            data = file.read(most_bytes + 1)
        if path.suffix == ".gz":  # what follows the compressed text is not looked at, as zeros up to a gigabyte
            data = zlib.decompressobj(wbits=_GZIP).decompress(data, most_bytes + 1)
    except (OSError, zlib.error):
        return b"", False
    return data[:most_bytes], len(data) > most_bytes


def document(path: Path, inside: Path | None = None, most_bytes: int = MOST_DOCUMENT_BYTES) -> Any:
    """The JSON document in ``path``. Raises OSError, or ValueError of what dnsrig never writes: a document that is
    nested deeply or has very many values, a number beyond all counters, half of a surrogate pair."""
    return foreign.json_value(read(path, inside, most_bytes), MOST_VALUES)


def names(folder: Path, inside: Path | None = None) -> list[str]:
    """Names of the entries of ``folder``; none if it cannot be read, or is a link."""
    with contextlib.suppress(OSError), _folder(folder / "any", inside or folder.parent) as below:
        handle = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=below)
        try:
            return sorted(os.listdir(handle))  # noqa: PTH208 (of a descriptor)
        finally:
            os.close(handle)
    return []


@contextlib.contextmanager
def writing(path: Path, inside: Path | None = None) -> Iterator[BinaryIO]:
    """A new file that replaces ``path`` at the end: whole or not at all. Folders below ``inside`` are made."""
    with _folder(path, inside, make=True) as folder, _raised_for(path):
        temporary = f".{path.name}.{secrets.token_hex(4)}"
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            os.unlink(temporary, dir_fd=folder)
            raise


def write(path: Path, content: bytes, inside: Path | None = None) -> None:
    """Replace ``path`` by a file with ``content``: whole or not at all."""
    with writing(path, inside) as file:
        file.write(content)


@contextlib.contextmanager
def filling(folder: Path, inside: Path | None = None) -> Iterator[Path]:
    """An empty folder; each file that is written to it replaces the one of its name in ``folder`` at the end. Here
    ``inside`` is by default ``folder`` itself."""
    root = inside or folder
    root.mkdir(parents=True, exist_ok=True)
    with _folder(folder / "any", root, make=True):
        pass  # what cannot be written is refused first
    with tempfile.TemporaryDirectory(dir=root, prefix=".unfinished-") as temporary:
        made = Path(temporary)
        yield made
        for path in sorted(path for path in made.rglob("*") if path.is_file()):
            target = folder / path.relative_to(made)
            with _folder(target, root, make=True) as to, _raised_for(target):
                os.replace(path, target.name, dst_dir_fd=to)


@contextlib.contextmanager
def lock_file(folder: Path) -> Iterator[int]:
    """A descriptor of ``.lock`` in ``folder``, to be locked; the content stays as it is."""
    path = folder / ".lock"
    with _folder(path, None) as below, _raised_for(path):
        handle = os.open(path.name, os.O_RDWR | os.O_CREAT | _OF_OTHERS, 0o666, dir_fd=below)
    try:
        _check_regular(path, os.fstat(handle))
        yield handle
    finally:
        os.close(handle)


@contextlib.contextmanager
def _folder(path: Path, inside: Path | None, *, make: bool = False) -> Iterator[int]:
    """A descriptor of the folder of ``path``; with ``make``, folders below ``inside`` that are missing are made."""
    root = path.parent if inside is None else inside
    handle = os.open(root, _FOLDER)
    try:
        for part in path.parent.relative_to(root).parts:
            with _raised_for(path):
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, dir_fd=handle)
                inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


@contextlib.contextmanager
def _raised_for(path: Path) -> Iterator[None]:
    """An OSError names ``path``: of what is below a descriptor it would name the last part alone."""
    try:
        yield
    except OSError as error:
        if error.filename is not None and Path(error.filename).parent != Path():
            raise
        why = {errno.ELOOP: "it is a symbolic link", errno.ENOTDIR: "one of its folders is a link, or no folder"}
        raise OSError(error.errno, why.get(error.errno or 0, error.strerror), str(path)) from error


def _refuse(path: Path, number: int, why: str) -> NoReturn:
    raise OSError(number, why, str(path))


def _check_regular(path: Path, found: os.stat_result) -> None:
    kinds = {
        stat.S_IFLNK: "a symbolic link",
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a FIFO",
        stat.S_IFSOCK: "a socket",
    }
    if not stat.S_ISREG(found.st_mode):
        kind = kinds.get(stat.S_IFMT(found.st_mode), "a device")
        _refuse(path, errno.EINVAL, f"it is {kind}, and no regular file")
