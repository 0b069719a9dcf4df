"""The kernel's counts tell where a query or an answer was lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dnsrig.runs.packets import Counts, Loss

WHOLE = Counts(
    sent=1000,
    send_errors=0,
    sent_packets=900,  # the others left in packets with several queries (UDP GSO)
    sent_by_interface_packets=900,
    received_by_interface_packets=900,
    received=1000,
    received_full=0,
    answered=1000,
    answer_errors=0,
    answered_by_interface_packets=1000,
    sent_elsewhere_packets=0,
    returned_by_interface_packets=1000,
    returned=1000,
    returned_full=0,
)


def behind(received: int, **changed: int) -> Counts:
    """``received`` queries reached the server; all of them were answered, and all answers came back."""
    same = dict.fromkeys(
        ("answered", "answered_by_interface_packets", "returned_by_interface_packets", "returned"), received
    )
    return replace(WHOLE, **{"received": received, **same, **changed})


def test_nothing_is_lost_if_all_counts_agree() -> None:
    assert WHOLE.losses == []


def test_other_traffic_is_no_loss() -> None:
    """A server that asks its primary meanwhile sends and receives more, through another interface."""
    assert replace(WHOLE, received=1010, answered=1010, sent_elsewhere_packets=10).losses == []


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        (
            behind(990, sent_packets=900, sent_by_interface_packets=890, received_by_interface_packets=890),
            Loss("generator", 10, "in the queue of the generator's interface"),
        ),
        (
            behind(
                990, send_errors=10, sent_packets=890, sent_by_interface_packets=890, received_by_interface_packets=890
            ),
            Loss("generator", 10, "in the queue of the generator's interface"),
        ),
        (
            behind(990, received_by_interface_packets=890),
            Loss("wire", 10, "between the interfaces, on the way to the server"),
        ),
        (behind(990), Loss("server", 10, "between the server's interface and its socket")),
        (behind(990, received_full=10), Loss("server", 10, "at the server's socket, whose buffer was full")),
        (
            replace(behind(990), received=1000),
            Loss("server", 10, "in the server, or in another program on its port, which did not answer"),
        ),
        (
            replace(behind(990), received=1000, answer_errors=10),
            Loss("server", 10, "in the queue of the server's interface"),
        ),
        (
            replace(behind(990), received=1000, answered=1000),
            Loss("server", 10, "in the queue of the server's interface"),
        ),
        (
            replace(WHOLE, returned_by_interface_packets=990, returned=990),
            Loss("wire", 10, "between the interfaces, on the way back"),
        ),
        (replace(WHOLE, returned=990), Loss("generator", 10, "between the generator's interface and its socket")),
        (
            replace(WHOLE, returned=990, returned_full=10),
            Loss("generator", 10, "at the generator's socket, whose buffer was full"),
        ),
    ],
)
def test_each_place_is_named(counts: Counts, expected: Loss) -> None:
    assert counts.losses == [expected]


def test_losses_in_two_places_are_told_apart() -> None:
    both = replace(behind(990, received_full=10), returned=980, returned_full=10)
    assert [(loss.where, loss.datagrams) for loss in both.losses] == [("server", 10), ("generator", 10)]
