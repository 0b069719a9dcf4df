"""The machines of a Dask cluster: a real scheduler and a real worker, as threads of this process."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from distributed import Scheduler, SpecCluster
from distributed import Worker as DaskWorker

from dnsrig.errors import DnsrigError
from dnsrig.machines import dask

LOCAL = {"protocol": "tcp://", "host": "127.0.0.1", "port": 0, "dashboard_address": "127.0.0.1:0"}
ANSWER_LIMIT_S = 60


class Stubborn(Exception):
    """Can be pickled, but not unpickled."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"{what}, {why}")


def deep(calls: int) -> None:
    if not calls:
        raise OSError("down here")
    deep(calls - 1)


def stubborn() -> None:
    raise Stubborn("the moon", "it is full")


def sentence() -> None:
    raise DnsrigError("the moon is full", hint="wait a week")


@pytest.fixture(scope="module")
def cluster() -> Iterator[SpecCluster]:
    worker = {**LOCAL, "nthreads": 1, "resources": {dask.RESOURCE: 1}}
    with SpecCluster(
        {"rack-1": {"cls": DaskWorker, "options": worker}}, {"cls": Scheduler, "options": {**LOCAL, "dashboard": False}}
    ) as made:
        yield made


@pytest.fixture
def place(cluster: SpecCluster) -> Iterator[dask.Worker]:
    with dask.workers(cluster.scheduler_address) as (found,):
        yield found


@pytest.mark.parametrize("calls", [900, 100_000], ids=["a long traceback", "an endless recursion"])
def test_whatever_is_raised_there_is_heard_here(place: dask.Worker, calls: int) -> None:
    error = place.submit(deep, calls).exception(ANSWER_LIMIT_S)
    assert isinstance(error, DnsrigError)
    assert str(error).startswith("OSError: down here" if calls < 1000 else "RecursionError: maximum recursion depth")


def test_an_exception_that_cannot_be_unpickled_is_told(place: dask.Worker) -> None:
    assert str(place.submit(stubborn).exception(ANSWER_LIMIT_S)) == "Stubborn: the moon, it is full"
    with pytest.raises(DnsrigError, match="Stubborn: the moon, it is full"):
        place.at_once(stubborn)


def test_a_sentence_comes_with_its_hint(place: dask.Worker) -> None:
    error = place.submit(sentence).exception(ANSWER_LIMIT_S)
    assert isinstance(error, DnsrigError) and error.hint == "wait a week"
    with pytest.raises(DnsrigError) as caught:
        place.at_once(sentence)
    assert caught.value.hint == "wait a week"


def test_what_is_returned_is_returned(place: dask.Worker) -> None:
    assert place.submit(divmod, 7, 2).result(ANSWER_LIMIT_S) == (3, 1)
    assert place.at_once(os.getpid) == os.getpid()


def test_nobody_is_told_of_what_comes_when_nobody_waits(place: dask.Worker, caplog: pytest.LogCaptureFixture) -> None:
    given_up = place.submit(divmod, 7, 2)
    gone = given_up.cancel()
    assert place.submit(divmod, 7, 2).result(ANSWER_LIMIT_S) == (3, 1)
    assert gone and not caplog.records
