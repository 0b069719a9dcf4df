"""Zones that are transferred once from a server, and kept (docs/how-to/own-zones.md).

A copy is kept in the cache by server and zone, and is named after its serial. Before it is used again, the server is
asked for the zone's SOA record: only a newer serial is transferred. The zones are then zones of the user's own files.
The copy before the newest stays, because another process may still read it.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from dnsrig import cached, checksums, paths
from dnsrig.datasets import files
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.rundir import Scalar

DESCRIPTION = "zones of your own, transferred once from a server that you may ask"
DEFAULTS: dict[str, Scalar] = {
    "from": "",
    "zones": "",
    "key": "",
    "tls": False,
    "ca": "",
    "server_name": "",
    "pin": "",
    "largest_mb": 2_000,
    "version": 0,
    "changed_share": 0.01,
    "unsigned_changes": False,
    "catalog_schema": 2,
}
RANGES = {**files.RANGES, "largest_mb": (1, 1_000_000)}
PLACES = {"key": "path", "ca": "path", "zones": "names"}
ZONES_MOST = 1_000
"""Most zones: each is one run of `transfer`."""
TRANSFER_LIMIT_S = 7_200.0
"""Most time for one zone, as for BIND (max-transfer-time-in)."""
ENDPOINT = re.compile(
    r"\[(?P<v6>[\da-fA-F:.]+)\](:(?P<port6>\d{1,5}))?|(?P<v4>[\d.]+)(:(?P<port4>\d{1,5}))?|(?P<plain>[\da-fA-F:.]+)"
)
KEY_BYTES_MOST = 65_536
KEY_LINE = re.compile(r"^#?\s*(?P<algorithm>hmac-[\w-]+):(?P<name>[^:\s]+):(?P<secret>[\w+/=]+)\s*$", re.MULTILINE)
"""As `transfer --tsig` has it; also the first line of what Knot DNS's `keymgr -t` prints."""
KEY_CLAUSE = re.compile(r'\bkey\s+"?(?P<name>[^"\s{]+)"?\s*\{(?P<body>[^}]*)\}')
"""As `tsig-keygen` prints it, for named.conf."""
KEY_WORD = r'\b{}:?\s+"?([^"\s;]+)"?'
"""A setting of named.conf, nsd.conf or knot.conf."""
ANSWERS: Mapping[str, tuple[str, str]] = {
    "refused": ("{server} refuses to transfer {zone}", "allow it there (allow-transfer, provide-xfr, acl), or give the key"),
    "notauth": ("{server} is not authoritative for {zone}, or has no such zone", "look at its configuration and its log"),
    "servfail": ("{server} answers SERVFAIL for {zone}", "its zone may be expired, or its limit of transfers is reached"),
    "tsig-error": ("{server} does not accept the key", "name, algorithm and secret must be equal on both sides, and the clocks"),
    "tsig-wrong": ("the answers of {server} for {zone} have a wrong signature", "the secret must be equal on both sides"),
    "tsig-missing": ("{server} does not sign its answers for {zone}", "give the key to the server, or leave dataset.key out"),
    "no-connection": ("nothing listens at {server}", "check address and port, and firewalls on the way"),
    "tls-failed": ("the TLS handshake with {server} failed", "check dataset.ca, server_name or pin, and the port"),
    "timed-out": ("{server} did not answer in time for {zone}", "check address and port, and firewalls on the way"),
    "limit-exceeded": (
        "{zone} is larger than {largest_mb} MB",
        "raise dataset.largest_mb, the limit of a zone in bytes on the wire",
    ),
    "soa-missing": ("{server} answers without a zone {zone}", "check the name of the zone"),
}  # fmt: skip
"""Outcome of a transfer -> sentence and hint."""
CUT = ("cut", "closed", "reset", "stalled", "no-progress", "too-long", "abandoned")
_allowed: set[str] = set()


def allow(addresses: Iterable[str]) -> None:
    """Note the addresses that the user may ask (`--i-am-authorized`)."""
    _allowed.update(addresses)


def arguments(parameters: Mapping[str, Scalar]) -> list[str]:
    return files.arguments(_of_files(parameters))


