"""An attempt at a worker of ours: items in, HTTP out, credit back, and every way it can end."""

import json
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

import pytest

from attached_worker import AttachedWorker, settle
from items import item
from radixgate.errors import RadixgateError, WorkerBusy, WorkerFailed, WorkerRefused
from radixgate.gateway.abort_order import AbortOrder
from radixgate.gateway.answer_progress import STREAM_CREDIT, AnswerProgress
from radixgate.gateway.attach import Receiver
from radixgate.gateway.attempt import AnswerCounts, Headers, WholeHead
from radixgate.gateway.grpc_attempt import GrpcAttempt
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.generation import AnswerContext
from radixgate.proto.native import parse_generate
from radixgate.proto.openai import parse_chat, parse_completion
from radixgate.proto.sse import SseScanner


@dataclass
class Recorder:
    """A `Downstream` that keeps what it is told."""

    status: int | None = None
    headers: Headers = field(default_factory=list)
    body: bytes = b""
    counts: AnswerCounts | None = None
    ended: bool = False
    failure: RadixgateError | None = None

    def on_head(self, status: int, headers: Headers) -> None:
        assert self.status is None
        self.status, self.headers = status, headers

    def on_body(self, data: bytes) -> None:
        assert data
        assert not self.over
        self.body += data

    def on_answer(self, head: WholeHead, own: bytes, body: bytes, counts: AnswerCounts) -> None:
        self.on_head(head.status, head.headers)
        self.on_body(body)
        self.on_end(counts)

    def on_end(self, counts: AnswerCounts | None) -> None:
        assert not self.over
        self.ended, self.counts = True, counts

    def on_failure(self, error: RadixgateError) -> None:
        assert not self.over
        self.failure = error

    @property
    def over(self) -> bool:
        return self.ended or self.failure is not None


CONTEXT = AnswerContext("r1", "toy", 0, lambda token: bytes([token]))
PARSERS = {"chat": parse_chat, "completion": parse_completion, "native": parse_generate}


def begin(
    worker: AttachedWorker, kind: str, body: Mapping[str, object], prompts: int = 1
) -> tuple[GrpcAttempt, Recorder, list[pb.Submit]]:
    generation = PARSERS[kind](body)
    progress = AnswerProgress(generation, [array("I", [1])] * prompts)
    progress.open(CONTEXT, Random(7))
    return go_on(worker, progress, streamed=generation.stream)


def go_on(
    worker: AttachedWorker, progress: AnswerProgress, *, streamed: bool
) -> tuple[GrpcAttempt, Recorder, list[pb.Submit]]:
    """An attempt at what is left, and what it submits."""
    recorder = Recorder()
    attempt = GrpcAttempt(
        worker.stream, recorder, progress, streamed=streamed, on_over=lambda attempt: None
    )
    submitted: list[pb.Submit] = []
    to_stream = worker.stream.submit

    def submit(submits: Sequence[pb.Submit], receiver: Receiver) -> list[int]:
        submitted.extend(submits)
        return to_stream(submits, receiver)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker.stream, "submit", submit)
        attempt.begin(iter("abcdef").__next__)
    return attempt, recorder, submitted


CHAT = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}


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
