"""The listeners of a Dask cluster: open ones are found, named and refused, and certificates close them."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from distributed import Scheduler, Security, SpecCluster
from distributed import Worker as DaskWorker
from typer.testing import CliRunner

from dnsrig.cli._app import application
from dnsrig.errors import DnsrigError, UsageError
from dnsrig.machines import dask, dask_access
from dnsrig.machines.dask_access import ROLES, Role

KEYS, OTHER = dask_access.make_keys(dask_access.ALWAYS), dask_access.make_keys(dask_access.ALWAYS)
ANY = "0.0.0.0"
LOOPBACK = {"protocol": "tcp://", "host": "127.0.0.1", "port": 0, "dashboard_address": "127.0.0.1:0"}
NO_PAGES = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}


def context(role: Role, kind: str, keys: dict[Role, dask_access.Keys] = KEYS) -> ssl.SSLContext:
    own = dask_access.security({role: keys[role]})
    found: ssl.SSLContext = getattr(own, f"get_{kind}_args")(role)["ssl_context"]
    return found


def answer(listening: socket.socket, mode: ssl.VerifyMode | None) -> None:
    """Take one connection: with TLS that asks for a certificate by ``mode``, or without TLS."""
    connection, _ = listening.accept()
    with connection, contextlib.suppress(OSError):
        if mode is None:
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            return
        secured = context("worker", "listen")
        secured.verify_mode = mode
        with secured.wrap_socket(connection, server_side=True) as made:
            made.recv(1)


class TestWhetherOneIsOpen:
    """What the wildcard address listens on is tried by way of loopback, where these tests listen."""

    @pytest.mark.parametrize(
        ("server", "is_open"),
        [(None, True), (ssl.CERT_NONE, True), (ssl.CERT_OPTIONAL, True), (ssl.CERT_REQUIRED, False)],
        ids=["without TLS", "without certificates", "certificates if there are any", "certificates"],
    )
    def test_only_a_server_that_asks_for_a_certificate_is_not(
        self, server: ssl.VerifyMode | None, is_open: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if server is not ssl.CERT_REQUIRED:
            monkeypatch.setattr(dask_access, "ANSWER_LIMIT_S", 0.3)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            answering = threading.Thread(target=answer, args=(listening, server))
            answering.start()
            assert dask_access.is_open(ANY, listening.getsockname()[1]) is is_open
            answering.join()

    @pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1"])
    def test_nobody_else_reaches_loopback(self, host: str) -> None:
        assert not dask_access.is_open(host, 1)

    @pytest.mark.parametrize("host", [ANY, "::"])
    def test_one_that_cannot_be_tried_counts_as_open(self, host: str) -> None:
        assert dask_access.is_open(host, 1)


class Answering:
    """A client, and the processes of its cluster, which name their open listeners."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self._answers = answers

    def run(self, function: Any, *, workers: list[str], nanny: bool, on_error: str) -> dict[str, Any]:
        return {address: self._answers["nanny" if nanny else address] for address in workers}

    def run_on_scheduler(self, function: Any) -> Any:
        if isinstance(answer := self._answers["scheduler"], Exception):
            raise answer
        return answer


WORKER = "tls://192.0.2.2:4001"
KNOWN = {WORKER: {"name": "rack-1", "nanny": "tls://192.0.2.2:4002"}}
CLOSED: dict[str, Any] = {WORKER: [], "nanny": [], "scheduler": []}


class TestEachProcessIsAsked:
    def check(
        self, answers: dict[str, Any], known: dict[str, Any] = KNOWN, scheduler: str = "tls://192.0.2.1:1"
    ) -> None:
        dask_access.check(Answering({**CLOSED, **answers}), known, scheduler)

    def test_a_cluster_with_certificates_is_accepted(self) -> None:
        self.check({})

    @pytest.mark.parametrize(
        ("answers", "names"),
        [
            ({WORKER: ["0.0.0.0:1", "[::]:1"]}, "0.0.0.0:1 (worker rack-1), [::]:1 (worker rack-1)"),
            ({"nanny": ["0.0.0.0:2"]}, "0.0.0.0:2 (nanny rack-1)"),
            ({"scheduler": ["0.0.0.0:8787"]}, "0.0.0.0:8787 (scheduler)"),
            ({WORKER: ["0.0.0.0:1"], "scheduler": ["0.0.0.0:2"]}, "0.0.0.0:1 (worker rack-1), 0.0.0.0:2 (scheduler)"),
        ],
    )
    def test_each_open_listener_is_named(self, answers: dict[str, Any], names: str) -> None:
        with pytest.raises(UsageError) as refused:
            self.check(answers)
        assert refused.value.message.endswith(f" without a certificate: {names}")
        assert "dnsrig machines certificates" in refused.value.hint

    @pytest.mark.parametrize(
        ("address", "own", "named"),
        [
            ("tcp://192.0.2.2:4001", [], ["tcp://192.0.2.2:4001 (worker a)"]),
            ("tcp://192.0.2.2:4001", ["0.0.0.0:4001"], ["0.0.0.0:4001 (worker a)"]),
            ("tcp://rack-1:4001", [], ["tcp://rack-1:4001 (worker a)"]),
            ("tcp://127.0.0.1:4001", [], []),
            ("tls://192.0.2.2:4001", [], []),
        ],
    )
    def test_the_address_that_the_scheduler_knows_counts(self, address: str, own: list[str], named: list[str]) -> None:
        assert dask_access.exposed("worker a", address, own) == named

    @pytest.mark.parametrize("process", ["scheduler", "nanny", WORKER])
    def test_a_process_that_does_not_answer_is_refused(self, process: str) -> None:
        with pytest.raises(dask_access.NotKnown, match="No module named 'dnsrig'") as refused:
            self.check({process: ModuleNotFoundError("No module named 'dnsrig'")})
        assert "install it there" in refused.value.hint


