"""Servers that run already: how they are named, what an experiment may ask of them, and whom it may load."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import cast

import pytest

from dnsrig.errors import DnsrigError, UsageError
from dnsrig.experiment import preparation, running_servers, trial_specs
from dnsrig.experiment.preparation import Draft, Request
from dnsrig.experiment.running_servers import QPS_MOST, UNKNOWN_DATASET
from dnsrig.lab import listener
from dnsrig.lab.cgroup import Hierarchy
from dnsrig.lab.host import Host
from dnsrig.lab.remote_machine import RemoteMachine
from dnsrig.machines.ssh_machine import HostingMachine
from dnsrig.procedures.context import clocks
from dnsrig.procedures.context.instruments import Instruments
from dnsrig.procedures.context.workspace import Workspace
from dnsrig.rundir import HostSpec, MachineSpec, ServerSource
from dnsrig.servers import running, sources

HERE = "running@127.0.0.1:5300"
FAR = "running@192.0.2.53"


def drafted(
    folder: Path, *settings: str, server: str = HERE, procedure: str = "latency", authorized: tuple[str, ...] = ()
) -> Draft:
    (folder / "queries.txt").write_text("www.example.com A\n")
    file = folder / "mine.toml"
    file.write_text(
        f'title = "t"\nquestion = "q"\nprocedure = "{procedure}"\nlimit_s = 9\nhosts.primary.server = "{server}"\n'
        + (f'queries.file = "{folder}/queries.txt"\n' if procedure in ("latency", "capacity") else "")
    )
    return preparation.draft(Request(str(file), settings=list(settings), authorized=list(authorized)))


@pytest.mark.parametrize(
    ("source", "address", "ports"),
    [
        ("192.0.2.53", "192.0.2.53", (53, 53, 853, 443, 853)),
        ("192.0.2.53:5300", "192.0.2.53", (5300, 5300, 853, 443, 853)),
        ("[2001:db8::53]:5300,tcp=5301,dot=8853", "2001:db8::53", (5300, 5301, 8853, 443, 853)),
        ("[::1]", "::1", (53, 53, 853, 443, 853)),
        ("::1", "::1", (53, 53, 853, 443, 853)),
        ("127.0.0.1,dot=8853", "127.0.0.1", (53, 53, 8853, 443, 853)),
        ("127.0.0.1,doq=8854,doh=8443", "127.0.0.1", (53, 53, 853, 8443, 8854)),
    ],
)
def test_an_address_has_a_port_for_each_transport(source: str, address: str, ports: tuple[int, ...]) -> None:
    found = running.parse(source)
    assert (str(found.address), tuple(found.ports.values())) == (address, ports)
    assert sources.parse(f"running@{source}")[1] == source
    assert sources.look(f"running@{source}") is not None


@pytest.mark.parametrize(
    "source",
    [
        "",
        "localhost",
        "127.0.0.1:",
        "127.0.0.1:0",
        "127.0.0.1:65536",
        "127.0.0.256",
        "2001:db8::53:5x",
        "[127.0.0.1]:a",
        "127.0.0.1,udp=1",
        "127.0.0.1,dot",
        "127.0.0.1,dot=x",
        "127.0.0.1:53,,",
        "127.0.0.1:²",
    ],
)
def test_another_text_is_refused_with_an_example(source: str) -> None:
    with pytest.raises(UsageError) as refused:
        sources.parse(f"running@{source}")
    assert "running@127.0.0.1:5300,dot=8853" in refused.value.hint


def test_a_kind_of_server_has_no_address() -> None:
    with pytest.raises(UsageError) as refused:
        sources.parse("bind@127.0.0.1:53")
    assert refused.value.hint == "write running@127.0.0.1:53"


def test_nothing_is_made_for_the_hosts(tmp_path: Path) -> None:
    draft = drafted(tmp_path)
    (spec,) = draft.specs
    assert not draft.needs_root and spec.runs_already and spec.links == []
    assert list(spec.hosts) == ["primary", "observer"]
    assert spec.hosts["primary"].address == "127.0.0.1"
    assert spec.hosts["primary"].ports == {"udp": 5300, "tcp": 5300, "dot": 853, "doh": 443, "doq": 853}
    assert {host.network for host in spec.hosts.values()} == {"machine"}


def test_a_resolver_needs_no_primary(tmp_path: Path) -> None:
    (tmp_path / "queries.txt").write_text("www.example.com A\n")
    file = tmp_path / "mine.toml"
    file.write_text(
        'title = "t"\nquestion = "q"\nprocedure = "latency"\nlimit_s = 9\nhosts.resolver.server = "running@[::1]:5300"\n'
        f'options.serve_as = "resolver"\nqueries.file = "{tmp_path}/queries.txt"\n'
    )
    (spec,) = preparation.draft(Request(str(file))).specs
    assert (list(spec.hosts), spec.family, spec.hosts["observer"].address) == (["resolver", "observer"], "ipv6", "::")


@pytest.mark.parametrize(
    ("procedure", "setting", "reason"),
    [
        ("zone-load", "", "starts, stops or changes the server"),
        ("latency", "hosts.primary.settings.a=1", "hosts.primary.settings: the server runs already"),
        ("latency", 'hosts.observer.sysctls."net.a"=1', "hosts.observer.sysctls: it is no host of its own"),
        ("latency", "path.delay_ms=5", "[path] emulates links"),
        ("latency", 'kernel="uml"', "under another kernel"),
        ("latency", 'options.changes="zones"', "needs a server that dnsrig starts"),
        ("latency", 'options.transfers="one"', "needs the names of the zones"),
        ("latency", 'queries.file=""', "there is nothing to ask"),
        ("latency", 'queries.file="nowhere.txt"', "there is no file nowhere.txt"),
        ("latency", "options.missing_share=0.5", "chooses names of the dataset"),
        ("transfer-load", "", "needs the names of the zones"),
        ("interrogate", "", "needs the names of the zones"),
    ],
)
def test_what_only_an_own_server_allows_is_refused(tmp_path: Path, procedure: str, setting: str, reason: str) -> None:
    with pytest.raises(UsageError) as refused:
        drafted(tmp_path, *([setting] if setting else []), procedure=procedure)
    assert reason in refused.value.message and refused.value.hint


def test_the_machine_that_is_watched_is_the_server_s(tmp_path: Path) -> None:
    watched, alone = drafted(tmp_path, 'hosts.primary.watch="ssh:rack-1"'), drafted(tmp_path)
    (spec,) = watched.specs
    assert (spec.hosts["primary"].machine, spec.hosts["primary"].network) == ("rack-1", "machine")
    assert spec.hosts["observer"].machine is None and spec.whole_machine("primary") == "machine@rack-1"
    assert not watched.needs_root
    assert spec.variant.id == alone.specs[0].variant.id, "what is measured stays the same"
    looked = {"rack-1": HostingMachine(MachineSpec(ssh="root@rack-1"), [0, 1, 2])}
    source = ServerSource(kind="running", source="127.0.0.1:5300", version="")
    made = trial_specs.spec(
        "run",
        "mine",
        watched.points[0],
        {HERE: source},
        [UNKNOWN_DATASET],
        [0, 1],
        queries=spec.queries,
        elsewhere=looked,
    )
    assert made.hosts["primary"].cpus == [0, 1, 2], "all, because nobody knows on which CPUs it runs"
    assert made.machines == {"rack-1": looked["rack-1"].spec}
    with pytest.raises(UsageError, match="the machine rack-1, whose address is not known"):
        preparation.prepare(Request(str(tmp_path / "mine.toml"), settings=['hosts.primary.watch="ssh:rack-1"']), print)


@pytest.mark.parametrize("watch", ["rack-1", "ssh:", "ssh:a b", "http:rack-1"])
def test_what_is_watched_is_reached_over_ssh(tmp_path: Path, watch: str) -> None:
    with pytest.raises(UsageError, match=r"hosts\.primary\.watch"):
        drafted(tmp_path, f'hosts.primary.watch="{watch}"')


def test_a_host_that_dnsrig_makes_is_sampled_anyway(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="samples every host that it makes"):
        drafted(tmp_path, 'hosts.primary.watch="ssh:rack-1"', 'dataset.kind="tiny-zones"', server="nsd@forky")
    with pytest.raises(UsageError, match=r"hosts\.observer\.watch"):
        drafted(tmp_path, 'hosts.observer.watch="ssh:rack-1"')


V2, V1 = Hierarchy(Path("/sys/fs/cgroup/unified"), 2), Hierarchy(Path("/sys/fs/cgroup/memory"), 1, ("memory",))


def test_a_server_has_a_cgroup_in_each_hierarchy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "is_dir", lambda path: "gone" not in str(path))
    text = "4:memory:/system.slice/unbound.service\n3:cpu,cpuacct:/\n0::/system.slice/unbound.service\n"
    expected = [tree.mount / "system.slice/unbound.service" for tree in (V2, V1)]
    assert listener.folders(text, [V2, V1]) == expected
    assert listener.folders("0::/\n4:memory:/gone\n", [V2, V1]) == [], "the whole machine is not the server"


def test_the_program_that_listens_is_found_by_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one may have the same port at another address."""
    seen: list[str] = []
    monkeypatch.setattr(listener, "folders", lambda text, trees: seen.append(text) or [Path("/x")])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        assert listener.cgroups("127.0.0.1", port) == [Path("/x")]
        assert seen == [Path("/proc/self/cgroup").read_text()]
        assert listener.cgroups("127.0.0.2", port) == []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("0.0.0.0", port))
        assert listener.cgroups("192.0.2.53", port) == [Path("/x")], "it listens everywhere"


