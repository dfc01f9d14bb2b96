"""What each endpoint is sent and what its events say."""

import json

import msgspec
import pytest

from radixgate.errors import ConfigError
from radixgate.loadgen.config import BACKENDS, BenchConfig
from radixgate.loadgen.prompts import ChatPrompt, IdsPrompt, SentPrompt, TextPrompt
from radixgate.loadgen.schedule import PlannedPrompt, ScheduledRequest, plan
from radixgate.loadgen.targets import BodyFields, Event, Target, target_for
from timed_server import chat_chunk, native_event, usage_event


def target(
    backend: str, *, extra: dict[str, object] | None = None, model: str | None = "m"
) -> Target:
    config = BenchConfig(backend=backend, model=model, seed=7, temperature=0.5)
    return target_for(backend, BodyFields.of(config, model or "found", extra or {}))


def request(prompt: SentPrompt) -> ScheduledRequest:
    return plan([PlannedPrompt(prompt, 3, 11)], [0.0])[0]


def body(of: Target, prompt: SentPrompt) -> dict[str, object]:
    parsed: dict[str, object] = json.loads(of.body(request(prompt)))
    return parsed


def events(of: Target, *payloads: object) -> list[Event]:
    return of.events([(float(at), json.dumps(one).encode()) for at, one in enumerate(payloads)])


@pytest.mark.parametrize(
    ("backend", "path"),
    [
        ("radixgate", "/generate"),
        ("sglang", "/generate"),
        ("sglang-native", "/generate"),
        ("sglang-oai", "/v1/completions"),
        ("sglang-oai-chat", "/v1/chat/completions"),
        ("vllm", "/v1/completions"),
        ("vllm-chat", "/v1/chat/completions"),
        ("openai", "/v1/completions"),
        ("openai-chat", "/v1/chat/completions"),
    ],
)
def test_paths(backend: str, path: str) -> None:
    assert target(backend).path == path
    assert backend in BACKENDS


def test_generate_body() -> None:
    assert body(target("sglang"), TextPrompt("hi")) == {
        "text": "hi",
        "sampling_params": {
            "temperature": 0.5,
            "max_new_tokens": 11,
            "ignore_eos": True,
            "sampling_seed": 7,
        },
        "stream": True,
        "model": "m",
    }
    assert body(target("sglang"), IdsPrompt((1, 2)))["input_ids"] == [1, 2]


def test_generate_names_a_model_only_if_the_user_did() -> None:
    assert "model" not in body(target("sglang", model=None), TextPrompt("hi"))


def test_chat_body() -> None:
    assert body(target("openai-chat"), TextPrompt("hi")) == {
        "messages": [{"role": "user", "content": "hi"}],
        "model": "m",
        "temperature": 0.5,
        "max_tokens": 11,
        "ignore_eos": True,
        "seed": 7,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    }


def test_chat_keeps_messages() -> None:
    turns = ChatPrompt((("system", "be kind"), ("user", "hi")))
    assert body(target("openai-chat"), turns)["messages"] == [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "hi"},
    ]


def test_completion_body_takes_text_and_ids() -> None:
    assert body(target("vllm"), TextPrompt("hi"))["prompt"] == "hi"
    assert body(target("vllm"), IdsPrompt((1, 2)))["prompt"] == [1, 2]


@pytest.mark.parametrize(
    ("backend", "prompt"),
    [
        pytest.param("sglang", ChatPrompt((("user", "hi"),)), id="messages-to-generate"),
        pytest.param("vllm", ChatPrompt((("user", "hi"),)), id="messages-to-completions"),
        pytest.param("openai-chat", IdsPrompt((1,)), id="ids-to-chat"),
    ],
)
def test_a_prompt_that_the_endpoint_cannot_take_says_what_to_do(
    backend: str, prompt: SentPrompt
) -> None:
    with pytest.raises(ConfigError, match="use --backend"):
        target(backend).body(request(prompt))


def test_extra_fields_win_and_objects_merge() -> None:
    extra: dict[str, object] = {"sampling_params": {"top_p": 0.5, "ignore_eos": False}, "x": 1}
    found = body(target("sglang", extra=extra), TextPrompt("hi"))
    assert found["x"] == 1
    assert found["sampling_params"] == {
        "temperature": 0.5,
        "max_new_tokens": 11,
        "ignore_eos": False,
        "sampling_seed": 7,
        "top_p": 0.5,
    }


def test_generate_events_carry_text_so_far() -> None:
    found = events(
        target("sglang"),
        native_event("ab", 1, prompt=9, cached=4),
        native_event("ab", 2),
        native_event("abcde", 4, finish="length"),
    )
    assert [event.characters for event in found] == [2, 0, 3]
    assert [event.tokens_so_far for event in found] == [1, 2, 4]
    assert (found[0].prompt_tokens, found[0].cached_tokens) == (9, 4)
    assert [event.finish_reason for event in found] == [None, None, "length"]


def test_generate_events_may_carry_only_what_is_new() -> None:
    found = events(target("sglang"), native_event("ab", 1), native_event("xyz", 2))
    assert [event.characters for event in found] == [2, 3]


def test_chat_events() -> None:
    found = events(
        target("openai-chat"),
        chat_chunk("", role="assistant"),
        chat_chunk("hey"),
        chat_chunk(finish="stop"),
        usage_event(3, prompt=12, cached=8),
    )
    assert [event.characters for event in found] == [0, 3, 0, 0]
    assert [event.of_choice for event in found] == [True, True, True, False]
    assert found[2].finish_reason == "stop"
    assert (found[3].tokens_so_far, found[3].prompt_tokens, found[3].cached_tokens) == (3, 12, 8)


def test_reasoning_and_tool_calls_are_content() -> None:
    found = events(
        target("openai-chat"),
        {"choices": [{"delta": {"reasoning_content": "hm"}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0}]}}]},
    )
    assert [event.characters for event in found] == [2, 1]


def test_completion_events() -> None:
    (found,) = events(target("vllm"), {"choices": [{"text": "abc", "finish_reason": "length"}]})
    assert (found.characters, found.finish_reason) == (3, "length")


@pytest.mark.parametrize(
    ("backend", "payload", "message"),
    [
        ("sglang", {"error": {"message": "too long"}}, "too long"),
        ("openai-chat", {"error": {"message": "too long"}}, "too long"),
        ("openai-chat", {"error": "too long"}, "too long"),
        ("vllm", {"object": "error", "message": "too long"}, "too long"),
        ("vllm", {"object": "error"}, "error"),
        ("vllm", {"error": {}}, "no message"),
    ],
)
def test_error_events(backend: str, payload: object, message: str) -> None:
    (found,) = events(target(backend), payload)
    assert found.error == message


@pytest.mark.parametrize("payload", [{"meta_info": 3}, [], "text"])
def test_nonsense_is_no_event(payload: object) -> None:
    with pytest.raises(msgspec.DecodeError):
        events(target("sglang"), payload)


@pytest.mark.parametrize("backend", ["sglang", "vllm", "vllm-chat"])
def test_a_session_is_named_only_if_asked_for(backend: str) -> None:
    config = BenchConfig(backend=backend, model="m", send_session=True)
    named = target_for(backend, BodyFields.of(config, "m", {}))
    assert body(named, TextPrompt("hi"))["session_id"] == "r0"
    assert "session_id" not in body(target(backend), TextPrompt("hi"))
