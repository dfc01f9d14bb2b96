"""What is left of an answer when a worker of ours fails, and how another goes on from it."""

import json
from array import array
from random import Random

import pytest

from attached_worker import AttachedWorker
from grpc_attempts import CHAT, CONTEXT, begin, go_on
from items import item
from radixgate.errors import WorkerBusy, WorkerFailed, WorkerRefused
from radixgate.gateway.attempt.answer_progress import AnswerProgress
from radixgate.gateway.attempt.attempt import AnswerCounts
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.native import parse_generate
from radixgate.proto.openai import parse_chat, parse_completion
from radixgate.proto.sse import SseScanner


async def test_a_worker_that_broke_before_the_first_token_may_be_replaced() -> None:
    async with AttachedWorker() as worker:
        _, heard, (submit,) = begin(worker, "chat", CHAT)
        await worker.send(refused=pb.Refused(handle=submit.handle, status=500, message="on fire"))
        assert isinstance(heard.failure, WorkerFailed)
        assert heard.status is None


@pytest.mark.parametrize("stream", [False, True])
async def test_an_output_that_breaks_off_gets_no_invented_finish(stream: bool) -> None:
    async with AttachedWorker() as worker:
        _, heard, submits = begin(worker, "chat", {**CHAT, "stream": stream})
        (submit,) = submits
        await worker.send(item("He", ids=[1], counts=(9, 4, 1), handle=submit.handle))
        broken = item("", finish="abort", counts=(9, 4, 1), handle=submit.handle)
        broken.finish.status, broken.finish.message = 500, "on fire"
        await worker.send(broken)
        assert isinstance(heard.failure, WorkerFailed)
        assert b'"abort"' not in heard.body
        assert worker.stream.in_flight == 0


async def test_another_worker_goes_on_from_the_tokens_delivered() -> None:
    body = {**CHAT, "stream": True, "stream_options": {"include_usage": True}}
    generation = parse_chat(body)
    progress = AnswerProgress(generation, [array("I", [1])])
    progress.open(CONTEXT, Random(7))
    async with AttachedWorker() as first:
        _, heard, (begun,) = go_on(first, progress, streamed=True)
        await first.send(item("He", ids=[72, 101], counts=(9, 4, 2), handle=begun.handle))
        await first.send(item("", ids=[108], handle=begun.handle))
        await first.die()
        assert isinstance(heard.failure, WorkerFailed)
        assert not progress.complete
    async with AttachedWorker() as second:
        _, rest, (left,) = go_on(second, progress, streamed=True)
        assert array("I", left.prior_output_ids).tolist() == [72, 101, 108]
        assert left.sampling.seed == begun.sampling.seed
        await second.send(
            item("llo", ids=[108, 111], finish="length", counts=(9, 8, 2), handle=left.handle)
        )
    assert rest.status is None, "the head was sent by the first attempt"
    text = "".join(
        choice["delta"]["content"]
        for event in SseScanner().feed(heard.body + rest.body)
        if event != b"[DONE]"
        for choice in json.loads(event)["choices"]
    )
    assert text == "Hello"
    assert rest.counts == AnswerCounts(prompt=9, cached=8, completion=5)


async def test_of_several_choices_each_open_one_goes_on_by_its_number() -> None:
    generation = parse_completion({"prompt": ["a", "b"], "n": 3})
    progress = AnswerProgress(generation, [array("I", [1]), array("I", [2])])
    progress.open(CONTEXT, Random(7))
    async with AttachedWorker() as first:
        _, _, (one, two) = go_on(first, progress, streamed=False)
        assert (one.sampling.n, two.sampling.n) == (3, 3)
        for choice, finish in ((0, "stop"), (1, None)):
            made = item("x", ids=[5], choice=choice, finish=finish, counts=(1, 0, 1))
            made.handle = one.handle
            await first.send(made)
        await first.die()
    async with AttachedWorker() as second:
        _, _, submits = go_on(second, progress, streamed=False)
    left = [
        (s.input_ids[0], s.first_choice, s.sampling.n, len(s.prior_output_ids)) for s in submits
    ]
    assert left == [(1, 1, 1, 4), (1, 2, 1, 0), (2, 0, 3, 0)]


async def test_a_rid_that_is_still_ending_is_no_clash_with_itself() -> None:
    generation = parse_generate({"text": "a", "rid": "mine"})
    progress = AnswerProgress(generation, [array("I", [1])])
    for expected in (WorkerRefused, WorkerBusy):
        progress.open(CONTEXT, Random(7))
        async with AttachedWorker() as worker:
            _, heard, (submit,) = go_on(worker, progress, streamed=False)
            refused = pb.Refused(handle=submit.handle, status=409, message="mine is live")
            await worker.send(refused=refused)
        assert isinstance(heard.failure, expected)
