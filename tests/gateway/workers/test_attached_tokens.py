"""Single tokens that come in columns: the same answers, credit for all of them in one command."""

import asyncio
from array import array
from collections.abc import Mapping
from random import Random
from typing import cast

import pytest

from attached_worker import AttachedWorker, settle
from grpc_attempts import CHAT, CONTEXT, Recorder, begin, go_on
from items import item
from radixgate.clock import SystemClock
from radixgate.errors import RadixgateError
from radixgate.gateway.attempt.answer_progress import STREAM_CREDIT, AnswerProgress
from radixgate.gateway.attempt.lane import ChunkLane
from radixgate.gateway.loop.loop_turn import LoopTurn
from radixgate.gateway.observe.metrics import GatewayMetrics
from radixgate.gateway.upstream.grpc_messages import BrokenStream
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.openai import parse_chat

STREAMS = {"stream": True, "stream_options": {"include_usage": True}}
ASKED: dict[str, tuple[str, Mapping[str, object], int]] = {
    "a chat": ("chat", {**CHAT, **STREAMS}, 1),
    "a whole chat": ("chat", CHAT, 1),
    "two choices": ("chat", {**CHAT, **STREAMS, "n": 2}, 1),
    "two prompts": ("completion", {"prompt": ["a", "b"], **STREAMS}, 2),
    "an echo": ("completion", {"prompt": "a", "echo": True, **STREAMS}, 1),
    "generate": ("native", {"text": "a", "stream": True}, 1),
    "generate, whole": ("native", {"text": "a"}, 1),
}


class Wire:
    """A transport that takes all."""

    def write(self, data: bytes) -> None: ...

    def is_closing(self) -> bool:
        return False


async def answered(
    kind: str, body: Mapping[str, object], prompts: int, *, columns: bool
) -> Recorder:
    """Every choice gets four items, of which the second and third bring a single token."""
    async with AttachedWorker() as worker:
        _, heard, submits = begin(worker, kind, body, prompts)
        choices = [
            (submit.handle, choice)
            for submit in submits
            for choice in range(submit.sampling.n or 1)
        ]
        for step in range(4):
            items = [
                item(
                    ["He", "", 'l"ö', "o"][step],
                    ids=[step + handle],
                    choice=choice,
                    finish="stop" if step == 3 else None,
                    counts=(9, 4, step + 1) if step in (0, 3) else None,
                    handle=handle,
                )
                for handle, choice in choices
            ]
            await worker.send(*items, columns=columns)
        return heard


@pytest.mark.parametrize("asked", list(ASKED))
async def test_an_answer_reads_the_same_however_its_items_came(asked: str) -> None:
    kind, body, prompts = ASKED[asked]
    by_items = await answered(kind, body, prompts, columns=False)
    assert by_items.ended
    assert await answered(kind, body, prompts, columns=True) == by_items