def following(parameters: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """The parameters of the next version, which dnsrig makes from the copies."""
    return {**parameters, "version": int(parameters["version"]) + 1}


def _of_files(parameters: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """The parameters that zones of the user's own files have, too."""
    return {name: parameters.get(name, default) for name, default in files.DEFAULTS.items()}


def size(parameters: Mapping[str, Scalar]) -> tuple[int, int]:
    """Contacts nobody: the records of the kept copies are counted."""
    zones, nbytes = _zones(parameters), 0
    _address(parameters)
    _check_key(str(parameters["key"]))
    for zone in zones:
        if (copy := _kept(_folder(parameters, zone))) is not None:
            nbytes += copy.stat().st_size
    return len(zones), nbytes // files.BYTES_PER_RECORD


def listed(parameters: Mapping[str, Scalar]) -> Iterator[str]:
    """A line for each zone, as `generate files --list` reads it."""
    for zone, copy, _ in _copies(_source(parameters)):
        yield f"{zone}\t{copy}\n"


def identity(parameters: Mapping[str, Scalar]) -> list[object]:
    """What the dataset depends on: the names and the contents of its zones, wherever they come from."""
    copies = _copies(_source(parameters))
    found: list[object] = [parameters["catalog_schema"], [(zone, digest) for zone, _, digest in copies]]
    if parameters["version"]:
        found += [parameters[name] for name in ("version", "changed_share", "unsigned_changes")]
    return found


def _source(parameters: Mapping[str, Scalar]) -> str:
    """What decides which copies are used."""
    names = DEFAULTS.keys() - files.DEFAULTS.keys()
    return json.dumps({name: value for name, value in sorted(parameters.items()) if name in names})


@cache
def _copies(parameters: str) -> list[tuple[str, Path, str]]:
    """(zone, newest copy, digest of its content) of each zone; the server is asked once in a process."""
    chosen = json.loads(parameters)
    return [(zone, *_newest(chosen, zone)) for zone in _zones(chosen)]


def _zones(parameters: Mapping[str, Scalar]) -> list[str]:
    names = [name.lower().rstrip(".") or "." for name in re.split(r"[\s,]+", str(parameters["zones"])) if name]
    if not names:
        raise UsageError("dataset.zones is missing", hint='name the zones to transfer, e.g. zones = ["example.org"]')
    if len(names) > ZONES_MOST:
        raise UsageError(
            f"dataset.zones has {len(names):,} zones, more than {ZONES_MOST:,}",
            hint="transfer them with `dnsrig transfer --write`, and use the files",
        )
    return list(dict.fromkeys(names))


def _address(parameters: Mapping[str, Scalar]) -> str:
    """The address in ``from``. Raises UsageError if it is none."""
    text = str(parameters["from"])
    try:
        if (match := ENDPOINT.fullmatch(text)) is None:
            raise ValueError
        if not 0 < int(match["port6"] or match["port4"] or 53) < 65_536:
            raise ValueError
        return str(ipaddress.ip_address(match["v6"] or match["v4"] or match["plain"]))
    except ValueError:
        raise UsageError(
            f"dataset.from = {text!r} is not an IP address with an optional port",
            hint='e.g. from = "192.0.2.1", "192.0.2.1:5300" or "[2001:db8::1]:5300"',
        ) from None


def _folder(parameters: Mapping[str, Scalar], zone: str) -> Path:
    """Folder of the copies of a zone of a server, which may not exist yet. With another key the server may show another
    view."""
    text = json.dumps([parameters["from"], parameters["tls"], parameters["key"], zone])
    return paths.cache() / "transferred" / hashlib.sha256(text.encode()).hexdigest()[:16]


def _kept(folder: Path) -> Path | None:
    """The newest copy in ``folder``."""
    return max(folder.glob("*.zone"), key=lambda copy: copy.stat().st_mtime_ns, default=None)


def _newest(parameters: Mapping[str, Scalar], zone: str) -> tuple[Path, str]:
    """The copy of ``zone`` with the serial that the server has now, and the digest of its content."""
    folder = _folder(parameters, zone)
    with cached.locked(folder):
        copy = _kept(folder)
        if copy is None or not _is_current(parameters, zone, int(copy.stem)):
            copy = _fetch(parameters, zone, folder, copy)
        return copy, checksums.sha256(copy)


def _fetch(parameters: Mapping[str, Scalar], zone: str, folder: Path, before: Path | None) -> Path:
    """Transfer the zone; its copy is the newest in ``folder`` then, and only ``before`` stays beside it."""
    with tempfile.TemporaryDirectory(dir=folder) as made:
        largest = f"--bytes-max={int(parameters['largest_mb']) * 1_000_000}"
        outcome, said = _transfer(parameters, zone, f"--write={made}", largest)
        written = next(Path(made).glob("*.zone"), None)
        if outcome != "done" or written is None:
            raise _why(parameters, zone, outcome, said)
        with written.open() as text:
            serial = int(text.readline().split()[6])
        for old in folder.glob("*.zone"):
            if old != before:
                old.unlink()
        return written.replace(folder / f"{serial}.zone")


def _is_current(parameters: Mapping[str, Scalar], zone: str, serial: int) -> bool:
    """Whether the server has no newer serial. A newer zone is not transferred here: it ends at its second record."""
    outcome, said = _transfer(parameters, zone, f"--ixfr={serial}", "--soa=same", "--records-max=1")
    if outcome in ("up-to-date", "limit-exceeded", "done", "serial-backwards"):
        return outcome == "up-to-date"
    raise _why(parameters, zone, outcome, said)


def _transfer(parameters: Mapping[str, Scalar], zone: str, *more: str) -> tuple[str, str]:
    """(outcome, standard error) of a `transfer` of one zone."""
    with _key_file(str(parameters["key"])) as key:
        words = [str(paths.engine()), "transfer", str(parameters["from"]), f"--zone={zone}", "--json", "--retries=1"]
        words += [f"--tsig-file={key}"] if key else []
        words += _tls(parameters) if parameters["tls"] else []
        address = _address(parameters)
        words += [f"--i-am-authorized={address}"] if address in _allowed else []
        try:
            ended = subprocess.run(
                [*words, *more], capture_output=True, text=True, check=False, timeout=TRANSFER_LIMIT_S
            )
        except subprocess.TimeoutExpired:
            return "too-long", ""
    last = ended.stdout.splitlines()[-1:] or ["{}"]
    summary: dict[str, Any] = json.loads(last[0])
    return next(iter(summary.get("outcomes", {})), ""), ended.stderr


def _tls(parameters: Mapping[str, Scalar]) -> list[str]:
    words = ["--transport=xot"]
    if parameters["pin"]:
        words += ["--verify=pin", f"--pin={parameters['pin']}"]
    elif parameters["ca"]:
        words += ["--verify=ca", f"--ca={parameters['ca']}"]
    return words + ([f"--server-name={parameters['server_name']}"] if parameters["server_name"] else [])


def _why(parameters: Mapping[str, Scalar], zone: str, outcome: str, said: str) -> DnsrigError:
    """The error for the outcome of a transfer; without one, the engine refused its arguments, and said why."""
    server = str(parameters["from"])
    if not outcome:
        sentence, hint = ([*said.strip().splitlines(), "", ""])[:2]
        return UsageError(sentence.partition(": ")[2] or "the transfer failed", hint=hint.removeprefix("hint: "))
    sentence, hint = ANSWERS.get(outcome, (f"the transfer of {{zone}} from {{server}} ended as {outcome}", ""))
    if outcome in CUT:
        sentence, hint = (
            "the transfer of {zone} from {server} broke off",
            "look at its log and its limits, and try again",
        )
    values = {"server": server, "zone": zone, "largest_mb": f"{int(parameters['largest_mb']):,}"}
    return DnsrigError(sentence.format_map(values), hint=hint or "see `dnsrig transfer --help`")


def _check_key(file: str) -> None:
    if file:
        read_key(Path(file))


@contextmanager
def _key_file(file: str) -> Iterator[str]:
    """A file that only this user can read, with the key as the engine takes it; empty without a key."""
    if not file:
        yield ""
        return
    with tempfile.NamedTemporaryFile("w", prefix="dnsrig-key-") as made:
        made.write(read_key(Path(file)))
        made.flush()
        yield made.name


def read_key(path: Path) -> str:
    """The TSIG key in a file, as ``ALGORITHM:NAME:SECRET``.

    The file has this line, or the key as it is in named.conf, nsd.conf or knot.conf. Raises UsageError, which never
    repeats the secret, if it has none or several.
    """
    hint = "write one line ALGORITHM:NAME:SECRET, or keep the output of `tsig-keygen NAME`"
    try:
        text = path.read_bytes()[:KEY_BYTES_MOST].decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"dataset.key: {path} cannot be read: {getattr(error, 'strerror', 'not text')}", hint=hint
        ) from None
    lines = list(KEY_LINE.finditer(text))
    if len(lines) == 1:
        return ":".join(lines[0].group("algorithm", "name", "secret"))
    clauses = list(KEY_CLAUSE.finditer(text))
    body, names = (clauses[0]["body"], [clauses[0]["name"]]) if clauses else (text, _words("(?:id|name)", text))
    algorithms, secrets = _words("algorithm", body), _words("secret", body)
    if len(clauses) > 1 or not len(names) == len(algorithms) == len(secrets) == 1:
        raise UsageError(f"dataset.key: {path} does not have exactly one TSIG key", hint=hint)
    return f"{algorithms[0].lower()}:{names[0]}:{secrets[0]}"


def _words(name: str, text: str) -> list[str]:
    return re.findall(KEY_WORD.format(name), text)
