"""A peer that says nothing is asked whether it lives, and is left if it does not say so."""

import asyncio

import pytest
from h2 import events

from http2_peer import Opened, goodbye, opened
from radixgate.gateway.upstream import http2_silence
from radixgate.gateway.upstream.http2_silence import Pings
from until import until
from virtual_time import in_virtual_time


def asked(one: Opened) -> int:
    return one.peer.count(events.PingReceived)


@in_virtual_time
async def test_who_answers_pings_is_asked_again_and_again() -> None:
    async with opened(pings=Pings(after_s=0.01, within_s=0.1)) as one:
        await until(lambda: asked(one) == 1)
        one.peer.say()
        await until(lambda: asked(one) == 2)
        one.peer.say()
        assert one.alive


@in_virtual_time
async def test_who_does_not_answer_a_ping_is_dead() -> None:
    async with opened(pings=Pings(after_s=0.01, within_s=0.02)) as one:
        assert await one.why() == "no answer to a ping within 0.02 s"
        assert asked(one) == 1
        assert one.peer.closed


@in_virtual_time
async def test_any_word_shows_that_it_lives() -> None:
    async with opened(pings=Pings(after_s=0.01, within_s=0.02)) as one:
        for _ in range(20):
            await asyncio.sleep(0.005)
            one.peer.h2.increment_flow_control_window(1)
            one.peer.h2.clear_outbound_data_buffer()
            one.peer.deliver(b"\0\0\4\x08\0\0\0\0\0\0\0\0\1")
        assert one.alive


@in_virtual_time
async def test_who_finds_pings_too_many_gets_fewer_from_then_on() -> None:
    pings = Pings()
    async with opened(pings=pings) as one:
        one.peer.deliver(goodbye(2**31 - 1, 11, b"too_many_pings"))
        said = "the worker is going away: ENHANCE_YOUR_CALM, too_many_pings"
        assert await one.why() == said
    assert pings == Pings(after_s=20.0, within_s=5.0)
    async with opened(pings=pings) as one:
        one.peer.deliver(goodbye(2**31 - 1, 11, b"too many streams"))
    assert pings.after_s == 20.0


def test_pings_get_no_rarer_than_servers_take_them_and_start_over() -> None:
    pings = Pings()
    asked_after = []
    for _ in range(7):
        pings.be_rarer()
        asked_after.append(pings.after_s)
    assert asked_after == [20.0, 40.0, 80.0, 160.0, 300.0, 300.0, 300.0]
    pings.start_over()
    assert pings == Pings(after_s=10.0, within_s=5.0)


@in_virtual_time
async def test_who_never_speaks_http2_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http2_silence, "FIRST_WORD_S", 0.02)
    async with opened(settled=False) as one:
        assert await one.why() == "no word of HTTP/2 within 0.02 s"
    async with opened() as one:
        await asyncio.sleep(0.03)
        assert one.alive
