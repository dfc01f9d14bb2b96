"""What is refused, with which field, and how long an output may be."""

import pytest

from asking import Asked
from clocks import FakeClock
from history_model import expected_greedy
from small_engine import Ear, SmallEngine
from vocabularies import tokenizer_of


def refusal(engine: SmallEngine, ids: list[int], **asked: object) -> tuple[int, str, str]:
    ear = engine.answer(ids, **Asked(**asked))  # type: ignore[typeddict-item]
    assert not ear.items
    refused = ear.refused[1]
    engine.check_idle()
    return refused.status, refused.field, refused.message


@pytest.mark.parametrize(
    ("prompt", "max_tokens", "tokens"),
    [
        pytest.param(63, 1, 1, id="room-for-one"),
        pytest.param(60, 100, 4, id="clamped-to-the-context"),
        pytest.param(60, 4, 4, id="exactly"),
        pytest.param(10, None, 54, id="no-limit-given"),
        pytest.param(64, 0, 0, id="scored-only"),
    ],
)
def test_g06_an_output_ends_with_the_context(
    prompt: int, max_tokens: int | None, tokens: int
) -> None:
    engine = SmallEngine(context=64)
    asked = Asked() if max_tokens is None else Asked(max_tokens=max_tokens)
    ear = engine.answer([3] * prompt, **asked)
    assert ear.ids(1) == expected_greedy([3] * prompt, tokens)
    assert ear.finish(1) == "LENGTH"


@pytest.mark.parametrize("length", [64, 65])
def test_g06_a_prompt_without_room_for_output_is_refused(length: int) -> None:
    status, field, message = refusal(SmallEngine(context=64), [3] * length, max_tokens=1)
    assert (status, field) == (400, "input_ids")
    assert str(length) in message
    assert "64" in message


def test_a_prompt_that_the_pool_can_never_hold_is_refused_with_the_numbers() -> None:
    engine = SmallEngine(pages=4)
    status, field, message = refusal(engine, [3] * 16)
    assert (status, field) == (400, "input_ids")
    assert "16 tokens" in message
    assert "--max-total-tokens" in message
    assert engine.answer([3] * 15).finish(1) == "LENGTH"


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        pytest.param({"temperature": -1.0}, "temperature", id="temperature"),
        pytest.param({"top_p": 0.0}, "top_p", id="top_p"),
        pytest.param({"logit_bias": {64: 1.0}}, "logit_bias", id="bias-of-no-token"),
        pytest.param({"stop_token_ids": [99]}, "stop_token_ids", id="stop-token-of-none"),
        pytest.param({"adapter": "a"}, "adapter", id="adapter"),
        pytest.param({"stop": ["x"]}, "stop", id="stop-without-tokenizer"),
        pytest.param({"prior": [1], "n": 2}, "n", id="two-choices-cannot-go-on"),
        pytest.param({"prior": [64]}, "prior_output_ids", id="prior-token-of-none"),
    ],
)
def test_what_cannot_be_is_refused_by_name(asked: dict[str, object], field: str) -> None:
    status, named, _ = refusal(SmallEngine(), [1, 2], **asked)
    assert (status, named) == (400, field)


@pytest.mark.parametrize("ids", [[], [64]], ids=["empty", "beyond-the-vocabulary"])
def test_a_prompt_must_be_tokens_of_the_model(ids: list[int]) -> None:
    assert refusal(SmallEngine(), ids)[:2] == (400, "input_ids")


def test_too_many_waiting_are_refused_and_may_come_again() -> None:
    engine = SmallEngine(max_running_requests=1, max_queued_requests=2)
    ear = Ear()
    for handle in range(5):
        engine.submit(ear, handle, [handle], max_tokens=2)
    engine.run()
    assert sorted(ear.refused) == [3, 4]
    assert ear.refused[3].status == 503
    assert [ear.finish(handle) for handle in range(3)] == ["LENGTH"] * 3
    engine.check_idle()


def test_a_deadline_ends_a_request_wherever_it_is() -> None:
    clock = FakeClock()
    engine = SmallEngine(clock=clock, max_running_requests=1)
    ear = Ear()
    engine.submit(ear, 1, [1, 2], max_tokens=1000, deadline_s=5.0)
    engine.submit(ear, 2, [3, 4], max_tokens=1000, deadline_s=7.0)
    engine.step()
    assert engine.core.next_deadline_s() == clock.now() + 5.0
    clock.advance(10.0)
    engine.run()
    assert (ear.finish(1), ear.finish(2)) == ("ABORT", "ABORT")
    assert "deadline" in ear.of(1)[-1].finish.message
    assert engine.core.next_deadline_s() is None
    engine.check_idle()


@pytest.mark.parametrize(
    ("prior", "asked", "finish"),
    [
        pytest.param([7, 8], Asked(max_tokens=2), "LENGTH", id="all-tokens-were-delivered"),
        pytest.param([7, 8, 9], Asked(max_tokens=2), "LENGTH", id="and-one-more"),
        pytest.param([7, 260], Asked(), "STOP", id="it-had-ended"),
        pytest.param([97, 98], Asked(stop=["ab"]), "STOP", id="its-stop-string-had-come"),
    ],
)
def test_prior_output_that_had_ended_ends_at_once(
    prior: list[int], asked: Asked, finish: str
) -> None:
    tokenizer = tokenizer_of("hello")
    assert tokenizer.eos_token_ids == {260}
    engine = SmallEngine(tokenizer=tokenizer, vocab_size=300)
    ear = engine.answer([1, 2, 3], **(asked | Asked(prior=prior)))
    assert (ear.ids(1), ear.text(1), ear.finish(1)) == ([], "", finish)
    assert engine.model.passes == 0


def test_min_tokens_counts_prior_output() -> None:
    engine = SmallEngine()
    # Any token but 0 would end it, and 0 is what it says as long as none may.
    others = list(range(1, 64))
    asked = Asked(max_tokens=6, min_tokens=4, stop_token_ids=others, logit_bias={0: -1.0})
    whole = engine.answer([5], **asked)
    assert whole.ids(1)[:4] == [0, 0, 0, 0]
    assert len(engine.answer([5], **(asked | Asked(min_tokens=0))).ids(1)) == 1
    rest = engine.answer([5], **(asked | Asked(prior=[0, 0])))
    assert rest.ids(1) == whole.ids(1)[2:]
