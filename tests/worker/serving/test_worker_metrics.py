"""What /metrics, /get_load and /v1/loads say, and how often each thing is counted."""

import asyncio
import json

import pytest
from aiohttp import ClientSession, web

from clocks import FakeClock
from radixgate.clock import SystemClock
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.worker.engine.engine import Engine
from radixgate.worker.engine.histogram import Histogram
from radixgate.worker.engine.latencies import ABOUT
from radixgate.worker.serving.admin_routes import AdminRoutes, loads_body
from radixgate.worker.serving.arriving import ArrivingRequests
from radixgate.worker.serving.metrics import WorkerMetrics
from small_engine import Ear, SmallEngine


def test_a_histogram_counts_each_value_in_the_bucket_that_reaches_it() -> None:
    histogram = Histogram((0.1, 1.0))
    before = histogram.snapshot()
    for seconds in (0.05, 0.1, 0.5, 7.0):
        histogram.observe(seconds)
    counts = histogram.snapshot()
    assert counts.cumulative() == [("0.1", 2), ("1", 3), ("+Inf", 4)]
    assert counts.total_s == pytest.approx(7.65)
    assert before.observations == 0
    assert histogram.snapshot() is counts


def test_each_request_is_counted_once_whatever_happens_to_it() -> None:
    clock = FakeClock()
    engine = SmallEngine(
        pages=10, schedule_conservativeness=0.0, max_running_requests=8, clock=clock
    )
    ear = Ear()
    for handle in range(6):
        engine.submit(ear, handle, [handle] * 12, max_tokens=8)
    engine.submit(ear, 8, [9, 9, 9], max_tokens=5, n=3)
    engine.submit(ear, 9, [8], max_tokens=5)
    engine.core.abort(ear, 9, "enough")
    while engine.step():
        clock.advance(0.5)
    stats = engine.core.stats()
    assert stats.retractions_total > 0
    seen = {name: counts.observations for name, counts in stats.latencies.items()}
    assert seen == {
        "time_to_first_token": 7,
        "inter_token_latency": 6 * 7 + 3 * 4,
        "e2e_request_latency": 7,
        "queue_time": 7,
    }


def test_the_scrape_has_them_under_sglangs_names() -> None:
    engine = SmallEngine()
    engine.answer([1, 2, 3], max_tokens=4)
    text = WorkerMetrics(engine.core.stats, "m", FakeClock()).render().decode()
    for name in ABOUT:
        assert f'sglang:{name}_seconds_bucket{{le="+Inf",model_name="m"}}' in text
    assert 'sglang:time_to_first_token_seconds_count{model_name="m"} 1.0' in text
    assert 'sglang:inter_token_latency_seconds_count{model_name="m"} 3.0' in text


def test_loads_name_the_one_replica_and_the_sums() -> None:
    engine = SmallEngine(pages=64, max_running_requests=1)
    ear = Ear()
    engine.submit(ear, 1, list(range(9)), max_tokens=9)
    engine.submit(ear, 2, list(range(9)), max_tokens=9)
    engine.step()
    body = loads_body(engine.core.stats(), pb.WorkerInfo(max_running_requests=1, version="v"))
    (load,) = json.loads(json.dumps(body))["loads"]
    assert (load["num_running_reqs"], load["num_waiting_reqs"]) == (1, 1)
    assert load["num_used_tokens"] == 12
    assert 0 < load["token_usage"] < 1
    assert body["aggregate"] == {
        "num_running_reqs": 1,
        "num_waiting_reqs": 1,
        "num_used_tokens": 12,
        "total_reqs": 2,
    }


async def test_the_routes_answer() -> None:
    small = SmallEngine(clock=SystemClock())
    engine = Engine(small.core, SystemClock())
    app = web.Application()
    AdminRoutes(engine, pb.WorkerInfo(), None, {}, lambda: True, ArrivingRequests()).add_to(app)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    engine.start()
    base = "http://{}:{}".format(*runner.addresses[0][:2])
    async with ClientSession() as client:
        for path in ("/get_load", "/v1/loads", "/health", "/health_generate", "/get_server_info"):
            async with client.get(base + path) as answer:
                assert answer.status == 200, path
                body = await answer.json()
                if path == "/get_load":
                    assert [one["num_reqs"] for one in body] == [0]
    engine.stop()
    await runner.cleanup()
    await asyncio.sleep(0)
