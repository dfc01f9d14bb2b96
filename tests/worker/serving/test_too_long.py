"""The worker's own server refuses a text that is many times too long by its beginning."""

from array import array
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from radixgate.clock import SystemClock
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.http_errors import errors_as_json
from radixgate.text.prompt_encoder import PromptEncoder
from radixgate.worker.engine.engine import Engine
from radixgate.worker.serving.arriving import ArrivingRequests
from radixgate.worker.serving.http_server import GenerationRoutes
from radixgate.worker.weights.toy import toy_tokenizer_bundle
from raw_client import RawClient, request
from small_engine import SmallEngine

CONTEXT = 64
MANY = "ab " * 200_000


class CountingEncoder(PromptEncoder):
    """Remembers how much it was given."""

    def __init__(self) -> None:
        super().__init__(toy_tokenizer_bundle())
        self.encoded = 0
        self._encode, self.cache.encode = self.cache.encode, self._counted  # type: ignore[method-assign]

    def _counted(self, text: str) -> "array[int]":
        self.encoded += len(text)
        return self._encode(text)


@asynccontextmanager
async def served() -> AsyncIterator[tuple[int, CountingEncoder]]:
    """The port of a worker, and its encoder."""
    small, encoder = SmallEngine(clock=SystemClock(), vocab_size=512), CountingEncoder()
    engine = Engine(small.core, SystemClock())
    info = pb.WorkerInfo(model="m", vocab_size=512, context_length=CONTEXT)
    app = web.Application(middlewares=[errors_as_json], client_max_size=2**24)
    GenerationRoutes(
        engine, encoder, info, SystemClock().now, lambda: True, ArrivingRequests()
    ).add_to(app)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    engine.start()
    yield runner.addresses[0][1], encoder
    engine.stop()
    await runner.cleanup()


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        pytest.param("/v1/completions", {"prompt": MANY}, "prompt", id="completion"),
        pytest.param("/v1/completions", {"prompt": ["a", MANY]}, "prompt", id="the-second"),
        pytest.param("/generate", {"text": MANY}, "text", id="native"),
        pytest.param(
            "/v1/chat/completions",
            {"messages": [{"role": "system", "content": MANY}, {"role": "user", "content": "a"}]},
            "messages",
            id="chat",
        ),
    ],
)
async def test_only_its_beginning_is_encoded(path: str, body: object, field: str) -> None:
    async with served() as (port, encoder), RawClient(port) as client:
        refused = await client.ask(request(path, body))
        assert refused.status == 400
        assert refused.json["error"]["code"] == "context_length_exceeded"
        assert refused.json["error"]["param"] == field
        assert "far more than 64 tokens" in refused.json["error"]["message"]
        assert encoder.encoded < 20_000


async def test_what_is_a_little_too_long_is_told_by_how_much() -> None:
    async with served() as (port, _), RawClient(port) as client:
        refused = await client.ask(request("/generate", {"input_ids": [1] * CONTEXT}))
        assert "input_ids has 64 tokens" in refused.json["error"]["message"]
