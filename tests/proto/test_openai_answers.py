"""The bytes of chat and text completions: whole, streamed, and equal to one another."""

import json
from typing import Any

import pytest

from items import item
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.generation import AnswerContext, GenerationRequest, Renderer
from radixgate.proto.openai import parse_chat, parse_completion
from radixgate.proto.sse import SseScanner

CONTEXT = AnswerContext("r1", "toy", 1_700_000_000, lambda token: bytes([token]))
ITEMS = [
    item("He", ids=[72, 101], counts=(7, 4, 2)),
    item("", ids=[108]),  # held back: nothing to show yet
    item("llo", ids=[108, 111]),
    item("!", ids=[33], finish="length", counts=(7, 4, 6)),
]


def chat(**fields: object) -> GenerationRequest:
    return parse_chat({"messages": [{"role": "user", "content": "hi"}], **fields})


def play(request: GenerationRequest, items: list[pb.Item]) -> bytes:
    renderer: Renderer = request.renderer(CONTEXT)
    return b"".join(renderer.item(0, one) for one in items) + renderer.end()


def events(stream: bytes) -> list[Any]:
    *rest, done = list(SseScanner().feed(stream))
    assert done == b"[DONE]"
    return [json.loads(event) for event in rest]


def test_a_whole_chat() -> None:
    answer = json.loads(play(chat(), ITEMS))
    assert answer == {
        "id": "chatcmpl-r1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "toy",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hello!"},
                "logprobs": None,
                "finish_reason": "length",
            }
        ],
        "usage": {
            "prompt_tokens": 7,
            "completion_tokens": 6,
            "total_tokens": 13,
            "prompt_tokens_details": {"cached_tokens": 4},
        },
    }


def test_g12_a_stream_has_one_finish_that_carries_the_last_text_and_no_usage_unasked() -> None:
    chunks = events(play(chat(stream=True), ITEMS))
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[0] == {"role": "assistant", "content": "He"}
    assert [delta["content"] for delta in deltas] == ["He", "llo", "!"]
    assert [c["choices"][0]["finish_reason"] for c in chunks] == [None, None, "length"]
    assert not any("usage" in chunk for chunk in chunks)


@pytest.mark.parametrize("options", [{}, {"include_usage": False}, None])
def test_g12_usage_comes_only_when_asked(options: object) -> None:
    assert not any(
        "usage" in c for c in events(play(chat(stream=True, stream_options=options), ITEMS))
    )


def test_g12_usage_is_the_last_event_and_equals_the_whole_answers() -> None:
    request = chat(stream=True, stream_options={"include_usage": True})
    last = events(play(request, ITEMS))[-1]
    assert last["choices"] == []
    assert last["usage"] == json.loads(play(chat(), ITEMS))["usage"]


def test_choices_have_an_index_of_their_own_and_a_prompt_counts_once() -> None:
    items = [
        item("a", choice=0, finish="stop", counts=(5, 0, 1)),
        item("b", choice=1, finish="stop", counts=(5, 5, 1)),
    ]
    answer = json.loads(play(chat(n=2), items))
    assert [c["message"]["content"] for c in answer["choices"]] == ["a", "b"]
    assert answer["usage"]["prompt_tokens"] == 5
    assert answer["usage"]["completion_tokens"] == 2
    assert answer["usage"]["prompt_tokens_details"]["cached_tokens"] == 0


def test_prompts_of_a_batch_are_numbered_before_choices() -> None:
    request = parse_completion({"prompt": ["x", "y"], "n": 2})
    renderer = request.renderer(CONTEXT)
    for prompt in (1, 0):
        for choice in (0, 1):
            done = item(f"{prompt}{choice}", choice=choice, finish="stop", counts=(1, 0, 1))
            renderer.item(prompt, done)
    choices = json.loads(renderer.end())["choices"]
    assert [(c["index"], c["text"]) for c in choices] == [
        (0, "00"),
        (1, "01"),
        (2, "10"),
        (3, "11"),
    ]


