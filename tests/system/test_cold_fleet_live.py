"""No pile-up on a cold fleet, affinity where it pays: four real workers, no flags.

25 s on a quiet machine at most, of which some 10 are for starting the workers. On such a one

    RADIXGATE_LIVE_ROWS=1 pytest -m slow tests/system/test_cold_fleet_live.py

also counts requests where they depend on how the machine deals out its cores.
"""

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from live_fleet import LiveFleet, empty_fleet

QUIET = "RADIXGATE_LIVE_ROWS" in os.environ
# A policy that piles up does so each time; a machine that is busy does to one draw what it rarely
# does to three.
DRAWS = 1 if QUIET else 3
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_000)]
CHAT = "/v1/chat/completions"
WORKERS = 4
POLICIES = ("kv_cost", "cache_aware")


@dataclass(frozen=True)
class Reply:
    worker: str
    cached: int
    text: str
    took_s: float


class Client:
    """Asks chats of a fleet, and counts who answered."""

    def __init__(self, fleet: LiveFleet, seed: int) -> None:
        self._fleet = fleet
        self.rng = random.Random(seed)

    def words(self, characters: int) -> str:
        """Like no other text."""
        return "".join(self.rng.choices("abcdefghijklmnop ", k=characters))

    async def ask(self, messages: Sequence[dict[str, str]], **fields: object) -> Reply:
        body = {"model": "toy", "messages": messages, "max_tokens": 4, "temperature": 0, **fields}
        asked = time.monotonic()
        status, headers, answer = await self._fleet.post(CHAT, body)
        took_s = time.monotonic() - asked
        assert status == 200, answer
        details = answer["usage"]["prompt_tokens_details"] or {}
        text: str = answer["choices"][0]["message"]["content"]
        cached = details.get("cached_tokens") or 0
        return Reply(headers["x-radixgate-worker"], cached, text, took_s)

    async def ask_many(
        self, chats: Sequence[Sequence[dict[str, str]]], concurrency: int, **fields: object
    ) -> list[Reply]:
        places = asyncio.Semaphore(concurrency)

        async def one(messages: Sequence[dict[str, str]]) -> Reply:
            async with places:
                return await self.ask(messages, **fields)

        return list(await asyncio.gather(*map(one, chats)))


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def system(text: str) -> dict[str, str]:
    return {"role": "system", "content": text}


def top_share(replies: Sequence[Reply]) -> float:
    counts = Counter(reply.worker for reply in replies)
    return max(counts.values()) / len(replies)


def top_share_in_flight(replies: Sequence[Reply]) -> float:
    """Of the time that requests were in flight.

    A worker that gets more of the machine answers more requests, and should; how many wait at each
    is what the policy decides.
    """
    times = dict.fromkeys((reply.worker for reply in replies), 0.0)
    for reply in replies:
        times[reply.worker] += reply.took_s
    return max(times.values()) / sum(times.values())


async def unrelated_prompts(client: Client) -> None:
    """40, one after the other: at most 16 at one worker; what is over may be luck once."""

    async def draw() -> int:
        replies = [await client.ask([user(client.words(300))]) for _ in range(40)]
        return max(Counter(reply.worker for reply in replies).values())

    most = await draw()
    if 17 <= most <= 20:
        most = await draw()
    assert most <= 16


async def a_shared_system_prompt(client: Client) -> None:
    """256 requests, 32 at once, under one system prompt of a thousand tokens.

    That is what others make of 4,000 characters; the toy's tokens are bytes.
    """
    shared = system(client.words(1_000))
    chats = [[shared, user(client.words(40))] for _ in range(256)]
    # Answers of some length: else the first worker to have the prefix answers all there are
    # before another has computed it.
    replies = await client.ask_many(chats, 32, max_tokens=32)
    assert top_share_in_flight(replies) <= 0.4
    if QUIET:
        assert top_share(replies) <= 0.4
    cached = sum(reply.cached > 900 for reply in replies)
    assert cached >= 0.8 * len(replies)  # replicated, and then found again


async def one_prompt_at_once(client: Client) -> None:
    chat = [user(client.words(1_000))]
    # So long that none is over before the last is sent.
    replies = await client.ask_many([chat] * 128, 128, max_tokens=64)
    assert len({reply.worker for reply in replies}) >= 2
    assert top_share(replies) <= 0.6
    assert len({reply.text for reply in replies}) == 1


async def conversations(client: Client) -> None:
    """16 conversations of 5 turns with one system prompt."""
    shared = system(client.words(400))

    async def converse(opening: str) -> list[Reply]:
        chat, replies = [shared, user(opening)], []
        for _ in range(5):
            replies.append(await client.ask(chat))
            answer = {"role": "assistant", "content": replies[-1].text}
            chat += [answer, user(client.words(60))]
        return replies

    turns = await asyncio.gather(*(converse(client.words(600)) for _ in range(16)))
    assert top_share([reply for replies in turns for reply in replies]) <= 0.4
    # A worker that gets no core for long has a queue that is not worth its warmth.
    later = [(reply, replies[0].worker) for replies in turns for reply in replies[1:]]
    assert sum(reply.cached > 900 for reply, _ in later) >= 0.75 * len(later)
    if QUIET:
        assert all(reply.worker == home for reply, home in later)
        assert all(replies[-1].cached > 900 for replies in turns)


async def salts(client: Client) -> None:
    """Eight salts of one prompt share nothing, and each finds its own again."""
    chat = [user(client.words(1_000))]
    names = [client.words(8) for _ in range(8)]
    first = [await client.ask(chat, cache_salt=salt) for salt in names]
    again = [await client.ask(chat, cache_salt=salt) for salt in names]
    assert [reply.cached for reply in first] == [0] * 8
    assert all(reply.cached >= 960 for reply in again)


ROWS: list[Callable[[Client], Awaitable[None]]] = [
    unrelated_prompts,
    a_shared_system_prompt,
    one_prompt_at_once,
    conversations,
    salts,
]


@asynccontextmanager
async def gateway(fleet: LiveFleet, policy: str) -> AsyncIterator[None]:
    """Before workers that are cold."""
    for worker in fleet.workers:
        status, _, _ = await fleet.post("/flush_cache", {}, at=worker.http)
        assert status == 200
    await fleet.start_gateway("--policy", policy, "--seed", "1")
    await fleet.ready_workers(WORKERS)
    yield
    assert fleet.gateway is not None
    await fleet.gateway.stop(5.0)


async def test_a_cold_fleet_is_used_whole_and_warm_where_it_pays() -> None:
    async with empty_fleet() as fleet:
        await asyncio.gather(*(fleet.add_worker("--enable-cache-report") for _ in range(WORKERS)))
        for policy in POLICIES:
            async with gateway(fleet, policy):
                for number, row in enumerate(ROWS):
                    clients = [Client(fleet, seed=DRAWS * number + n) for n in range(DRAWS)]
                    await hold(row, clients, f"{row.__name__} under {policy}")


async def hold(
    row: Callable[[Client], Awaitable[None]], clients: Sequence[Client], what: str
) -> None:
    """With the first of the clients, each of which says other things, or else with the next."""
    for client in clients:
        try:
            return await row(client)
        except AssertionError as failed:
            failed.add_note(what)
            if client is clients[-1]:
                raise
