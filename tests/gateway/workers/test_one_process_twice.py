"""One process that is named twice is one worker: its load and its cache would stand there twice."""

import asyncio

import pytest

from radixgate.fleet.fleet import Fleet, WorkerIdentity, WorkerState
from radixgate.gateway.workers.workers import Member
from scripted_worker import Await, Recorded, ScriptedWorker, Step, json_answer
from small_gateway import small_gateway
from until import until


def calls_itself(worker: ScriptedWorker, instance: str) -> None:
    worker.admin["/server_info"] = lambda request: json_answer({"instance_id": instance})


def is_refused(member: Member) -> bool:
    return member.trouble.endswith("which is a worker already")


def broken_off(worker: ScriptedWorker) -> None:
    """So that it is asked who it is by now."""
    for connection in worker.connections:
        connection.reset()


async def test_a_second_address_of_a_worker_waits_until_the_first_is_gone() -> None:
    async with ScriptedWorker() as worker, ScriptedWorker() as twin:
        for one in (worker, twin):
            calls_itself(one, "the same")
        async with small_gateway([worker]) as gateway:
            workers = gateway.gateway.workers
            second = workers.add(twin.url)
            await until(lambda: bool(second.trouble))
            first = workers.find(worker.url)
            assert second.trouble == (
                f"worker {second.address.id} is the same process as {first.address.id},"
                " which is a worker already"
            )
            assert workers.ready() == [first]
            workers.pause(first, paused=True)
            second.trouble = ""
            await until(lambda: bool(second.trouble))
            assert second.state is WorkerState.JOINING, "a pause is not got round so"
            workers.remove(worker.url)
            await until(lambda: workers.ready() == [second])


async def test_an_address_where_another_worker_s_process_answers_by_now_is_down() -> None:
    async with ScriptedWorker() as one, ScriptedWorker() as other:
        calls_itself(one, "one")
        calls_itself(other, "other")
        async with small_gateway([one, other]) as gateway:
            workers = gateway.gateway.workers
            calls_itself(other, "one")
            broken_off(other)
            await until(lambda: workers.find(other.url).state is WorkerState.DOWN)
            assert [member.address.url for member in workers.ready()] == [one.url]


async def test_the_name_that_sees_a_restart_first_is_the_worker_though_the_other_is_heard() -> None:
    async with ScriptedWorker() as worker, ScriptedWorker() as twin:
        for one in (worker, twin):
            calls_itself(one, "before")
        async with small_gateway([worker]) as gateway:
            workers = gateway.gateway.workers
            first, second = workers.find(worker.url), workers.add(twin.url)
            await until(lambda: bool(second.trouble))
            calls_itself(twin, "restarted")
            broken_off(twin)
            await until(lambda: workers.ready() == [first, second])

            def heard_meanwhile(request: Recorded) -> list[Step]:
                first.heard_elsewhere = True
                return json_answer({})

            worker.admin["/health"] = heard_meanwhile
            calls_itself(worker, "restarted")
            broken_off(worker)
            await until(lambda: first.state is WorkerState.DOWN)
            assert first.trouble == (
                f"worker {first.address.id} is the same process as {second.address.id},"
                " which is a worker already"
            )
            assert workers.ready() == [second]


async def test_of_two_names_that_return_at_once_one_is_the_worker() -> None:
    async with ScriptedWorker() as one, ScriptedWorker() as other:
        calls_itself(one, "one")
        calls_itself(other, "other")
        async with small_gateway([one, other]) as gateway:
            workers = gateway.gateway.workers
            told = asyncio.Event()
            await one.stop()
            await other.stop()
            await until(lambda: not workers.ready())
            admitted = set[str]()

            async def all_told(member: Member) -> None:
                admitted.add(member.address.url)
                await told.wait()

            workers.before_ready = all_told
            for worker in (one, other):
                calls_itself(worker, "both")
                await worker.start()
            await until(lambda: any(is_refused(member) for member in workers.members()))
            told.set()
            await until(lambda: bool(workers.ready()))
            (ready,) = workers.ready()
            (down,) = set(workers.members()) - {ready}
            assert is_refused(down)
            assert down.state is WorkerState.DOWN
            assert admitted == {ready.address.url}
            assert (ready.incarnation, down.incarnation) == (2, 1), "nothing is left to be undone"


async def test_one_that_leaves_and_is_added_again_has_lost_its_place_to_a_second_name() -> None:
    async with ScriptedWorker() as worker, ScriptedWorker() as twin:
        for one in (worker, twin):
            calls_itself(one, "the same")
        end = asyncio.Event()
        worker.script = lambda request: [Await(end), *json_answer({})]
        async with small_gateway([worker]) as gateway:
            workers = gateway.gateway.workers
            first = workers.find(worker.url)
            running = asyncio.create_task(gateway.chat())
            await until(lambda: len(worker.requests) == 1)
            workers.remove(worker.url)
            assert first.state is WorkerState.DRAINING
            second = workers.add(twin.url)
            await until(lambda: workers.ready() == [second])
            assert workers.add(worker.url) is first
            assert (first.state, is_refused(first)) == (WorkerState.DOWN, True), "at once"
            first.trouble = ""
            await until(lambda: is_refused(first))
            assert workers.ready() == [second]
            end.set()
            assert (await running).status == 200, "what ran there runs on"
            workers.remove(twin.url)
            await until(lambda: workers.ready() == [first])


async def test_a_fault_of_ours_in_admitting_a_worker_does_not_end_its_checks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    admit, faults = Fleet.admit, [ValueError("a fault")]

    def faulty(fleet: Fleet, identity: WorkerIdentity) -> None:
        if faults:
            raise faults.pop()
        admit(fleet, identity)

    monkeypatch.setattr(Fleet, "admit", faulty)
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        assert (await gateway.chat()).status == 200
    assert faults == []
