"""Log probabilities of the prompt: every position asked for, once, cached or not."""

import json
from collections.abc import Sequence
from typing import Unpack

import pytest

from asking import Asked
from history_model import expected_greedy, expected_logits
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.generation import AnswerContext
from radixgate.proto.native import parse_generate
from radixgate.worker.steps.logprobs import row_logprobs
from small_engine import Ear, SmallEngine

PROMPT = [(7 * place + place * place) % 64 for place in range(30)]


def scores(ear: Ear, handle: int = 1) -> list[pb.TokenLogprobs]:
    return [entry for item in ear.of(handle) for entry in item.input_logprobs]


def check(entries: Sequence[pb.TokenLogprobs], prompt: Sequence[int], start: int) -> None:
    assert [entry.token_id for entry in entries] == list(prompt[start:])
    for position, entry in enumerate(entries, start):
        if position == 0:
            assert not entry.HasField("logprob")
            continue
        row = row_logprobs(expected_logits(prompt[:position]), prompt[position], 2, [5])
        assert entry.logprob == pytest.approx(row.chosen)
        assert [one.token_id for one in entry.top] == [token for token, _ in row.top]
        assert [one.logprob for one in entry.top] == pytest.approx([p for _, p in row.top])
        assert [one.token_id for one in entry.of_ids] == [5]


@pytest.mark.parametrize("chunk", [-1, 8, 12, 512])
@pytest.mark.parametrize("start", [0, 1, 7, 8, 9, 29, 30, 99])
@pytest.mark.parametrize("warm", [False, True], ids=["cold", "cached"])
def test_each_position_from_the_start_on_is_scored_once(
    chunk: int, start: int, *, warm: bool
) -> None:
    engine = SmallEngine(chunked_prefill_size=chunk)
    if warm:
        engine.answer([*PROMPT, 1], max_tokens=1)
    ear = engine.answer(
        PROMPT, max_tokens=4, logprob_start=start, top_logprobs=2, token_ids_logprob=[5]
    )
    check(scores(ear), PROMPT, start)
    assert ear.ids(1) == expected_greedy(PROMPT, 4)
    assert ear.cached(1) <= max(0, start - 1)
    if warm and start == 9:
        assert ear.cached(1) == 8
    engine.check_idle()


def test_scoring_without_output_and_a_prompt_of_one_token() -> None:
    engine = SmallEngine()
    ear = engine.answer(
        PROMPT, max_tokens=0, logprob_start=0, top_logprobs=2, token_ids_logprob=[5]
    )
    check(scores(ear), PROMPT, 0)
    assert (ear.ids(1), ear.finish(1)) == ([], "LENGTH")
    one = engine.answer([3], max_tokens=0, logprob_start=0)
    assert [entry.token_id for entry in scores(one)] == [3]
    assert not scores(engine.answer(PROMPT, max_tokens=0))
    assert engine.answer([*PROMPT, 1], max_tokens=1).cached(1) == 28, "it has warmed the cache"


def test_the_scores_come_before_the_first_token() -> None:
    ear = SmallEngine().answer(PROMPT, max_tokens=3, logprob_start=0)
    kinds = ["score" if item.input_logprobs else "token" for item in ear.of(1)]
    assert kinds == ["score"] * 4 + ["token"] * 3


def test_choices_are_scored_once_and_continuations_not_again() -> None:
    ear = SmallEngine().answer(PROMPT, max_tokens=2, n=3, logprob_start=4)
    assert len(scores(ear)) == 26
    assert all(not item.input_logprobs for choice in (1, 2) for item in ear.of(1, choice))
    prior = expected_greedy(PROMPT, 2)
    rest = SmallEngine().answer(PROMPT, prior=prior, max_tokens=4, logprob_start=0)
    assert not scores(rest)
    assert rest.ids(1) == expected_greedy(PROMPT, 4)[2:]


def test_a_prompt_that_is_retracted_half_way_goes_on_where_it_was() -> None:
    engine = SmallEngine(pages=16)
    ear = Ear()
    asked = Asked(max_tokens=2, logprob_start=0, top_logprobs=2, token_ids_logprob=[5])
    engine.submit(ear, 1, PROMPT, **asked)
    engine.step()
    engine.step()
    scheduler = engine.core._scheduler
    assert 0 < len(scores(ear)) < 30
    scheduler._retract(scheduler.running[0])
    engine.run()
    check(scores(ear), PROMPT, 0)
    engine.check_idle()


def test_two_prompts_scored_beside_others_get_their_own_rows() -> None:
    engine = SmallEngine(chunked_prefill_size=64, pages=256)
    ear = Ear()
    prompts = [PROMPT, list(range(25)), [9] * 11, PROMPT[::-1]]
    for handle, prompt in enumerate(prompts):
        asked = Asked(max_tokens=3)
        if handle % 2 == 0:
            asked |= Asked(logprob_start=0, top_logprobs=2, token_ids_logprob=[5])
        engine.submit(ear, handle, prompt, **asked)
    engine.run()
    for handle, prompt in enumerate(prompts):
        assert ear.ids(handle) == expected_greedy(prompt, 3)
        if handle % 2 == 0:
            check(scores(ear, handle), prompt, 0)


def native(*, stream: bool, **asked: Unpack[Asked]) -> bytes:
    ear = SmallEngine().answer(PROMPT, **asked)
    request = parse_generate(
        {
            "input_ids": PROMPT,
            "stream": stream,
            "return_logprob": True,
            "logprob_start_len": 0,
            "top_logprobs_num": 2,
            "token_ids_logprob": [5],
            "sampling_params": {"max_new_tokens": 3, "n": asked.get("n", 1)},
        }
    )
    renderer = request.renderer(AnswerContext("r", "m", 0, lambda token: bytes([token])))
    return b"".join(renderer.item(0, item) for item in ear.items) + renderer.end()


SCORED = Asked(max_tokens=3, logprob_start=0, top_logprobs=2, token_ids_logprob=[5])


def test_native_answers_carry_them_under_sglangs_names() -> None:
    meta = json.loads(native(stream=False, **SCORED))["meta_info"]
    assert [entry[1] for entry in meta["input_token_logprobs"]] == PROMPT
    assert meta["input_token_logprobs"][0] == [None, PROMPT[0], None]
    assert [len(tops) for tops in meta["input_top_logprobs"]] == [0] + [2] * 29
    assert [len(ones) for ones in meta["input_token_ids_logprobs"]] == [0] + [1] * 29
    assert len(meta["output_token_logprobs"]) == 3


def test_every_choice_of_a_native_answer_has_them() -> None:
    answers = json.loads(native(stream=False, **(SCORED | Asked(n=2))))
    assert [len(answer["meta_info"]["input_token_logprobs"]) for answer in answers] == [30, 30]


def test_a_native_stream_has_an_event_a_token_and_them_in_each() -> None:
    events = native(stream=True, **SCORED).split(b"\n\n")
    assert len(events) == 3 + 2  # [DONE], and nothing after the last blank line
    first = json.loads(events[0].removeprefix(b"data: "))
    assert len(first["meta_info"]["input_token_logprobs"]) == 30
