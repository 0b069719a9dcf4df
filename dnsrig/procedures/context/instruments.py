"""The instruments of a trial: each is started with its arguments on its host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dnsrig import datasets
from dnsrig.lab import addresses
from dnsrig.lab.host import Host
from dnsrig.procedures import procedure
from dnsrig.procedures.context.servers import Servers
from dnsrig.procedures.context.workspace import Workspace
from dnsrig.procedures.instrument import STOP_LIMIT_S, Instrument
from dnsrig.procedures.parts import transfer_instrument
from dnsrig.rundir import OBSERVER, DatasetSpec, Scalar, TrialSpec
from dnsrig.servers import keys, running
from dnsrig.servers.placement import PROXY_PORTS


@dataclass
class Instruments:
    workspace: Workspace
    servers: Servers
    started: dict[str, Instrument] = field(default_factory=dict)
    """By name."""

    def start(self, name: str, arguments: list[str], host: str = OBSERVER, program: Path | None = None) -> Instrument:
        """Start the engine on ``host`` with ``arguments``, a subcommand first, or another ``program``; its summary is
        kept under ``name``."""
        errors = self.workspace.directory / "instruments" / f"{name}.stderr"
        self.started[name] = Instrument.start(name, self.workspace.host(host), arguments, errors, program)
        return self.started[name]

    def stop(self, name: str) -> None:
        """End an instrument that runs until it is stopped, and take its summary."""
        self.started[name].stop()

    def start_watch(self) -> None:
        """Sample every host until the trial ends; the first thing to be done in `setup`."""
        spec, directory = self.workspace.spec, self.workspace.directory
        arguments = ["watch", "--out", str(directory / "samples.arrow"), "--until-eof"]
        is_listed = lists_sockets(spec)
        if is_listed:
            arguments += ["--sockets-out", str(directory / "sockets.arrow")]
        for host in self.workspace.network.hosts.values():
            if host.machine is None and host.namespace:
                # Connections of the observer say nothing of the trial.
                arguments += ["--host", watched(host, sockets=is_listed and host.name != OBSERVER)]
        self.start("watch", arguments)
        for name, hosts in self.workspace.elsewhere.items():
            folder = elsewhere_folder(directory, name)
            hosts[0].make_folder(folder)
            words = [word for host in hosts for word in ("--host", watched(host, sockets=False))]
            self.start(
                f"watch-{name}", ["watch", "--out", str(folder / "samples.arrow"), "--until-eof", *words], hosts[0].name
            )

    def start_probe(
        self,
        name: str,
        target: str,
        *,
        limit_s: float,
        out: Path | None = None,
        next_version: bool = False,
        serial: int | None = None,
    ) -> Instrument:
        """Watch when host ``target`` answers with the serial of the dataset, of its next version, or with
        ``serial``."""
        spec = self.workspace.spec
        dataset = spec.next_dataset if next_version else spec.dataset
        assert dataset is not None
        arguments = [
            "probe",
            *self.server(target, "udp"),
            self._zones,
            self._awaited(dataset, serial),
            f"--rate={spec.options['probe_rate_per_s']}",
            f"--limit-s={limit_s}",
            "--until-eof",
        ]
        if out is not None:
            arguments.append(f"--out={out}")
        return self.start(name, arguments)

    def start_records(self, name: str, target: str, *, limit_s: float, next_version: bool = False) -> Instrument:
        """Ask host ``target`` for every RRset of the dataset, or of its next version, and compare its answers with the
        zone files."""
        dataset = self.workspace.next_dataset if next_version else self.workspace.dataset
        assert dataset is not None
        words = ["probe", "records", self.address(target), f"--zone-list={dataset / 'zones.list'}"]
        return self.start(name, [*words, f"--limit={limit_s:g}s", "--until-eof"])

    def _awaited(self, dataset: DatasetSpec, serial: int | None) -> str:
        """Argument of `probe` for the serials that zones must have."""
        if serial is None and dataset.serials_differ:
            return f"--serials={datasets.folder(dataset.key) / datasets.SERIALS_FILE}"
        return f"--serial={dataset.serial if serial is None else serial}"

    def start_load(self, name: str, target: str, arguments: list[str], host: str = OBSERVER) -> Instrument:
        """Send queries from ``host`` to the server of host ``target``. ``arguments``: of `load`."""
        self.let_watch_go_first()  # a load leaves little time for other programs on its CPU
        return self.start(name, [*self.load(target), *arguments, "--until-eof"], host)

    def load(self, target: str) -> list[str]:
        """The words `load` and the server of host ``target``, at the port of the transport of the queries."""
        spec, host = self.workspace.spec, self.workspace.spec.hosts[target]
        transport = str(spec.options.get("transport", "udp"))
        if host.proxy_protocol and spec.options.get("proxy_protocol"):
            return ["load", running.endpoint(host.address, PROXY_PORTS[transport])]
        return ["load", *self.server(target, transport)]

    def start_change(self, name: str, target: str, arguments: list[str]) -> Instrument:
        """Change zones of the primary of host ``target`` by dynamic updates. ``arguments``: of `change`."""
        return self.start(name, ["change", self.address(target), *arguments, "--until-eof"])

    def start_follow(self, target: str, zones: Path, *, rate_per_s: int) -> Instrument:
        """Watch when the server of host ``target`` changes its answer for one of ``zones``.

        The rows go to ``followed.arrow``.
        """
        words = ["probe", "follow", self.address(target), f"--zones={zones}", f"--rate={rate_per_s}"]
        return self.start("follow", [*words, f"--out={self.workspace.directory / 'followed.arrow'}", "--until-eof"])

    def start_transfer(
        self,
        name: str,
        host: str,
        target: str,
        arguments: list[str],
        *,
        options: Mapping[str, Scalar] | None = None,
        out: Path | None = None,
    ) -> Instrument:
        """Transfer all zones from the primary of host ``target`` to ``host``. ``arguments``: of `transfer`.

        ``options``: options of `transfer_instrument`, by default the procedure's. The rows go to
        ``transfers.arrow``, ``connections.arrow`` and ``tcp-info.arrow`` in ``out``, by default the trial's directory.
        """
        self.let_watch_go_first()  # the samples explain the result, so they come before it
        spec, chosen = self.workspace.spec, options if options is not None else self.workspace.spec.options
        placement = self.servers.placements.get(target)
        is_ours = spec.transfer.tls and placement is not None
        certificate = placement.state.resolve() / keys.CERTIFICATE_FILE if placement and is_ours else None
        words = [
            "transfer",
            *self.server(target, {"tcp": "tcp", "xot": "dot", "xoq": "doq"}[spec.transfer.carrier]),
            self._zones,
        ]
        words += transfer_instrument.transport(chosen, spec.transfer, self.workspace.keys, certificate)
        words += transfer_instrument.sources(chosen, spec.hosts[host])
        out = out or self.workspace.directory
        return self.start(name, [*words, f"--out={out}", "--until-eof", *arguments], host)

    def start_interrogation(self, name: str, host: str, target: str) -> Instrument:
        """Find out from ``host`` what the primary of host ``target`` supports. The answers are in the summary."""
        xot_port = self.workspace.spec.hosts[target].ports.get("dot", keys.XOT_PORT)
        words = ["interrogate", *self.server(target, "tcp"), self._zones, f"--xot-port={xot_port}"]
        return self.start(name, [*words, *self.signed()], host)

    def start_propagation(self, arguments: list[str]) -> Instrument:
        """Watch how changes of the primary arrive on all secondaries, and make the changes unless the primary does.

        The rows go to ``propagation.arrow``.
        """
        hosts = self.workspace.spec.hosts.items()
        words = ["propagation", f"--primary={self.address('primary')}"]
        words += [f"--secondary={self.address(name)}" for name, host in hosts if host.role == "secondary"]
        words += [self._zones, f"--out={self.workspace.directory / 'propagation.arrow'}", "--until-eof"]
        signed = [] if "primary" in self.servers.own_changes else self.signed()
        return self.start("propagation", [*words, *signed, *arguments])

    def signed(self) -> list[str]:
        """The argument with which an instrument signs: with the key of the transfers, if these are signed."""
        key = f"{keys.TSIG_ALGORITHM}:{keys.TSIG_NAME}:{self.workspace.keys.tsig_secret}"
        return [f"--tsig={key}"] if self.workspace.spec.transfer.tsig else []

    def close(self) -> None:
        for instrument in self.started.values():
            instrument.process.stop(limit_s=STOP_LIMIT_S)

    def let_watch_go_first(self) -> None:
        """In real time."""
        for name, instrument in self.started.items():
            if name == "watch" or name.startswith("watch-"):
                instrument.process.go_first()

    def address(self, host: str) -> str:
        """At which a host is asked: a world at the first of its servers' addresses."""
        spec = self.workspace.spec
        if host == spec.world:
            return str(addresses.INTERNET.of(spec.family)[1])
        return str(self.workspace.host(host).address)

    def server(self, host: str, transport: str) -> list[str]:
        """Arguments that name the server of a host to an instrument, for a transport (`udp`, `tcp`, `dot`)."""
        spec = self.workspace.spec.hosts[host]
        if not spec.ports:
            return [self.address(host)]
        place = running.endpoint(spec.address, spec.ports[transport])
        return [place, f"--i-am-authorized={spec.address}"] if spec.authorized else [place]

    @property
    def _zones(self) -> str:
        return f"--zones={self.workspace.dataset / 'zones.list'}"


def watched(host: Host, *, sockets: bool) -> str:
    """A host, as an argument of `watch`."""
    parts = "".join(f",cgroup={folder}" for folder in host.cgroups)
    return f"{host.name},netns={host.namespace_path}{parts}{',sockets' if sockets else ''}"


def elsewhere_folder(directory: Path, machine: str) -> Path:
    """Folder of the samples from another machine until they are merged with the others."""
    return directory / "elsewhere" / machine


def lists_sockets(spec: TrialSpec) -> bool:
    """Whether the TCP connections are listed: if there is an emulated path, or the procedure needs it.

    A replay has thousands of connections of clients. A listing took 7 ms there, five times a second, in which nothing
    else ran on its CPU, and the queries left late.
    """
    emulated = any(link.emulated for link in spec.links) and spec.stream is None
    return emulated or bool(getattr(procedure(spec.procedure), "SOCKETS", False))