@pytest.fixture(scope="module")
def with_pages() -> Iterator[SpecCluster]:
    """As `dask scheduler` and `dask worker` start: their HTTP servers listen on every address."""
    from dask import config

    worker = {**LOOPBACK, "nthreads": 1, "resources": {dask.RESOURCE: 1}}
    scheduler = {**LOOPBACK, "dashboard": False, "dashboard_address": ":0"}
    with (
        config.set(NO_PAGES),
        SpecCluster(
            {"rack-1": {"cls": DaskWorker, "options": worker}}, {"cls": Scheduler, "options": scheduler}
        ) as made,
    ):
        yield made


class TestRefused:
    @pytest.fixture(autouse=True)
    def impatient(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """An HTTP server does not answer to what it does not understand."""
        monkeypatch.setattr(dask_access, "ANSWER_LIMIT_S", 0.3)

    def test_a_cluster_with_an_http_server_for_everybody(self, with_pages: SpecCluster) -> None:
        (port,) = {at[1] for at in map(socket.socket.getsockname, with_pages.scheduler.http_server._sockets.values())}
        refused = pytest.raises(UsageError, match=rf"without a certificate: .*0\.0\.0\.0:{port} \(scheduler\)")
        with refused, dask.workers(with_pages.scheduler_address):
            pass

    def test_a_worker_that_is_started_again_in_another_way(
        self, with_pages: SpecCluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(dask_access, "is_open", lambda host, port: False)
            before = dask.workers(with_pages.scheduler_address)
            (place,) = before.__enter__()
        place._checked.clear()
        with pytest.raises(UsageError, match=r"0\.0\.0\.0:\d+ \(worker rack-1\)"):
            place.submit(divmod, 7, 2)
        before.__exit__(None, None, None)

    def test_a_client_without_a_certificate(self) -> None:
        with pytest.raises(UsageError, match="no certificate to connect with") as refused, dask.workers("tls://a:1"):
            pass
        assert "DASK_CONFIG" in refused.value.hint


def shakes_hands(client: ssl.SSLContext, server: ssl.SSLContext) -> bool:
    """Whether each side accepts the certificate of the other one."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = client.wrap_bio(back, there), server.wrap_bio(there, back, server_side=True)
    try:
        for side in (*sides, *sides):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    except ssl.SSLError:
        return False
    return True


class TestCertificates:
    @pytest.mark.parametrize(
        ("client", "server", "is_accepted"),
        [
            ("client", "scheduler", True),
            ("worker", "scheduler", True),
            ("scheduler", "worker", True),
            ("worker", "worker", True),
            ("worker", "client", False),
        ],
    )
    def test_who_accepts_whom(self, client: Role, server: Role, is_accepted: bool) -> None:
        assert shakes_hands(context(client, "connection"), context(server, "listen")) is is_accepted

    def test_no_other_cluster_is_accepted(self) -> None:
        assert not shakes_hands(context("client", "connection", OTHER), context("scheduler", "listen"))
        assert not shakes_hands(context("client", "connection"), context("scheduler", "listen", OTHER))

    def test_the_command_makes_files_that_only_their_owner_can_read(self, tmp_path: Path) -> None:
        made = CliRunner().invoke(application(), ["machines", "certificates", str(tmp_path / "new")])
        assert made.exit_code == 0 and made.output.split() == [str(tmp_path / f"new/{role}.json") for role in ROLES]
        assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
        assert {path.stat().st_mode & 0o777 for path in (tmp_path / "new").iterdir()} == {0o600}

    def test_dask_reads_them(self, tmp_path: Path) -> None:
        from dask import config

        path = tmp_path / "worker.json"
        path.write_text(json.dumps(dask.settings("worker", KEYS["worker"])))
        with config.set(config.merge(config.config, config.collect([str(path)], env={}))):
            own = Security()
        assert own.require_encryption and own.get_tls_config_for_role("worker") == {
            "ca_file": KEYS["worker"].authority,
            "ciphers": None,
            "cert": KEYS["worker"].certificate,
            "key": KEYS["worker"].private_key,
        }

    def test_no_folder_is_written_twice(self, tmp_path: Path) -> None:
        (tmp_path / "worker.json").write_text("of the cluster that runs")
        refused = CliRunner().invoke(application(), ["machines", "certificates", str(tmp_path)])
        assert isinstance(refused.exception, DnsrigError) and "exists" in refused.exception.message
        assert (tmp_path / "worker.json").read_text() == "of the cluster that runs"
