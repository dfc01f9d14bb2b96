"""How far the predicted time to the first token is off, as /metrics shows it."""

from radixgate.gateway.observe.metrics import GatewayMetrics
from scripted_worker import ScriptedWorker, events, sse_end, sse_head
from small_gateway import small_gateway

BUCKET = "radixgate_ttft_ratio_bucket"


def sample(metrics: GatewayMetrics, start: str) -> float:
    lines = metrics.exposition().decode().splitlines()
    return float(next(line for line in lines if line.startswith(start)).rsplit(" ", 1)[1])


def test_a_prediction_is_counted_by_ratio_and_by_seconds() -> None:
    metrics = GatewayMetrics(list)
    metrics.predicted(0.1, 0.1)
    metrics.predicted(0.1, 0.3)
    metrics.predicted(0.2, 0.1)
    assert sample(metrics, BUCKET + '{le="0.5"}') == 1
    assert sample(metrics, BUCKET + '{le="1.1"}') == 2
    assert sample(metrics, BUCKET + '{le="4.0"}') == 3
    assert round(sample(metrics, "radixgate_ttft_error_seconds_sum"), 6) == 0.3


def test_a_prediction_of_nothing_divides_by_nearly_nothing() -> None:
    metrics = GatewayMetrics(list)
    metrics.predicted(0.0, 1.0)
    assert sample(metrics, BUCKET + '{le="+Inf"}') == 1


def test_times_to_be_kept_have_a_bound_of_their_own() -> None:
    metrics = GatewayMetrics(list)
    metrics.aim(0.3, 0.06)
    metrics.ttft.observe(0.29)
    metrics.ttft.observe(0.31)
    metrics.itl.observe(0.055)
    assert sample(metrics, 'radixgate_ttft_seconds_bucket{le="0.3"}') == 1
    assert sample(metrics, 'radixgate_itl_seconds_bucket{le="0.06"}') == 1


async def test_streams_are_compared_and_whole_answers_are_not() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as small:
        await small.chat("whole")
        assert await small.counter("radixgate_ttft_ratio_count") == 0
        worker.script = lambda request: [*sse_head(), *events("a", "b"), *sse_end()]
        await small.chat("streamed", stream=True)
        assert await small.counter("radixgate_ttft_ratio_count") == 1
        assert await small.counter("radixgate_ttft_error_seconds_count") == 1