class Far:
    """A machine whose clock is 5 s ahead and gains 1 ms a second, with answers of uneven speed."""

    name = "rack-1"

    def __init__(self) -> None:
        self.now_ns = 10**9

    def monotonic_ns(self) -> int:
        self.now_ns += 1_000_000
        return self.now_ns

    def call(self, function: object) -> list[int]:
        self.now_ns += 500_000 * (1 + self.now_ns % 7)
        return [self.now_ns + 5 * 10**9 + self.now_ns // 1000, time.time_ns()]


def test_a_clock_is_compared_over_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    far = Far()
    monkeypatch.setattr(clocks.time, "monotonic_ns", far.monotonic_ns)
    compared = clocks.Clocks(cast(Workspace, None), cast(Instruments, None))
    host = Host("primary", HostSpec(address="192.0.2.53", cpus=[0]), namespace="", machine=cast(RemoteMachine, far))
    compared._ask(host)
    far.now_ns += 60 * 10**9
    compared._ask(host)
    line = compared.lines["rack-1"]
    assert line.drift_ppb == pytest.approx(1e6, rel=0.1) and 0 < line.error_ns < 10**7
    for moment_ns in (10**9, 30 * 10**9, 60 * 10**9):
        assert abs(line.here(moment_ns + 5 * 10**9 + moment_ns // 1000) - moment_ns) <= 2 * line.error_ns
    assert compared.summaries["rack-1"]["bursts"] == 2


def test_one_run_does_not_mix_networks(tmp_path: Path) -> None:
    mixed = 'matrix={"hosts.primary.server"=["running@127.0.0.1", "bind@forky"]}'
    with pytest.raises(UsageError, match="over different networks"):
        drafted(tmp_path, mixed, 'dataset.kind="tiny-zones"', 'queries.file=""')


def test_only_the_server_under_test_runs_already(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="only the server under test"):
        drafted(tmp_path, 'options.serve_as="secondary"', 'hosts.secondary.server="bind@forky"')


def test_an_address_elsewhere_needs_a_statement_of_the_user(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        drafted(tmp_path, server=FAR)
    assert refused.value.hint.endswith("--i-am-authorized 192.0.2.53")
    with pytest.raises(UsageError):
        drafted(tmp_path, server=FAR, authorized=("192.0.2.54",))
    (spec,) = drafted(tmp_path, server=FAR, authorized=("192.0.2.53",)).specs
    assert spec.hosts["primary"].authorized and spec.options["rate_qps"] == QPS_MOST
    (free,) = drafted(tmp_path).specs
    assert not free.hosts["primary"].authorized and free.options["rate_qps"] == 0


def test_a_rate_elsewhere_is_the_one_that_the_user_names(tmp_path: Path) -> None:
    (spec,) = drafted(tmp_path, "options.rate_qps=5000", server=FAR, authorized=("192.0.2.53",)).specs
    assert spec.options["rate_qps"] == 5000
    with pytest.raises(UsageError, match="a highest rate that you name"):
        drafted(tmp_path, server=FAR, procedure="capacity", authorized=("192.0.2.53",))
    (search,) = drafted(
        tmp_path,
        "options.ramp_start_qps=50",
        "options.ramp_most_qps=900",
        server=FAR,
        procedure="capacity",
        authorized=("192.0.2.53",),
    ).specs
    assert (search.options["ramp_start_qps"], search.options["ramp_most_qps"]) == (50, 900)


def test_the_rate_of_a_built_in_experiment_is_not_the_users(tmp_path: Path) -> None:
    settings = [f'hosts.primary.server="{FAR}"']
    asked = Request("echo-baseline", settings=settings, authorized=["192.0.2.53"])
    assert {spec.options["rate_qps"] for spec in preparation.draft(asked).specs} == {QPS_MOST}
    own = Request("echo-baseline", settings=[*settings, "rate_qps=[300]"], authorized=["192.0.2.53"])
    assert {spec.options["rate_qps"] for spec in preparation.draft(own).specs} == {300}


def test_rates_on_an_axis_are_named(tmp_path: Path) -> None:
    for matrix in (
        '{"options.rate_qps"=[200, 300]}',
        "{a={low={options={rate_qps=200}}, high={options={rate_qps=300}}}}",
    ):
        specs = drafted(tmp_path, f"matrix={matrix}", server=FAR, authorized=("192.0.2.53",)).specs
        assert [spec.options["rate_qps"] for spec in specs] == [200, 300]


@pytest.mark.parametrize(
    ("said", "transport", "sentence"),
    [
        ({"udp": "answers"}, "udp", ""),
        ({"dot": "open"}, "dot", ""),
        ({}, "doq", ""),
        ({"doh": "open"}, "doh", ""),
        ({"doh": "refused", "udp": "answers"}, "doh", "no server listens at HERE over DNS over HTTPS"),
        ({"udp": "refused", "tcp": "answers"}, "udp", "no server listens at HERE over UDP; it answers over TCP"),
        ({"udp": "silent"}, "udp", "does not answer over UDP"),
        ({"udp": "elsewhere", "answered_from": "192.0.2.9:53"}, "udp", "from another address, 192.0.2.9:53"),
        ({}, "tcp", "does not answer over TCP"),
    ],
)
def test_silence_has_a_reason_and_a_hint(said: dict[str, str], transport: str, sentence: str) -> None:
    found, hint = running.why_silent(said, transport, "HERE")
    assert sentence in found and bool(found) == bool(hint) == bool(sentence)


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        ({"udp": "answers", "dot": "open", "version": "9.9"}, ""),
        ({"udp": "answers", "dot": "refused"}, ""),
        ({"udp": "refused", "dot": "open"}, ""),
        ({"udp": "refused", "dot": "refused"}, "no server listens at 192.0.2.53:5300 over UDP"),
        ({"udp": "silent", "dot": "refused"}, "the server at 192.0.2.53:5300 does not answer over UDP"),
    ],
)
def test_a_server_that_answers_over_one_of_the_transports_is_measured(
    monkeypatch: pytest.MonkeyPatch, said: dict[str, str], refused: str
) -> None:
    """Trials over the other transports show that it is silent there."""
    monkeypatch.setattr(running, "identify", lambda *_, **__: said)
    server = ServerSource(kind="running", source="192.0.2.53", version="")
    host = HostSpec(address="192.0.2.53", cpus=[0], ports={"udp": 5300, "tcp": 5300, "dot": 853})
    if refused:
        for transports in ({"udp", "dot"}, {"udp"}):
            with pytest.raises(DnsrigError, match=refused) as caught:
                running_servers._identified(server, host, transports)
            assert caught.value.hint
    else:
        found = running_servers._identified(server, host, {"udp", "dot"})
        assert found.version == said.get("version", running.UNKNOWN) and server.version == ""
    with pytest.raises(DnsrigError, match="cannot be measured over doh") as caught:
        running_servers._identified(server, host, {"doh", "xot", "udp"})
    assert caught.value.hint == "choose udp, tcp, dot, or let dnsrig start the server"


@pytest.mark.parametrize(
    ("server", "is_running"),
    [(None, False), ("running@127.0.0.1", True), ("running", True), ("bind@forky", False), ("", False)],
)
def test_a_server_at_an_address_runs_already(server: str | None, is_running: bool) -> None:
    assert running_servers.is_running(server) is is_running
