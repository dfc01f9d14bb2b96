"""What a client hears of a worker that fails: never that the answer is complete."""

from array import array

import pytest

from history_model import expected_greedy
from radixgate.clock import SystemClock
from radixgate.errors import WorkerRefused
from radixgate.proto.generation import GenerationRequest
from radixgate.proto.native import parse_generate
from radixgate.worker.engine.engine import Engine
from radixgate.worker.serving.answer import Answer, Asked
from small_engine import Ear, SmallEngine


def test_a_failed_pass_refuses_those_it_would_have_begun_and_ends_nobody_else() -> None:
    engine = SmallEngine(max_running_requests=1)
    ear = Ear()
    engine.submit(ear, 1, [1], max_tokens=4)
    engine.submit(ear, 2, [2], max_tokens=4)
    engine.model.fail_next = True
    engine.step()
    refused = ear.refused[1]
    assert (refused.status, refused.HasField("field")) == (500, False)
    assert "on fire" in refused.message
    assert not ear.of(1)
    engine.run()
    assert ear.ids(2) == expected_greedy([2], 4)
    stats = engine.core.stats()
    assert (stats.failed_steps_total, stats.aborted_total, stats.finished_total) == (1, 1, 1)
    assert engine.ended == {1: 1, 2: 1}
    engine.check_idle()


def test_after_the_first_token_what_was_said_stands_and_the_end_is_a_failure() -> None:
    engine = SmallEngine()
    ear = Ear()
    engine.submit(ear, 1, [1], max_tokens=9)
    engine.run_until(lambda: len(ear.ids(1)) == 3)
    engine.model.fail_next = True
    engine.step()
    last = ear.of(1)[-1]
    assert (ear.finish(1), last.finish.status, last.text) == ("ABORT", 500, "")
    assert ear.ids(1) == expected_greedy([1], 3)
    assert last.counts.completion == 3
    assert engine.ended == {1: 1}
    engine.check_idle()


def test_all_choices_of_a_request_fail_together() -> None:
    engine = SmallEngine()
    ear = Ear()
    engine.submit(ear, 1, [1] * 20, max_tokens=9, n=3)
    engine.run_until(lambda: bool(ear.of(1)))
    engine.model.fail_next = True
    engine.step()
    assert [ear.of(1, choice)[-1].finish.status for choice in range(3)] == [500] * 3
    engine.check_idle()


def test_an_abort_by_order_is_no_failure() -> None:
    engine = SmallEngine()
    ear = Ear()
    engine.submit(ear, 1, [1], max_tokens=9, deadline_s=0.0)
    engine.submit(ear, 2, [2], max_tokens=9)
    engine.core.abort(ear, 2, "enough")
    engine.run()
    for handle in (1, 2):
        assert ear.finish(handle) == "ABORT"
        assert not ear.of(handle)[-1].finish.HasField("status")


def asked(request: GenerationRequest) -> Asked:
    prompts = [prompt.token_ids(_NoEncoder(), "") for prompt in request.prompts]
    return Asked(request, prompts, "r", "m", 0, lambda token: bytes([token]))


class _NoEncoder:
    highest_id = 0

    def encode_text(self, text: str) -> "array[int]":
        raise NotImplementedError

    def render_messages(self, *_: object, **__: object) -> str:
        raise NotImplementedError

    def encode_rendered(self, text: str) -> "array[int]":
        raise NotImplementedError


@pytest.mark.parametrize("stream", [False, True])
async def test_an_http_answer_that_has_not_begun_fails_with_its_status(stream: bool) -> None:
    small = SmallEngine(clock=SystemClock())
    engine = Engine(small.core, SystemClock())
    small.model.fail_next = True
    request = parse_generate(
        {"input_ids": [1], "sampling_params": {"max_new_tokens": 3}, "stream": stream}
    )
    engine.start()
    answer = Answer(engine, asked(request))
    with pytest.raises(WorkerRefused, match="on fire") as caught:
        await anext(answer.pieces())
    assert caught.value.status == 500
    answer.close()
    engine.stop()


async def test_an_http_stream_that_has_begun_makes_up_no_finish() -> None:
    small = SmallEngine(clock=SystemClock(), pages=1024)
    engine = Engine(small.core, SystemClock())
    params = {"max_new_tokens": 3_000, "temperature": 0}
    request = parse_generate({"input_ids": [1], "sampling_params": params, "stream": True})
    engine.start()
    answer = Answer(engine, asked(request))
    pieces = answer.pieces()
    seen = [await anext(pieces)]
    small.model.fail_next = True
    with pytest.raises(WorkerRefused, match="on fire"):
        seen.extend([piece async for piece in pieces])
    answer.close()
    engine.stop()
    assert b"abort" not in b"".join(seen)
