"""M02: every form of a prompt keeps its conversation on one worker, and conversations spread."""

import random
import string
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack

import pytest

from radixgate.policies.cache_aware import CacheAwareConfig
from scripted_worker import ScriptedWorker
from small_gateway import CHAT, SmallGateway, small_gateway

CONVERSATIONS, TURNS, WORKERS = 8, 4, 4
Texts = list[str]  # a conversation so far: user and assistant in turn, the system prompt first
Form = Callable[[Texts], Mapping[str, object]]


def words(rng: random.Random, length: int) -> str:
    return "".join(rng.choices(string.ascii_lowercase + " ", k=length))


def messages(texts: Texts, wrap: Callable[[str], object]) -> list[dict[str, object]]:
    roles = ["system", *["user", "assistant"] * len(texts)]
    return [{"role": role, "content": wrap(text)} for role, text in zip(roles, texts, strict=False)]


def as_chat(texts: Texts) -> Mapping[str, object]:
    return {"model": "toy", "messages": messages(texts, lambda text: text)}


def as_parts(texts: Texts) -> Mapping[str, object]:
    def halves(text: str) -> object:
        return [{"type": "text", "text": half} for half in (text[:9], text[9:])]

    return {"model": "toy", "messages": messages(texts, halves)}


def as_text(texts: Texts) -> Mapping[str, object]:
    return {"text": "".join(texts)}


def as_ids(texts: Texts) -> Mapping[str, object]:
    return {"input_ids": list("".join(texts).encode())}


def as_prompts(texts: Texts) -> Mapping[str, object]:
    return {"model": "toy", "prompt": ["".join(texts)]}


FORMS = [
    pytest.param(CHAT, as_chat, id="string-content"),
    pytest.param(CHAT, as_parts, id="parts"),
    pytest.param("/generate", as_text, id="generate-text"),
    pytest.param("/generate", as_ids, id="generate-input-ids"),
    pytest.param("/v1/completions", as_prompts, id="completions-prompt-list"),
]


async def play(gateway: SmallGateway, path: str, form: Form) -> list[list[str]]:
    """All conversations, interleaved; for each the worker of each turn."""
    rng = random.Random(3)
    system = words(rng, 300)
    talks = [[system, words(rng, 2000)] for _ in range(CONVERSATIONS)]
    routes: list[list[str]] = [[] for _ in talks]
    for _ in range(TURNS):
        for talk, route in zip(talks, routes, strict=True):
            reply = await gateway.post(path, form(talk))
            assert reply.status == 200
            route.append(reply.header("x-radixgate-worker") or "")
            talk += [words(rng, 50), words(rng, 200)]
    return routes


async def four_workers(stack: AsyncExitStack, thresholds: CacheAwareConfig) -> SmallGateway:
    workers = [await stack.enter_async_context(ScriptedWorker()) for _ in range(WORKERS)]
    return await stack.enter_async_context(small_gateway(workers, thresholds, policy="cache_aware"))


@pytest.mark.parametrize(("path", "form"), FORMS)
async def test_m02_later_turns_go_to_the_worker_of_the_first(path: str, form: Form) -> None:
    async with AsyncExitStack() as stack:
        gateway = await four_workers(stack, CacheAwareConfig(cache_threshold=0.3))
        routes = await play(gateway, path, form)
        assert all(len(set(route)) == 1 for route in routes), routes
        assert max(Counter(route[0] for route in routes).values()) <= 6


async def test_m02_a_first_turn_that_fell_back_is_remembered_as_well() -> None:
    """So high a threshold that turn 1 never matches: from turn 2 on the match is above it."""
    async with AsyncExitStack() as stack:
        gateway = await four_workers(stack, CacheAwareConfig(cache_threshold=0.7))
        routes = await play(gateway, CHAT, as_chat)
        assert all(len(set(route)) == 1 for route in routes), routes


@pytest.mark.parametrize(("path", "form"), FORMS[:1])
async def test_m02_without_thresholds_conversations_stick_and_spread(path: str, form: Form) -> None:
    async with AsyncExitStack() as stack:
        gateway = await four_workers(stack, CacheAwareConfig())
        routes = await play(gateway, path, form)
        assert all(len(set(route)) == 1 for route in routes), routes
        assert max(Counter(route[0] for route in routes).values()) <= 6
