"""The links and the kernel of a trial, from ``[path]``, ``link`` and ``kernel`` of an experiment."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import ModuleType

from dnsrig import procedures
from dnsrig.errors import UsageError
from dnsrig.experiment.executors import executor
from dnsrig.experiment.model import DirectionDocument, Document, PathDocument, Point
from dnsrig.lab import links as lab_links
from dnsrig.lab import sites, tcp
from dnsrig.lab.links.ends import IPV6_LEAST_MTU_BYTES
from dnsrig.rundir import FULL_PACKET_BYTES, FarSpec, HostSpec, LinkSpec, PathSpec, Scalar

Ends = tuple[str, str]
SEEDS_APART = 1 << 32
"""Distance between the seeds of two far links. It is larger than the sum of a path's seed and a repeat, so that the
links lose different packets."""
LEAST_LIMIT_PACKETS = 1000
"""The default of netem."""
RATE_OF_MACHINE_MBIT = 1000.0
"""Rate that determines the length of a queue if the experiment sets no rate."""
MOST_FAR_LINKS = 16
"""The smallest MTU of IPv6 (RFC 8200, 5)."""
MOST_AFTER_S = 2 * 86_400.0
"""Latest change of the loss: after the end of any trial, whose limit is a day."""


def kernel(document: Document) -> str:
    """The kernel that a trial of ``document`` runs under.

    Raises UsageError if there is no such kernel, or if it lacks a congestion control.
    """
    asked = {host.congestion for host in document.hosts.values() if host.congestion}
    lacking = sorted(asked - set(tcp.congestion_controls()))
    if document.kernel == "running" and lacking:
        raise UsageError(
            f"this kernel has no congestion control {lacking[0]!r}",
            hint=f'it has {", ".join(tcp.congestion_controls())}; kernel = "uml" runs the trial under a kernel that has more',
        )
    if document.kernel == "auto":
        return "uml" if lacking else "running"
    executor(document.kernel)
    return document.kernel


def under_one_kernel(points: list[Point]) -> list[Point]:
    """The points of a matrix, all under User-mode Linux if one point needs it, so that no comparison mixes kernels.

    A document that names its kernel keeps it.
    """
    if not any(point.document.kernel == "auto" and kernel(point.document) == "uml" for point in points):
        return points
    return [
        Point(point.parameters, point.document.model_copy(update={"kernel": "uml"}))
        if point.document.kernel == "auto"
        else point
        for point in points
    ]


def link_kind(document: Document, kernel: str) -> str:
    """The kind of link for the path of ``document``."""
    path = document.path
    far_delays = path is not None and path.rtts is not None
    return lab_links.chosen(
        document.link, path=path is not None, far_delays=far_delays, stock_kernel=kernel != "running"
    )


def links(
    document: Document,
    procedure: ModuleType,
    hosts: Mapping[str, HostSpec],
    options: Mapping[str, Scalar],
    kind: str,
) -> list[LinkSpec]:
    """All links of the procedure, the far ones with the path. Raises UsageError if it cannot use the path."""
    found = [_near_link(ends, hosts) for ends in procedures.links(procedure, hosts)]
    if document.path is None:
        if lab_links.kinds()[kind].EMULATES:
            raise UsageError(f'link = "{kind}" without a [path]', hint="describe the path: [path] delay_ms = 50")
        return found
    far = far_links(procedure, hosts, options)
    if not far:
        raise UsageError(
            f"procedure {document.procedure} has no link that a [path] could apply to",
            hint="leave [path] out: it lies between a primary and the host that transfers its zones",
        )
    if len(far) > MOST_FAR_LINKS:
        raise UsageError(f"{len(far)} emulated links, more than {MOST_FAR_LINKS}", hint="use fewer hosts")
    if document.path.rtts is not None and not any(hosts[name].ranges for ends in far for name in ends):
        raise UsageError(
            "path.rtts applies to addresses of a simulated Internet or of clients, but no host beyond the path has any",
            hint="leave it out; path.delay_ms delays all packets alike",
        )
    forward, reverse = directions(document.path)
    if document.family == "ipv6":
        _check_ipv6(document.path, forward, reverse)
    if crossing := [ends for ends in far if hosts[ends[0]].machine != hosts[ends[1]].machine]:
        raise UsageError(
            f"[path] applies to the link {crossing[0][0]} - {crossing[0][1]}, which joins two machines",
            hint="leave [path] out: dnsrig does not emulate paths over a real cable",
        )
    by_ends = {frozenset(ends): (ends, document.path.seed + SEEDS_APART * place) for place, ends in enumerate(far)}
    return [
        _far_link(document.path, *by_ends[ends], hosts, kind) if (ends := frozenset(link.ends)) in by_ends else link
        for link in found
    ]


def _near_link(ends: Ends, hosts: Mapping[str, HostSpec]) -> LinkSpec:
    """A link without a path: within a machine, or between the interfaces of two machines."""
    left, right = (hosts[end] for end in ends)
    if left.machine == right.machine:
        return LinkSpec(ends=ends)
    for name, host in zip(ends, (left, right)):
        if host.nic is None:
            where = f"the machine {host.machine}" if host.machine else "this machine"
            raise UsageError(
                f"the hosts {ends[0]} and {ends[1]} are on two machines: {name} needs an interface of {where}",
                hint=f'hosts.{name}.nic = "eth1": an interface that the machine does not need; dnsrig gives it back afterwards',
            )
    return lab_links.joined(ends, lab_links.between_machines())


def _far_link(path: PathDocument, ends: Ends, seed: int, hosts: Mapping[str, HostSpec], kind: str) -> LinkSpec:
    prefixes = [prefix for name in ends for prefix in hosts[name].ranges]
    forward, reverse = directions(path, prefixes)
    return lab_links.joined(ends, kind, mtu_bytes=path.interface_mtu_bytes, forward=forward, reverse=reverse, seed=seed)


def far_links(procedure: ModuleType, hosts: Mapping[str, HostSpec], options: Mapping[str, Scalar]) -> list[Ends]:
    """The links that a path applies to, each in the direction of the zones.

    The procedure's ``far`` names them; by default they join the host under test and its primaries.
    """
    joined = {frozenset(ends) for ends in procedures.links(procedure, hosts)}
    if far := getattr(procedure, "far", None):
        chosen: list[Ends] = far(hosts, options)
    else:
        subjects = [name for name, host in hosts.items() if host.under_test]
        primaries = [name for name, host in hosts.items() if host.role == "primary" and not host.under_test]
        chosen = [(primary, subject) for subject in subjects for primary in primaries]
    return [ends for ends in chosen if frozenset(ends) in joined]


def directions(path: PathDocument, prefixes: Sequence[str] = ()) -> tuple[PathSpec, PathSpec]:
    """Both directions of a path: your values override the values of the site.

    ``prefixes``: addresses beyond the path. Raises UsageError on values that no link can have.
    """
    site = sites.site(path.site) if path.site is not None else None
    own = _values_of(path)
    forward = {**(site.forward if site else {}), **own}
    reverse = {**(site.forward if site else {}), **(site.reverse if site else {}), **own, **_values_of(path.reverse)}
    far = _far(path, prefixes)
    return _direction({**forward, "far": far}, path), _direction({**reverse, "far": far}, path)


def _far(path: PathDocument, prefixes: Sequence[str]) -> FarSpec | None:
    if path.rtts is None:
        return None
    classes = list(sites.distribution(path.rtts).classes)
    if not prefixes:
        return None
    return FarSpec(distribution=path.rtts, rtt_classes=classes, prefixes=list(prefixes), seed=path.rtts_seed)


def _check_ipv6(path: PathDocument, *ways: PathSpec) -> None:
    """Refuse an MTU that is too small for IPv6. The MTU of the interfaces applies to both families."""
    least = min([path.interface_mtu_bytes, *(way.mtu_bytes for way in ways if way.mtu_bytes is not None)])
    if least < IPV6_LEAST_MTU_BYTES:
        raise UsageError(
            f"an MTU of {least} bytes is too small for IPv6, which needs at least {IPV6_LEAST_MTU_BYTES} (RFC 8200)",
            hint='raise path.mtu_bytes or path.interface_mtu_bytes, or measure with family = "ipv4"',
        )


def _values_of(direction: DirectionDocument) -> dict[str, object]:
    """The values that a document sets for a direction: fields of `PathSpec`."""
    values = {name: getattr(direction, name) for name in DirectionDocument.model_fields}
    found = {name: value for name, value in values.items() if value is not None}
    if "loss_percent" in found and "loss_over_time" not in found:
        found["loss_over_time"] = []
    return found


def _direction(values: Mapping[str, object], path: PathDocument) -> PathSpec:
    made = PathSpec.model_validate({**values, "loss_over_time": _steps(values.get("loss_over_time", []))})
    if made.jitter_ms > made.delay_ms:
        raise UsageError(
            f"path.jitter_ms = {made.jitter_ms:g} is more than the delay of {made.delay_ms:g} ms",
            hint="a packet cannot arrive before it was sent: raise delay_ms",
        )
    if made.mtu_bytes is not None and made.mtu_bytes > path.interface_mtu_bytes:
        raise UsageError(
            f"path.mtu_bytes = {made.mtu_bytes} is above the interfaces' {path.interface_mtu_bytes}",
            hint="leave it out, or raise path.interface_mtu_bytes",
        )
    if made.mtu_bytes == path.interface_mtu_bytes:
        made.mtu_bytes = None  # the interface sends no larger packets
    if "limit_packets" not in values:
        made.limit_packets = _room_packets(made)
    return made


def _steps(value: object) -> list[tuple[float, float]]:
    steps = [tuple(step) for step in value] if isinstance(value, list) else []
    good = all(len(step) == 2 and 0 <= step[0] <= MOST_AFTER_S and 0 <= step[1] <= 100 for step in steps)
    if not good or any(later[0] <= step[0] for step, later in pairwise(steps)):
        raise UsageError(
            f"path.loss_over_time = {value!r} is not a list of rising times, each with a loss in percent",
            hint="e.g. [[0, 0.1], [60, 5], [120, 0.1]]",
        )
    return steps


def _room_packets(path: PathSpec) -> int:
    """Length of the queue: twice the packets under way at the full rate, so that the queue is no additional limit."""
    rate_mbit = RATE_OF_MACHINE_MBIT if path.rate_mbit is None else path.rate_mbit
    nbytes = rate_mbit * 1e6 / 8 * path.longest_ms / 1e3
    return max(LEAST_LIMIT_PACKETS, math.ceil(2 * nbytes / FULL_PACKET_BYTES))
