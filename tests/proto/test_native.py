"""SGLang's `/generate`: the request, and the answer whole and streamed."""

import json
from typing import Any

import pytest

from items import item
from radixgate.errors import RequestError
from radixgate.proto.generation import AnswerContext
from radixgate.proto.native import parse_generate
from radixgate.proto.openai import parse_chat
from radixgate.proto.request_schemas import GENERATE
from radixgate.proto.sampling_fields import NATIVE_NAMES
from radixgate.proto.sse import SseScanner

CONTEXT = AnswerContext("r1", "toy", 0, lambda token: bytes([token]), rids=("mine",))


def test_defaults_are_sglangs() -> None:
    request = parse_generate({"text": "a"})
    assert request.sampling.max_tokens == 128
    assert not request.sampling.HasField("temperature")
    assert request.rids == ()


def test_zero_new_tokens_score_a_prompt() -> None:
    params = {"max_new_tokens": 0}
    assert parse_generate({"text": "a", "sampling_params": params}).sampling.max_tokens == 0


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "text"),
        ({"text": "a", "input_ids": [1]}, "text"),
        ({"text": 5}, "text"),
        ({"text": []}, "text"),
        ({"input_ids": []}, "input_ids"),
        ({"input_ids": [[1], 2]}, "input_ids[1]"),
        ({"input_ids": [1, "x"]}, "input_ids[1]"),
        ({"text": "a", "sampling_params": 3}, "sampling_params"),
        ({"text": "a", "sampling_params": [{}]}, "sampling_params"),
        ({"text": "a", "sampling_params": {"top_p": 0}}, "sampling_params.top_p"),
        (
            {"text": "a", "sampling_params": {"max_new_tokens": -1}},
            "sampling_params.max_new_tokens",
        ),
        (
            {"text": "a", "sampling_params": {"min_new_tokens": 500}},
            "sampling_params.min_new_tokens",
        ),
        ({"text": "a", "sampling_params": {"json_schema": "{}"}}, "sampling_params.json_schema"),
        ({"text": "a", "sampling_params": {"max_tokens": 5}}, "sampling_params.max_tokens"),
        ({"text": "a", "sampling_params": {"min_tokens": 5}}, "sampling_params.min_tokens"),
        ({"text": "a", "sampling_params": {"temprature": 0}}, "sampling_params.temprature"),
        ({"text": "a", "sampling_params": {"best_of": None}}, "sampling_params.best_of"),
        ({"text": "a", "top_logprobs_num": 99}, "top_logprobs_num"),
        ({"text": "a", "token_ids_logprob": [2**32]}, "token_ids_logprob[0]"),
        ({"text": ["a", "b"], "rid": "r"}, "rid"),
        ({"text": ["a", "b"], "rid": ["r", "r"]}, "rid"),
        ({"text": "a", "image_data": "x"}, "image_data"),
        ({"text": "a", "return_prompt_token_ids": True}, "return_prompt_token_ids"),
        ({"text": "a", "return_entropy": True}, "return_entropy"),
        ({"text": "a", "max_thinking_tokens": 9}, "max_thinking_tokens"),
        ({"text": ["a", "b"], "lora_path": [None, "x"]}, "lora_path"),
        ({"text": "a", "sampling_params": {"stop_regex": "a"}}, "sampling_params.stop_regex"),
    ],
)
def test_a_wrong_request_names_its_field(body: dict[str, object], field: str) -> None:
    with pytest.raises(RequestError) as wrong:
        parse_generate(body)
    assert wrong.value.param == field


def test_every_name_that_sglang_has_is_known_and_told_in_the_schema() -> None:
    told = GENERATE["anyOf"][0]["properties"]["sampling_params"]["properties"]
    assert told.keys() == NATIVE_NAMES
    params = {
        "stream_interval": 2,
        "custom_params": {"a": 1},
        "spaces_between_special_tokens": True,
    }
    assert parse_generate({"text": "a", "sampling_params": params}).sampling.max_tokens == 128


def answer(body: dict[str, object], *items: tuple[int, Any]) -> Any:
    renderer = parse_generate(body).renderer(CONTEXT)
    sent = b"".join(renderer.item(prompt, one) for prompt, one in items) + renderer.end()
    if not body.get("stream"):
        return json.loads(sent)
    *events, done = list(SseScanner().feed(sent))
    assert done == b"[DONE]"
    return [json.loads(event) for event in events]


def test_a_batch_may_name_what_is_not_built_and_ask_for_none_of_it() -> None:
    body: dict[str, object] = {"text": ["a", "b"], "lora_path": [None, None], "image_data": []}
    assert len(parse_generate(body).prompts) == 2


FIRST = item("He", ids=[72, 101], counts=(7, 4, 2))
LAST = item("y", ids=[121], finish="length", counts=(7, 4, 3))


def test_a_whole_answer() -> None:
    LAST.counts.e2e_s = 0.25
    LAST.weight_version = "v1"
    assert answer({"text": "a"}, (0, FIRST), (0, LAST)) == {
        "text": "Hey",
        "output_ids": [72, 101, 121],
        "meta_info": {
            "id": "mine",
            "finish_reason": {"type": "length", "length": 3},
            "prompt_tokens": 7,
            "completion_tokens": 3,
            "cached_tokens": 4,
            "weight_version": "v1",
            "num_retractions": 0,
            "e2e_latency": 0.25,
            "queue_time": 0.0,
        },
    }


def test_events_carry_everything_so_far() -> None:
    first, last = answer({"text": "a", "stream": True}, (0, FIRST), (0, LAST))
    assert (first["text"], first["output_ids"]) == ("He", [72, 101])
    assert first["meta_info"]["finish_reason"] is None
    assert (last["text"], last["meta_info"]["completion_tokens"]) == ("Hey", 3)


def test_a_batch_is_answered_by_an_array_and_its_events_by_index() -> None:
    done = item("x", finish="stop", counts=(1, 0, 1))
    assert [a["text"] for a in answer({"text": ["a", "b"]}, (1, done), (0, done))] == ["x", "x"]
    (event,) = answer({"text": ["a"], "stream": True}, (0, done))
    assert event["index"] == 0


@pytest.mark.parametrize(
    ("matched", "shown"),
    [({"stop": "END"}, "END"), ({"token_id": 2}, 2), ({}, None)],
)
def test_a_stop_says_what_it_matched(matched: dict[str, Any], shown: object) -> None:
    done = item("x", finish="stop", counts=(1, 0, 1))
    for name, value in matched.items():
        setattr(done.finish, name, value)
    assert answer({"text": "a"}, (0, done))["meta_info"]["finish_reason"] == {
        "type": "stop",
        "matched": shown,
    }


def test_an_empty_rid_names_nobody() -> None:
    assert parse_generate({"text": "a", "rid": ""}).rids == ()
    assert parse_chat({"messages": [{"role": "user", "content": "a"}], "rid": ""}).rids == ()