def with_logprobs(text: str, *tokens: int, finish: str | None = None) -> pb.Item:
    made = item(text, ids=tokens, finish=finish)
    for token in tokens:
        entry = made.logprobs.add(token_id=token, logprob=-0.5)
        entry.top.add(token_id=65, logprob=-1.5)
    return made


def test_logprobs_of_held_tokens_come_with_the_text_that_is_sent() -> None:
    items = [with_logprobs("", 72), with_logprobs("Hi", 105), with_logprobs("", finish="stop")]
    request = chat(stream=True, logprobs=True, top_logprobs=1)
    assert request.sampling.top_logprobs == 1
    first, last = events(play(request, items))
    assert [one["token"] for one in first["choices"][0]["logprobs"]["content"]] == ["H", "i"]
    assert first["choices"][0]["logprobs"]["content"][0] == {
        "token": "H",
        "logprob": -0.5,
        "bytes": [72],
        "top_logprobs": [{"token": "A", "logprob": -1.5, "bytes": [65]}],
    }
    assert last["choices"][0]["logprobs"] is None


def test_logprobs_of_a_text_completion_are_parallel_arrays() -> None:
    request = parse_completion({"prompt": "a", "logprobs": 1})
    answer = json.loads(play(request, [with_logprobs("Hi", 72, 105, finish="stop")]))
    assert answer["choices"][0]["logprobs"] == {
        "tokens": ["H", "i"],
        "token_logprobs": [-0.5, -0.5],
        "top_logprobs": [{"A": -1.5}, {"A": -1.5}],
        "text_offset": [0, 1],
    }


@pytest.mark.parametrize("stream", [True, False])
def test_offsets_count_characters_from_the_first_token_of_the_choice_on(stream: bool) -> None:
    request = parse_completion({"prompt": "a", "logprobs": 1, "stream": stream, "n": 2})
    items = [
        with_logprobs("a", 97),
        with_logprobs("", 0xC3),
        with_logprobs("é", 0xA9),
        with_logprobs("b", 98, 99, finish="stop"),
        with_logprobs("z", 122, finish="stop"),
    ]
    items[-1].choice = 1
    answer = play(request, items)
    whole = events(answer) if stream else [json.loads(answer)]
    offsets: dict[int, list[int]] = {0: [], 1: []}
    for choice in (choice for event in whole for choice in event["choices"]):
        offsets[choice["index"]] += choice["logprobs"]["text_offset"]
    assert offsets == {0: [0, 1, 1, 2, 3], 1: [0]}


