"""Checks are believed only when some in a row agree."""

from radixgate.gateway.workers.health import HealthRule, Pulse


def pulse(failures: int = 3, successes: int = 2) -> Pulse:
    return Pulse(
        HealthRule(interval_s=1, timeout_s=1, failures=failures, successes=successes, startup_s=0)
    )


def test_a_worker_comes_up_after_enough_good_checks_in_a_row() -> None:
    worker = pulse()
    assert not worker.succeeded()
    assert not worker.failed(refused=False)
    assert not worker.succeeded()
    assert worker.succeeded()
    assert not worker.succeeded()
    assert worker.up


def test_a_worker_goes_down_after_enough_bad_checks_in_a_row() -> None:
    worker = pulse(successes=1)
    worker.succeeded()
    assert not worker.failed(refused=False)
    assert not worker.failed(refused=False)
    worker.succeeded()
    assert not worker.failed(refused=False)
    assert not worker.failed(refused=False)
    assert worker.failed(refused=False)
    assert not worker.failed(refused=False)
    assert not worker.up


def test_one_that_never_came_is_lost_after_as_many_failed_checks() -> None:
    worker = pulse()
    assert not worker.lost, "it has not been asked yet"
    for lost in (False, False, True):
        worker.failed(refused=True)
        assert worker.lost is lost
    worker.succeeded()
    assert not worker.lost


def test_a_refused_connection_takes_a_worker_down_at_once() -> None:
    worker = pulse(successes=1)
    worker.succeeded()
    assert worker.failed(refused=True)
