"""What stands beside a chat's messages is read once, and each request is what it would be alone."""

import json
from array import array
from collections.abc import Mapping
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixgate.errors import RequestError
from radixgate.gateway.asking.known_settings import KnownSettings
from radixgate.gateway.attempt.answer_progress import AnswerProgress
from radixgate.proto.fields import decode_object
from radixgate.proto.generation import AnswerContext, GenerationRequest
from radixgate.proto.openai import parse_chat

HI = [{"role": "user", "content": "hi"}]
CONTEXT = AnswerContext("r", "m", 0, lambda token: b"")


def told(parse: object, body: Mapping[str, object]) -> object:
    """All that shows of how a body was read, or how it was refused."""
    assert callable(parse)
    try:
        request: GenerationRequest = parse(decode_object(json.dumps(body).encode()))
    except RequestError as error:
        return error.message, error.param, error.code
    renderer = request.renderer(CONTEXT)
    return (
        request.prompts,
        request.sampling.SerializeToString(deterministic=True),
        type(renderer),
        [getattr(request, name) for name in ("stream", "model", "rids", "salt", "adapter")],
        (request.priority, request.session),
    )


values: st.SearchStrategy[object] = st.sampled_from(
    [0, 1, 1.0, True, False, None, 0.5, -1, 2**40, 10**30, "a", [], ["x"], {}]
)
settings_ = st.dictionaries(
    st.sampled_from(
        [
            *("model", "stream", "stream_options", "max_tokens", "n", "seed", "temperature"),
            *("top_k", "logprobs", "top_logprobs", "priority", "stop", "tool_choice", "user"),
            *("cache_salt", "rid", "echo", "logit_bias", "unknown"),
        ]
    ),
    values | st.sampled_from([{"include_usage": True}, {"include_usage": 1}, "none"]),
    max_size=3,
)
conversations = st.fixed_dictionaries(
    {"messages": st.sampled_from([HI, [], 7, [{"role": 1}], [*HI, {"role": "tool"}]])},
    optional={
        "tools": st.sampled_from([None, [], [{"type": "function"}], [1]]),
        "chat_template_kwargs": st.sampled_from([{}, {"thinking": True}, 5]),
    },
)


@pytest.mark.slow
@given(st.lists(st.tuples(settings_, conversations), max_size=6))
def test_a_request_is_what_it_is_without_a_memory(
    bodies: list[tuple[dict[str, object], dict[str, object]]],
) -> None:
    known = KnownSettings()
    for settings, conversation in [*bodies, *bodies]:
        body = {**settings, **conversation}
        assert told(known.parse_chat, body) == told(parse_chat, body)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param({"temperature": 1}, {"temperature": True}, id="true-is-no-number"),
        pytest.param({"max_tokens": 2}, {"max_tokens": 2.5}, id="no-whole-number"),
        pytest.param({"stream": False}, {"stream": 0}, id="zero-is-no-flag"),
        pytest.param({}, {"model": 7}, id="a-model-that-is-no-text"),
    ],
)
def test_what_python_takes_for_equal_is_told_apart(
    one: dict[str, object], other: dict[str, object]
) -> None:
    known = KnownSettings()
    known.parse_chat({"messages": HI, **one})
    with pytest.raises(RequestError):
        known.parse_chat({"messages": HI, **other})


@pytest.mark.parametrize(
    "own",
    [
        {"cache_salt": "s"},
        {"user": "u"},
        {"rid": "r"},
        {"stop": ["x"]},
        {"chat_template_kwargs": {"a": "b"}},
        {"metadata": {"a": "b"}},
        {"seed": 7},
    ],
    ids=lambda own: next(iter(own)),
)
def test_of_what_a_client_says_of_itself_nothing_is_kept(own: dict[str, object]) -> None:
    known = KnownSettings()
    known.parse_chat({"messages": HI, **own})
    assert len(known) == 0


def test_no_more_than_so_many_are_kept() -> None:
    known = KnownSettings(most=3)
    for most in range(1, 8):
        known.parse_chat({"messages": HI, "max_tokens": most})
    assert len(known) == 1


def test_what_becomes_of_one_request_does_not_reach_the_next() -> None:
    known = KnownSettings()
    known.parse_chat({"messages": HI, "max_tokens": 9})
    seeds = []
    for drawn in (1, 2):
        request = known.parse_chat({"messages": HI, "max_tokens": 9})
        assert not request.sampling.HasField("seed")
        progress = AnswerProgress(request, (array("I", [7]),))
        progress.open(CONTEXT, Random(drawn))
        ((_, _, submit),) = progress.submits(lambda: "rid")
        seeds.append(submit.sampling.seed)
    assert seeds == [Random(1).getrandbits(63), Random(2).getrandbits(63)]