async def test_credit_takes_along_what_others_have_earned_once_the_worker_has_sent_columns() -> (
    None
):
    async with AttachedWorker() as worker:
        submits = [begin(worker, "chat", {**CHAT, "stream": True})[2][0] for _ in range(3)]
        first, second, third = (submit.handle for submit in submits)
        for _ in submits:
            assert (await worker.next_command()).submit.credit == STREAM_CREDIT
        half = STREAM_CREDIT // 2
        await worker.send(item("x", ids=[1] * half, handle=first))
        assert (await worker.next_command()).credit == pb.Credit(handle=first, tokens=half)
        for _ in range(half):
            await worker.send(
                *(item("x", ids=[1], handle=handle) for handle in (second, third)), columns=True
            )
        assert (await worker.next_command()).credits == pb.Credits(
            handles=[second, third], tokens=[half, half - STREAM_CREDIT // 16]
        )
        assert worker.commands.empty()


async def test_what_has_ended_gets_no_credit() -> None:
    async with AttachedWorker() as worker:
        left, _, (first,) = begin(worker, "chat", {**CHAT, "stream": True})
        _, _, (second,) = begin(worker, "chat", {**CHAT, "stream": True})
        _, _, (third,) = begin(worker, "chat", {**CHAT, "stream": True})
        some = [1] * (STREAM_CREDIT // 4)
        for handle in (first.handle, second.handle, third.handle):
            await worker.send(item("x", ids=some, handle=handle))
        left.cancel()
        await worker.send(item("", finish="stop", counts=(1, 0, 64), handle=second.handle))
        await worker.send(item("x", ids=[1], handle=third.handle), columns=True)
        await worker.send(item("x", ids=some, handle=third.handle))
        sent = [await worker.next_command() for _ in range(5)]
        assert [one.WhichOneof("kind") for one in sent] == [*["submit"] * 3, "abort", "credits"]
        assert list(sent[-1].credits.handles) == [third.handle]


async def test_a_paused_client_earns_its_credit_when_it_goes_on() -> None:
    async with AttachedWorker() as worker:
        attempt, _, (submit,) = begin(worker, "chat", {**CHAT, "stream": True})
        await worker.next_command()
        attempt.pause()
        for _ in range(STREAM_CREDIT):
            await worker.send(item("x", ids=[1], handle=submit.handle), columns=True)
        assert worker.commands.empty()
        attempt.resume()
        credits = (await worker.next_command()).credits
        assert (list(credits.handles), list(credits.tokens)) == ([submit.handle], [STREAM_CREDIT])


async def test_a_paused_client_earns_credit_for_all_that_has_flowed_when_it_goes_on() -> None:
    async with AttachedWorker() as worker:
        attempt, heard, (submit,) = begin(worker, "chat", {**CHAT, "stream": True})
        lane = ChunkLane(LoopTurn(), cast(asyncio.Transport, Wire()))
        lane.begin(SystemClock().now, GatewayMetrics(list), 0.0, b"")
        heard.lane = lambda: lane  # type: ignore[method-assign, assignment]
        await worker.next_command()
        attempt.pause()
        await worker.send(item("x", ids=[1, 2], handle=submit.handle))
        for _ in range(STREAM_CREDIT - 2):
            await worker.send(item("x", ids=[1], handle=submit.handle), columns=True)
        assert worker.commands.empty()
        attempt.resume()
        credits = (await worker.next_command()).credits
        assert (list(credits.handles), list(credits.tokens)) == ([submit.handle], [STREAM_CREDIT])


async def test_a_new_connection_takes_single_credits_until_it_has_sent_columns() -> None:
    async with AttachedWorker() as worker:
        begin(worker, "chat", {**CHAT, "stream": True})
        await worker.send(item("x", ids=[1]), columns=True)
        await worker.die()
        while (await worker.next_command()).WhichOneof("kind") != "hello":
            pass
        _, _, (submit,) = begin(worker, "chat", {**CHAT, "stream": True})
        await worker.next_command()
        half = STREAM_CREDIT // 2
        await worker.send(item("x", ids=[1] * half, handle=submit.handle))
        assert (await worker.next_command()).WhichOneof("kind") == "credit"


async def test_an_answer_that_goes_on_elsewhere_counts_the_tokens_of_columns() -> None:
    progress = AnswerProgress(parse_chat({**CHAT, "stream": True}), [array("I", [1])])
    progress.open(CONTEXT, Random(7))
    async with AttachedWorker() as worker:
        _, _, (submit,) = go_on(worker, progress, streamed=True)
        await worker.send(item("a", ids=[5], counts=(1, 0, 1), handle=submit.handle))
        await worker.send(item("b", ids=[6], handle=submit.handle), columns=True)
        await worker.die()
    progress.open(CONTEXT, Random(7))
    async with AttachedWorker() as worker:
        _, heard, (submit,) = go_on(worker, progress, streamed=True)
        assert array("I", submit.prior_output_ids) == array("I", [5, 6])
        await worker.send(item("c", ids=[7], handle=submit.handle), columns=True)
        assert b'"content":"c"' in heard.body


async def test_a_fault_in_one_answer_leaves_the_others_and_the_stream_alone() -> None:
    async with AttachedWorker() as worker:
        _, broken, (bad,) = begin(worker, "chat", {**CHAT, "stream": True})
        _, heard, (good,) = begin(worker, "chat", {**CHAT, "stream": True})

        def fail(data: bytes) -> None:
            raise ValueError("a fault")

        broken.on_body = fail  # type: ignore[method-assign]
        for text in "ab":
            await worker.send(
                *(item(text, ids=[1], handle=handle) for handle in (bad.handle, good.handle)),
                columns=True,
            )
        await settle()
        assert isinstance(broken.failure, RadixgateError)
        assert b'"content":"b"' in heard.body
        assert worker.connections == 1


@pytest.mark.parametrize(
    ("columns", "lengths"),
    [
        (pb.Tokens(handles=[1, 1], token_ids=[5, 6], texts=["a"]), "2 handles, 2 ids and 1"),
        (pb.Tokens(handles=[1], token_ids=[5, 6], texts=["a", "b"]), "1 handles, 2 ids and 2"),
    ],
)
async def test_columns_of_unequal_length_break_the_stream_before_any_of_them_is_taken(
    columns: pb.Tokens, lengths: str
) -> None:
    async with AttachedWorker() as worker:
        _, heard, _ = begin(worker, "chat", {**CHAT, "stream": True})
        before = bytes(heard.body)
        with pytest.raises(BrokenStream, match=lengths):
            await worker.send_batch(pb.StepBatch(items=[item("x", ids=[1])], tokens=columns))
        assert bytes(heard.body) == before


async def test_what_is_no_batch_ends_the_stream() -> None:
    async with AttachedWorker() as worker:
        with pytest.raises(BrokenStream, match="no batch of a step"):
            worker.say(b"\xff\xff")
