"""A coroutine's first step is taken at once, and the rest as in any task."""

import asyncio

import pytest

from radixgate.gateway.exchange.first_step import begun


async def test_what_waits_for_nothing_has_ended() -> None:
    done: list[str] = []

    async def steps() -> None:
        done.append("all")

    assert begun(steps()) is None
    assert done == ["all"]


async def test_what_waits_goes_on_in_a_task() -> None:
    done: list[object] = []
    first: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def steps() -> None:
        done.append("first")
        done.append(await first)
        await asyncio.sleep(0)
        done.append(await asyncio.get_running_loop().run_in_executor(None, int, "7"))

    task = begun(steps())
    assert task is not None
    assert done == ["first"]
    first.set_result(3)
    await task
    assert done == ["first", 3, 7]


async def test_what_it_waits_for_may_fail() -> None:
    first: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    caught: list[str] = []

    async def steps() -> None:
        try:
            await first
        except ValueError as error:
            caught.append(str(error))
        raise KeyError("last")

    task = begun(steps())
    assert task is not None
    first.set_exception(ValueError("first"))
    with pytest.raises(KeyError, match="last"):
        await task
    assert caught == ["first"]


async def test_its_first_step_fails_where_it_is_made() -> None:
    async def steps() -> None:
        raise ValueError("at once")

    with pytest.raises(ValueError, match="at once"):
        begun(steps())


@pytest.mark.parametrize("turns", [0, 1])
@pytest.mark.parametrize("come", [False, True])
async def test_cancelled_it_is_not_gone_on_with(turns: int, come: bool) -> None:
    """`turns`: of the loop, before. `come`: what it waits for has, and it has not heard of it."""
    first: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    done: list[str] = []

    async def steps() -> None:
        try:
            await first
        except asyncio.CancelledError:
            done.append("cancelled")
            raise
        done.append("went on")

    task = begun(steps())
    assert task is not None
    for _ in range(turns):
        await asyncio.sleep(0)
    if come:
        first.set_result(3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["cancelled"]
    assert first.cancelled() != come


@pytest.mark.parametrize("turns", [0, 1])
async def test_cancelled_it_may_still_tidy_up(turns: int) -> None:
    done: list[str] = []

    async def steps() -> None:
        try:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            done.append("tidy")

    task = begun(steps())
    assert task is not None
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await task
    assert done == ["tidy"]
