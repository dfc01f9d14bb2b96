"""Greedy output of the real model equals the plain forward, id for id, whatever the engine does."""

import asyncio
from collections.abc import Sequence

import pytest
import torch

from asking import submit
from radixgate.clock import SystemClock
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.text.tokenizer import Tokenizer
from radixgate.worker.config import EngineConfig
from radixgate.worker.engine import Engine
from radixgate.worker.model_store import open_model
from radixgate.worker.open_engine import open_engine
from radixgate.worker.reference import reference_logits

LENGTHS = (1, 2, 3, 5, 8, 15, 16, 17, 31, 32, 33, 48, 64, 100, 128, 200, 300, 400, 511, 600)
NEW_TOKENS = 64
TEXT = (
    "A harbour town wakes before the sun does. Nets are mended on the quay, the baker counts his"
    " trays, and the ferry's bell rings twice for those who overslept. In {year} the old lighthouse"
    " was sold to a painter, who kept the lamp and threw out the stairs. "
)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_greedy_output_is_the_references() -> None:
    """A pool too small for all (so prefixes are evicted and requests wait), chunks smaller than
    most prompts, everything at once, and the same again over what is cached."""
    model = open_model("smollm2")
    tokenizer = Tokenizer.from_bundle(model.tokenizer_bundle)
    text = "".join(TEXT.format(year=1800 + number) for number in range(12))
    ids = tokenizer.encode(text)
    # Half of the prompts begin alike, the others at a place of their own.
    prompts = [
        list(ids[place * (number % 2) :][:length])
        for number, (place, length) in enumerate(zip(range(7, 27), LENGTHS, strict=True))
    ]
    config = EngineConfig(
        model_path="smollm2", max_total_tokens=2048, chunked_prefill_size=96, debug_checks=True
    )
    engine = open_engine(config, model, SystemClock())
    engine.start()
    try:
        first = await outputs(engine, prompts)
        second = await outputs(engine, prompts)
        stats = engine.stats()
    finally:
        engine.stop()
    assert first == second
    assert stats.cached_tokens_total > 0
    assert stats.evicted_tokens_total > 0
    assert stats.leaks_total == 0
    for prompt, output in zip(prompts, first, strict=True):
        assert len(output) == NEW_TOKENS
        logits = reference_logits(model.config, model.tensors, prompt + output[:-1])
        check_greedy(logits[len(prompt) - 1 :], output)


def check_greedy(logits: torch.Tensor, output: Sequence[int]) -> None:
    """Each token is the likeliest after those before it; another one only within 1e-3 of it."""
    for place, (row, token) in enumerate(zip(logits, output, strict=True)):
        gap = float(row.max() - row[token])
        assert gap <= 1e-3, f"token {place} is {gap} behind the reference's choice"


async def outputs(engine: Engine, prompts: Sequence[Sequence[int]]) -> list[list[int]]:
    sink = Collector(len(prompts))
    for handle, prompt in enumerate(prompts):
        engine.submit(sink, submit(handle, prompt, max_tokens=NEW_TOKENS, ignore_eos=True))
    await sink.done.wait()
    engine.detach(sink)
    return sink.ids


class Collector:
    """A sink that knows when the last of its requests has ended."""

    def __init__(self, requests: int) -> None:
        self.ids: list[list[int]] = [[] for _ in range(requests)]
        self.done = asyncio.Event()
        self._open = requests

    def deliver(self, batch: pb.StepBatch) -> None:
        assert not batch.refused
        for item in batch.items:
            self.ids[item.handle] += item.token_ids
            self._open -= item.HasField("finish")
        if not self._open:
            self.done.set()
