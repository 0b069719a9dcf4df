"""Experiments on a server that runs already: what they may ask for, and who may load it.

All hosts of such a trial use the network of the machine. Nothing is made for them, so no root is needed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from ipaddress import ip_address
from types import ModuleType
from typing import Any

from dnsrig import discovery
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.experiment.model import Document, HostDocument, axis_path
from dnsrig.lab import addresses
from dnsrig.procedures import HostRole, all_procedures
from dnsrig.rundir import Address, DatasetSpec, Family, HostSpec, ServerSource, TrialSpec
from dnsrig.servers import running, sources

UNKNOWN_DATASET = DatasetSpec(kind="unknown", key="", zones=0, records=0, serial=0)
"""The dataset of a server whose zones the user does not name."""
QPS_MOST = 100
"""Queries a second to an address outside the rig, unless the user names a rate: as `load` has it."""
RATES = {"rate_qps": 100.0, "ramp_start_qps": 100.0, "ramp_most_qps": 100.0, "flood_qps": 100.0}
"""Options for a rate, and what they are at most unless the user names them."""
NEEDS_ROOT = (
    "without root: the generator has no priority in real time, idle CPUs may sleep, and other trials on this machine are"
    " not noticed"
)


def is_running(server: str | None) -> bool:
    """Whether ``server``, as an experiment names it, runs already."""
    return server is not None and server.partition("@")[0] == running.RUNNING.kind


def under_test(document: Document, roles: Mapping[str, HostRole]) -> str | None:
    """The host under test if its server runs already; otherwise None. Raises UsageError if another host has one."""
    for name, role in roles.items():
        said = document.hosts.get(role.inherits or name)
        if said is None or not is_running(said.server):
            continue
        if not role.under_test:
            raise UsageError(
                f"hosts.{name}.server = {said.server!r}: only the server under test can be one that runs already",
                hint="dnsrig cannot give it zones, or know what it serves",
            )
        return name
    return None


def roles(document: Document, kind: ModuleType, wanted: Mapping[str, HostRole], subject: str) -> dict[str, HostRole]:
    """The hosts that remain: the server under test, and the hosts of instruments. Raises UsageError on what a running
    server does not allow."""
    _check_procedure(kind)
    _check_document(document, subject)
    for name, said in document.hosts.items():
        if name in wanted:
            _check_host(name, said, wanted[name], is_subject=name == subject)
    return {name: role for name, role in wanted.items() if role.role is None or name == subject}


def place(server: ServerSource | None, said: HostDocument, subject: bool, family_of: Address) -> dict[str, Any]:
    """The fields of a `HostSpec` that describe where a host is."""
    if not subject or server is None:
        return {"network": "machine", "address": str(addresses.unspecified(family_of))}
    found = running.parse(server.source)
    where = {"machine": watched(said)} if said.watch else {}
    return {"network": "machine", "address": str(found.address), "ports": dict(found.ports), **where}


def watched(said: HostDocument) -> str | None:
    """The machine that is sampled because a running server is on it."""
    return said.watch.removeprefix("ssh:") or None


def address_of(document: Document, subject: str) -> Address:
    _, source = sources.parse(str(document.hosts[subject].server))
    return running.parse(source).address


def family(hosts: Mapping[str, HostSpec]) -> Family:
    """The address family of the running server among ``hosts``."""
    address = next(host.address for host in hosts.values() if host.server is not None)
    return "ipv4" if ip_address(address).version == 4 else "ipv6"


def _check_procedure(kind: ModuleType) -> None:
    if getattr(kind, "OF_RUNNING_SERVER", False):
        return
    able = [name for name, each in all_procedures().items() if getattr(each, "OF_RUNNING_SERVER", False)]
    raise UsageError(
        f"the procedure {discovery.name_of(kind)} starts, stops or changes the server, so it cannot have one that runs"
        " already",
        hint=f"procedures for a running server: {', '.join(able)}",
    )


def _check_document(document: Document, subject: str) -> None:
    if document.path is not None:
        raise UsageError(
            f"[path] emulates links between hosts that dnsrig makes, and hosts.{subject} runs already",
            hint="leave [path] out; `dnsrig link` can delay packets to a server by hand",
        )
    if document.kernel not in ("auto", "running"):
        raise UsageError(
            f'kernel = "{document.kernel}": hosts.{subject} runs already, under another kernel',
            hint='set kernel = "running"',
        )


def _check_host(name: str, said: HostDocument, role: HostRole, *, is_subject: bool) -> None:
    """Refuse what dnsrig can only do for a host that it makes."""
    if role.role is not None and not is_subject:
        if said.server is None:
            return
        raise UsageError(
            f"hosts.{name}: the running server has its own sources of zones and answers",
            hint=f"leave hosts.{name} out",
        )
    impossible = [
        field
        for field in HostDocument.model_fields
        if field not in _allowed(is_subject)
        and getattr(said, field) != HostDocument.model_fields[field].get_default(call_default_factory=True)
    ]
    if impossible:
        why = "the server runs already, and dnsrig changes nothing of it" if is_subject else "it is no host of its own"
        raise UsageError(
            f"hosts.{name}.{impossible[0]}: {why}",
            hint=f"leave it out; possible here: {', '.join(_allowed(is_subject))}",
        )


def _allowed(is_subject: bool) -> tuple[str, ...]:
    return ("server", "watch") if is_subject else ("cpus",)


def authorize(specs: Iterable[TrialSpec], vouched: Collection[str], named: Collection[str]) -> None:
    """Refuse servers that the user may not load, and mark those that the user vouched for.

    ``vouched``: addresses of `--i-am-authorized`; ``named``: options that the user set. Rates that the user did not
    name are lowered to `QPS_MOST`.
    """
    may = {ip_address(text) for text in vouched}
    specs = list(specs)
    if len({spec.runs_already for spec in specs}) > 1:
        raise UsageError(
            "a run has either servers that dnsrig starts or servers that run already: they are asked over different"
            " networks, so a difference could have that cause",
            hint="make two runs; `dnsrig compare` lists what differs between them",
        )
    for spec in specs:
        for name, host in spec.hosts.items():
            if host.network == "machine" and host.server is not None and not is_free(ip_address(host.address)):
                if ip_address(host.address) not in may:
                    raise UsageError(
                        f"hosts.{name}: {host.address} is neither loopback nor in the ranges kept for benchmarks",
                        hint=f"if you may load that address, confirm it: --i-am-authorized {host.address}",
                    )
                host.authorized = True
                _cap(spec, named)


def is_free(address: Address) -> bool:
    """Whether no permission is needed. The engine also refuses addresses for benchmarks that leave the machine."""
    return address.is_loopback or any(
        address in part for part in (addresses.BENCHMARKS.ipv4, addresses.BENCHMARKS.ipv6)
    )


def _cap(spec: TrialSpec, named: Collection[str]) -> None:
    options = spec.options
    searches = "rate_qps" not in options
    for name, most in RATES.items():
        if name not in options or name in named:
            continue
        if name == "ramp_most_qps" and searches:
            raise UsageError(
                "a search for the capacity of a server outside the rig needs a highest rate that you name",
                hint="--set options.ramp_start_qps=100 --set options.ramp_most_qps=1000",
            )
        # 0 is a share of the capacity, which only a search finds.
        options[name] = min(float(options[name]) or most, most)
    if "speed" in options and "speed" not in named:
        raise UsageError(
            "a replay against a server outside the rig needs a speed that you name",
            hint="--set options.speed=1 sends the stream at its own rate",
        )


def all_identified(servers: Mapping[str, ServerSource], specs: Sequence[TrialSpec]) -> dict[str, ServerSource]:
    """``servers``, those that run already with the version that they report, also in ``specs``.

    Raises DnsrigError if such a server answers over none of the transports that the run needs.
    """
    found, asked = dict(servers), set[str]()
    transports: dict[str, set[str]] = {}
    for spec in specs:
        if spec.runs_already and spec.server is not None:
            transports.setdefault(spec.server.name, set()).add(spec.transport)
    for spec in specs:
        for host in spec.hosts.values():
            if host.server is None or host.network == "own":
                continue
            name = host.server.name
            if name not in asked:
                asked.add(name)
                found[name] = _identified(found[name], host, transports[name])
            host.server = found[name].model_copy()
    return found


def _identified(server: ServerSource, host: HostSpec, transports: Collection[str]) -> ServerSource:
    if unknown := sorted(set(transports) - set(host.ports)):
        raise DnsrigError(
            f"a server that runs already cannot be measured over {unknown[0]}",
            hint=f"choose {', '.join(host.ports)}, or let dnsrig start the server",
        )
    said = running.identify(host.address, host.ports, authorized=host.authorized, transports=transports)
    reasons = [running.why_silent(said, transport, where(host, transport)) for transport in sorted(transports)]
    if all(sentence for sentence, _ in reasons):
        sentence, hint = reasons[-1]
        raise DnsrigError(sentence, hint=hint)
    return server.model_copy(update={"version": running.version(said)})


def where(host: HostSpec, transport: str) -> str:
    return running.endpoint(host.address, host.ports[transport])


def named_options(document: Document, settings: Iterable[str], *, builtin: bool) -> set[str]:
    """Options that the user set: by ``settings``, or in an experiment of their own, also on its axes."""
    by_settings = {setting.partition("=")[0].strip().rpartition(".")[2] for setting in settings}
    if builtin:
        return by_settings
    found = by_settings | set(document.options)
    for name, values in document.matrix.items():
        if isinstance(values, list):
            found.add(axis_path(name)[-1])
        else:
            found |= {option for overlay in values.values() for option in overlay.get("options", {})}
    return found
