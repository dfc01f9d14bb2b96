"""An order to abort finds requests that are still being tokenized, and they get an answer."""

import asyncio
import threading
from array import array
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import ClientSession, web

from radixgate.clock import SystemClock
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.text.prompt_encoder import PromptEncoder
from radixgate.worker.engine.engine import Engine
from radixgate.worker.serving.admin_routes import AdminRoutes
from radixgate.worker.serving.arriving import ArrivingRequests
from radixgate.worker.serving.http_server import GenerationRoutes
from radixgate.worker.weights.toy import toy_tokenizer_bundle
from small_engine import SmallEngine
from until import until


class HeldEncoder(PromptEncoder):
    """Tokenizes only once it is let go."""

    def __init__(self) -> None:
        super().__init__(toy_tokenizer_bundle())
        self.let_go = threading.Event()

    def encode_text(self, text: str) -> "array[int]":
        assert self.let_go.wait(20.0)
        return super().encode_text(text)


@asynccontextmanager
async def worker() -> AsyncIterator[tuple[str, HeldEncoder, ArrivingRequests]]:
    """Its address, its encoder, and who is on the way to its engine."""
    small = SmallEngine(clock=SystemClock(), vocab_size=512)
    engine, encoder, arriving_requests = (
        Engine(small.core, SystemClock()),
        HeldEncoder(),
        ArrivingRequests(),
    )
    info = pb.WorkerInfo(model="m", vocab_size=512, context_length=64)
    app = web.Application()
    GenerationRoutes(
        engine, encoder, info, SystemClock().now, lambda: True, arriving_requests
    ).add_to(app)
    AdminRoutes(engine, info, None, {}, lambda: True, arriving_requests).add_to(app)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    engine.start()
    yield "http://{}:{}".format(*runner.addresses[0][:2]), encoder, arriving_requests
    encoder.let_go.set()
    engine.stop()
    await runner.cleanup()


@pytest.mark.parametrize(
    ("order", "aborted"),
    [
        pytest.param({"abort_all": True}, 2, id="all"),
        pytest.param({"rid": "r-1"}, 1, id="exactly-this-one"),
        pytest.param({"rid": "r-1", "prefix": True}, 2, id="those-that-begin-so"),
        pytest.param({"rid": "r"}, 0, id="nobody"),
    ],
)
async def test_who_is_still_tokenized_is_aborted(order: dict[str, object], aborted: int) -> None:
    async with worker() as (url, encoder, arriving_requests), ClientSession() as client:

        async def post(path: str, body: object) -> dict[str, Any]:
            async with client.post(url + path, json=body) as answer:
                assert answer.status == 200
                said: dict[str, Any] = await answer.json()
                return said

        async def generate(rid: str) -> dict[str, Any]:
            few = {"max_new_tokens": 3, "temperature": 0, "ignore_eos": True}
            return await post("/generate", {"text": "abc", "rid": rid, "sampling_params": few})

        asked = [asyncio.create_task(generate(rid)) for rid in ("r-1", "r-10")]
        await until(lambda: len(arriving_requests) == 2)
        assert await post("/abort_request", order) == {"aborted": aborted}
        encoder.let_go.set()
        ends = [(await one)["meta_info"]["finish_reason"]["type"] for one in asked]
        assert ends == ["abort"] * aborted + ["length"] * (2 - aborted)
        assert len(arriving_requests) == 0


@pytest.mark.parametrize(
    ("order", "aborted", "ends"),
    [
        pytest.param({"rid": "b-2"}, 1, ["length", "abort", "length"], id="one-of-a-batch"),
        pytest.param({"rid": "b", "prefix": True}, 2, ["length", "abort", "abort"], id="two-of-it"),
        pytest.param({"abort_all": True}, 3, ["abort"] * 3, id="all-of-it"),
    ],
)
async def test_of_a_batch_only_those_end_that_were_named(
    order: dict[str, object], aborted: int, ends: list[str]
) -> None:
    async with worker() as (url, encoder, arriving_requests), ClientSession() as client:

        async def generate(body: object) -> list[dict[str, Any]]:
            async with client.post(url + "/generate", json=body) as answer:
                said: list[dict[str, Any]] = await answer.json()
                return said

        few = {"max_new_tokens": 3, "temperature": 0, "ignore_eos": True}
        batch = {"text": ["ab", "cd", "ef"], "rid": ["a-1", "b-2", "b-3"], "sampling_params": few}
        asked = asyncio.create_task(generate(batch))
        await until(lambda: len(arriving_requests) == 1)
        async with client.post(url + "/abort_request", json=order) as answer:
            assert await answer.json() == {"aborted": aborted}
        encoder.let_go.set()
        assert [one["meta_info"]["finish_reason"]["type"] for one in await asked] == ends


def test_who_was_aborted_already_counts_once_and_who_gave_no_rid_ends_with_all() -> None:
    requests = ArrivingRequests()
    with requests.of(2, ["one", "two"]) as named, requests.of(3, []) as nameless:
        assert requests.abort_rid("two") == 1
        assert requests.abort_rid("t", prefix=True) == 0
        assert named.aborted == {1}
        assert requests.abort_all() == 4
        assert nameless.aborted == {0, 1, 2}
