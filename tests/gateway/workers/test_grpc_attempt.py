"""An attempt at a worker of ours: items in, HTTP out, credit back, and every way it can end."""

import json
from array import array
from random import Random

import pytest

from attached_worker import AttachedWorker, settle
from grpc_attempts import CHAT, CONTEXT, LEASE, Recorder, begin, go_on
from items import item
from radixgate.errors import WorkerFailed, WorkerRefused
from radixgate.gateway.attempt.abort_order import AbortOrder
from radixgate.gateway.attempt.answer_progress import STREAM_CREDIT, AnswerProgress
from radixgate.gateway.attempt.attempt import AnswerCounts
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.native import parse_generate


async def test_a_whole_answer_has_its_length_and_counts() -> None:
    async with AttachedWorker() as worker:
        _, heard, (submit,) = begin(worker, "chat", CHAT)
        sent = (await worker.next_command()).submit
        assert sent.rid == "a"
        assert sent.sampling.HasField("seed"), "a gateway always gives a seed"
        await worker.send(item("He", ids=[1], counts=(9, 4, 1), handle=submit.handle))
        assert heard.status is None, "nothing is sent before the whole answer is there"
        last = item("y", ids=[2], finish="stop", counts=(9, 4, 2), handle=submit.handle)
        await worker.send(last)
        assert heard.status == 200
        assert dict(heard.headers)[b"content-length"] == b"%d" % len(heard.body)
        assert json.loads(heard.body)["choices"][0]["message"]["content"] == "Hey"
        assert heard.counts == AnswerCounts(prompt=9, cached=4, completion=2)
        assert worker.stream.in_flight == 0


async def test_all_that_one_lease_submits_has_its_number() -> None:
    async with AttachedWorker() as worker:
        _, _, submits = begin(worker, "completion", {"prompt": ["a", "b"]}, prompts=2)
        assert [submit.number for submit in submits] == [LEASE, LEASE]
        assert submits[0].handle != submits[1].handle


async def test_a_streams_head_goes_out_with_its_first_item() -> None:
    async with AttachedWorker() as worker:
        _, heard, (submit,) = begin(worker, "chat", {**CHAT, "stream": True})
        await worker.send(item("He", ids=[1], counts=(9, 4, 1), handle=submit.handle))
        assert heard.status == 200
        assert b'"content":"He"' in heard.body
        await worker.send(
            item("", ids=[2], finish="length", counts=(9, 4, 2), handle=submit.handle)
        )
        assert heard.body.endswith(b"data: [DONE]\n\n")
        assert heard.ended


async def test_credit_goes_back_as_the_client_takes_tokens_and_waits_while_it_does_not() -> None:
    async with AttachedWorker() as worker:
        attempt, _, (submit,) = begin(worker, "chat", {**CHAT, "stream": True})
        assert (await worker.next_command()).submit.credit == STREAM_CREDIT
        half = [1] * (STREAM_CREDIT // 2)
        await worker.send(item("x", ids=half, counts=(9, 4, 1), handle=submit.handle))
        assert (await worker.next_command()).credit == pb.Credit(
            handle=submit.handle, tokens=len(half)
        )
        attempt.pause()
        await worker.send(item("x", ids=half, handle=submit.handle))
        assert worker.commands.empty(), "a client that does not read earns no credit"
        attempt.resume()
        assert (await worker.next_command()).credit.tokens == len(half)


async def test_a_refusal_is_the_workers_word_and_final() -> None:
    async with AttachedWorker() as worker:
        _, heard, (first, second) = begin(worker, "completion", {"prompt": ["a", "b"]}, prompts=2)
        for _ in range(2):
            await worker.next_command()
        refused = pb.Refused(handle=first.handle, status=400, field="prompt", message="too long")
        await worker.send(refused=refused)
        assert isinstance(heard.failure, WorkerRefused)
        assert (heard.failure.status, heard.failure.param) == (400, "prompt")
        abort = await worker.next_command()
        assert abort.abort.handle == second.handle, "the other prompt is not computed for nothing"


@pytest.mark.parametrize("status", [429, 503])
async def test_a_worker_that_is_full_lets_another_be_tried(status: int) -> None:
    async with AttachedWorker() as worker:
        _, heard, (submit,) = begin(worker, "chat", CHAT)
        await worker.send(refused=pb.Refused(handle=submit.handle, status=status, message="full"))
        assert isinstance(heard.failure, WorkerFailed)


async def test_a_broken_stream_fails_what_ran_and_opens_again() -> None:
    async with AttachedWorker() as worker:
        _, heard, _ = begin(worker, "chat", CHAT)
        await worker.die()
        assert isinstance(heard.failure, WorkerFailed)
        with pytest.raises(WorkerFailed):
            begin(worker, "chat", CHAT)
        while (await worker.next_command()).WhichOneof("kind") != "hello":
            pass
        assert worker.connections == 2
        begin(worker, "chat", CHAT)


async def test_a_client_that_leaves_aborts_at_once_and_hears_nothing_more() -> None:
    async with AttachedWorker() as worker:
        attempt, heard, (submit,) = begin(worker, "chat", CHAT)
        await worker.next_command()
        attempt.cancel()
        attempt.cancel()
        assert (await worker.next_command()).abort.handle == submit.handle
        await worker.send(
            item("late", ids=[1], finish="abort", counts=(1, 0, 1), handle=submit.handle)
        )
        await worker.die()
        assert heard == Recorder()
        assert worker.commands.empty()


async def test_an_order_to_abort_lets_the_answer_end_by_itself() -> None:
    async with AttachedWorker() as worker:
        body = {"text": "a", "rid": "mine"}
        attempt, heard, (submit,) = begin(worker, "native", body)
        assert (await worker.next_command()).submit.rid == "mine"
        assert attempt.abort(AbortOrder("other")) == 0
        assert attempt.abort(AbortOrder("mine")) == 1
        assert (await worker.next_command()).abort.handle == submit.handle
        await worker.send(
            item("so far", ids=[1], finish="abort", counts=(1, 0, 1), handle=submit.handle)
        )
        assert json.loads(heard.body)["meta_info"]["finish_reason"]["type"] == "abort"
        assert json.loads(heard.body)["text"] == "so far"
        assert attempt.abort(AbortOrder(None)) == 0, "it is over"


async def test_choices_and_prompts_all_have_to_end() -> None:
    async with AttachedWorker() as worker:
        body = {"prompt": ["a", "b"], "n": 2}
        _, heard, submits = begin(worker, "completion", body, prompts=2)
        for submit in submits:
            for choice in (0, 1):
                assert not heard.ended
                done = item("x", ids=[1], choice=choice, finish="stop", counts=(3, 0, 1))
                done.handle = submit.handle
                await worker.send(done)
        assert heard.ended
        assert heard.counts == AnswerCounts(prompt=6, cached=0, completion=4)
        await settle()


async def test_what_was_aborted_by_order_is_marked_so() -> None:
    generation = parse_generate({"text": "a", "rid": "mine"})
    progress = AnswerProgress(generation, [array("I", [1])])
    progress.open(CONTEXT, Random(7))
    async with AttachedWorker() as worker:
        attempt, _, _ = go_on(worker, progress, streamed=False)
        attempt.abort(AbortOrder("other"))
        assert not progress.ended_by_order
        attempt.abort(AbortOrder("mine"))
        assert progress.ended_by_order
