"""Requests at a worker: whichever is more, what we sent or what it reports."""

import pytest
from msgspec.structs import replace

from columns import columns
from radixgate.policies.requests_there import reported_requests, requests_there


@pytest.mark.parametrize(
    ("own", "running", "waiting", "there"),
    [
        pytest.param([2, 3], [None, None], [0, 0], [2, 3], id="nobody-reports"),
        pytest.param([2, 3], [0, 0], [0, 0], [2, 3], id="they-report-nothing"),
        pytest.param([2, 3], [1, 0], [0, 0], [2, 3], id="fewer-than-we-sent"),
        pytest.param([2, 3], [1, 4], [2, 0], [3, 4], id="more-than-we-sent"),
        pytest.param([2, 3], [None, 1], [9, 3], [2, 4], id="one-reports"),
    ],
)
def test_whichever_is_more(
    own: list[int], running: list[int | None], waiting: list[int], there: list[int]
) -> None:
    fleet = columns(2, requests=own, reported=running, waiting=waiting)
    assert list(requests_there(fleet)) == there


def test_what_is_added_up_already_is_taken() -> None:
    fleet = columns(2, requests=[1, 1], reported=[2, None], waiting=[3, 0])
    assert list(reported_requests(fleet)) == [5, -1]
    assert requests_there(replace(fleet, reported_requests=(4, -1))) == [4, 1]


def test_what_is_compared_already_is_taken() -> None:
    fleet = columns(2, requests=[1, 1], reported=[2, None], waiting=[3, 0])
    assert requests_there(replace(fleet, requests_there=(5, 1))) == (5, 1)