def test_each_event_tells_its_usage_where_that_was_asked_for() -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    request = chat(stream=True, n=2, stream_options=options)
    other = item("z", ids=[122], choice=1, finish="stop", counts=(7, 7, 1))
    told = events(play(request, [*ITEMS[:3], other, ITEMS[3]]))
    assert [
        (event["choices"][0]["index"], event["usage"]["completion_tokens"]) for event in told[:-1]
    ] == [(0, 2), (0, 5), (1, 1), (0, 6)]
    assert told[0]["usage"] == {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
    assert (told[-1]["choices"], told[-1]["usage"]["completion_tokens"]) == ([], 7)
    whole = chat(stream_options=options)
    assert "usage" in json.loads(play(whole, ITEMS))


def test_single_tokens_tell_their_usage_too() -> None:
    request = parse_completion(
        {"prompt": "a", "stream": True, "stream_options": {"continuous_usage_stats": True}}
    )
    renderer = request.renderer(CONTEXT)
    stream = renderer.item(0, item("H", ids=[72], counts=(7, 4, 1)))
    stream += renderer.token_of(0).next(105, "i") + renderer.item(0, item(finish="stop"))
    told = events(stream + renderer.end())
    assert [event["usage"]["completion_tokens"] for event in told] == [1, 2, 2]


def test_usage_says_what_was_cached_unless_told_not_to() -> None:
    for report in (True, False):
        for stream in (True, False):
            body = {"prompt": "a", "stream": stream, "stream_options": {"include_usage": True}}
            context = AnswerContext("r", "m", 0, lambda token: b"", report_cached=report)
            renderer = parse_completion(body).renderer(context)
            renderer.item(0, item("Hi", ids=[1], finish="stop", counts=(9, 4, 1)))
            assert (b'"cached_tokens":4' in renderer.end()) == report


def scored(token: int, logprob: float | None) -> pb.TokenLogprobs:
    entry = pb.TokenLogprobs(token_id=token)
    if logprob is not None:
        entry.logprob = logprob
        entry.top.add(token_id=65, logprob=-1.5)
    return entry


@pytest.mark.parametrize("prompt", ["ab", [97, 98]], ids=["text", "ids"])
def test_an_echo_puts_the_prompt_and_its_logprobs_before_each_choice(prompt: object) -> None:
    request = parse_completion({"prompt": prompt, "echo": True, "logprobs": 1, "n": 2})
    assert request.sampling.logprob_start == 0
    inputs = pb.Item(handle=1, input_logprobs=[scored(97, None), scored(98, -0.25)])
    ends = [with_logprobs("H", 72, finish="stop"), with_logprobs("i", 105, finish="stop")]
    ends[1].choice = 1
    choices = json.loads(play(request, [inputs, *ends]))["choices"]
    assert [choice["text"] for choice in choices] == ["abH", "abi"]
    assert choices[1]["logprobs"] == {
        "tokens": ["a", "b", "i"],
        "token_logprobs": [None, -0.25, -0.5],
        "top_logprobs": [None, {"A": -1.5}, {"A": -1.5}],
        "text_offset": [0, 1, 2],
    }


def test_an_echo_alone_scores_the_prompt() -> None:
    request = parse_completion({"prompt": "ab", "echo": True, "logprobs": 0, "max_tokens": 0})
    assert request.sampling.max_tokens == 0
    inputs = pb.Item(handle=1, input_logprobs=[scored(97, None), scored(98, -0.25)])
    (choice,) = json.loads(play(request, [inputs, item("", finish="length")]))["choices"]
    assert choice["text"] == "ab"
    assert choice["logprobs"]["token_logprobs"] == [None, -0.25]


def test_a_streamed_echo_comes_with_the_first_event_of_each_choice() -> None:
    request = parse_completion(
        {"prompt": "ab", "echo": True, "logprobs": 1, "n": 2, "stream": True}
    )
    inputs = pb.Item(handle=1, input_logprobs=[scored(97, None), scored(98, -0.25)])
    begins = [with_logprobs("H", 72), with_logprobs("i", 105, finish="stop")]
    begins[1].choice = 1
    stream = play(request, [inputs, *begins, with_logprobs("o", 111, finish="stop")])
    choices = [event["choices"][0] for event in events(stream)]
    assert [(choice["index"], choice["text"]) for choice in choices] == [
        (0, "abH"),
        (1, "abi"),
        (0, "o"),
    ]
    assert [choice["logprobs"]["tokens"] for choice in choices] == [
        ["a", "b", "H"],
        ["a", "b", "i"],
        ["o"],
    ]


def test_a_streamed_echo_alone_is_one_event_with_the_scores() -> None:
    request = parse_completion(
        {"prompt": "ab", "echo": True, "logprobs": 0, "max_tokens": 0, "stream": True}
    )
    inputs = pb.Item(handle=1, input_logprobs=[scored(97, None), scored(98, -0.25)])
    (event,) = events(play(request, [inputs, item("", finish="length")]))
    (choice,) = event["choices"]
    assert (choice["text"], choice["finish_reason"]) == ("ab", "length")
    assert choice["logprobs"]["token_logprobs"] == [None, -0.25]


def test_a_streamed_echo_without_logprobs_has_none() -> None:
    request = parse_completion({"prompt": [97], "echo": True, "stream": True})
    (event,) = events(play(request, [item("b", ids=[98], finish="stop")]))
    assert event["choices"][0]["text"] == "ab"
    assert event["choices"][0]["logprobs"] is None
