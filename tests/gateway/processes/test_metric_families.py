"""What several processes count, as one process would show it."""

from radixgate.gateway.attempt.attempt import AnswerCounts
from radixgate.gateway.observe.metrics import FinalOutcome, GatewayMetrics, WorkerRow
from radixgate.gateway.processes.messages import Family
from radixgate.gateway.processes.metric_families import (
    about_workers,
    exposition,
    families_of,
    lasting,
    of_present,
    summed,
)


def process(answers: int, in_flight: int, failures: int = 0) -> list[Family]:
    """The families of a process that has answered so often; its one worker is `w`."""
    metrics = GatewayMetrics(lambda: [WorkerRow("w", "ready", in_flight, 7, "closed")])
    metrics.in_flight = in_flight + answers
    for _ in range(answers):
        metrics.dispatched("cached", 10)
        metrics.answered(AnswerCounts(prompt=100, cached=10, completion=5))
        metrics.ended(FinalOutcome.OK, 0.2)
    for _ in range(failures):
        metrics.worker_failed("w")
    return families_of(metrics.collect())


def lines(families: list[Family]) -> dict[str, float]:
    text = exposition(families).decode().splitlines()
    shown = [line for line in text if not line.startswith("#")]
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in shown}


def test_counters_histograms_and_gauges_add_up() -> None:
    shown = lines(summed([], [process(3, 1), process(4, 2, failures=2)]))
    assert shown['radixgate_requests_total{outcome="ok"}'] == 7
    assert shown['radixgate_decisions_total{reason="cached"}'] == 7
    assert shown["radixgate_prompt_tokens_total"] == 700
    assert shown["radixgate_request_duration_seconds_count"] == 7
    assert shown['radixgate_request_duration_seconds_bucket{le="0.1"}'] == 0
    assert shown['radixgate_request_duration_seconds_bucket{le="0.25"}'] == 7
    assert shown["radixgate_in_flight"] == 3
    assert shown['radixgate_worker_failures_total{worker="w"}'] == 2


def test_what_is_known_of_a_worker_is_not_added_up() -> None:
    own = about_workers(process(0, 5))
    shown = lines(summed(own, [process(3, 1), process(4, 2)]))
    assert shown['radixgate_worker_in_flight{worker="w"}'] == 5
    assert shown['radixgate_mirror_blocks{worker="w"}'] == 7
    assert shown['radixgate_worker_state{state="ready",worker="w"}'] == 1


def test_of_a_process_that_is_gone_the_counts_stay() -> None:
    gone = lasting(process(3, 1))
    shown = lines(summed([], [process(4, 2), gone]))
    assert shown['radixgate_requests_total{outcome="ok"}'] == 7
    assert shown["radixgate_in_flight"] == 2


def test_a_worker_s_series_leave_with_it() -> None:
    families = summed([], [lasting(process(3, 1, failures=2))])
    assert lines(of_present(families, {"w"})) == lines(families)
    shown = lines(of_present(families, set()))
    assert not [name for name in shown if "worker=" in name]
    assert shown['radixgate_requests_total{outcome="ok"}'] == 3


def test_the_text_is_the_one_of_a_single_process() -> None:
    metrics = GatewayMetrics(lambda: [WorkerRow("w", "ready", 1, 7, "closed")])
    metrics.ended(FinalOutcome.REJECTED, 0.5)
    alone = metrics.exposition().decode().splitlines()
    through = exposition(families_of(metrics.collect())).decode().splitlines()
    assert sorted(alone) == sorted(through)
