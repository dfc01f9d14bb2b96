"""Each choice of a stream that was broken off by order gets its finish once, however long ago the
last word of it was."""

import json
from typing import Protocol

import pytest

from radixgate.gateway.attempt.aborted_answer import aborted_answer
from radixgate.gateway.attempt.broken_stream import BrokenStream
from radixgate.gateway.workers import let_go_choices
from radixgate.gateway.workers.answer_reading import StreamedAnswer
from radixgate.proto import sse

GENERATE, CHAT, TEXT = b"/generate", b"/v1/chat/completions", b"/v1/completions"
LONG = 200  # events, of which some seventy are kept at a time
_Event = dict[str, object]


def chat(index: int, text: str, finish: str | None = None) -> _Event:
    choice = {"index": index, "delta": {"content": text}, "finish_reason": finish}
    return {"id": "c", "model": "m", "created": 5, "choices": [choice]}


def text(index: int, text: str, finish: str | None = None) -> _Event:
    choice = {"index": index, "text": text, "finish_reason": finish}
    return {"id": "c", "model": "m", "created": 5, "choices": [choice]}


class _Chunk(Protocol):
    def __call__(self, index: int, text: str, finish: str | None = None) -> _Event: ...


def native(index: int, text: str, tokens: int, finish: str | None = None) -> _Event:
    reason = None if finish is None else {"type": finish}
    meta = {"id": f"r{index}", "finish_reason": reason, "completion_tokens": tokens}
    return {"text": text, "output_ids": [1] * tokens, "meta_info": meta, "index": index}


def ends(path: bytes, body: _Event, events: list[_Event], spaced: str) -> list[_Event]:
    """What stands behind these, that a worker wrote in its own way, before the end marker."""
    reader = StreamedAnswer()
    for event in events:
        reader.feed(sse.event(json.dumps(event, separators=(",", spaced)).encode()))
    broken = BrokenStream(reader.told_of_choices())
    end = aborted_answer(path, json.dumps({"model": "m", **body}).encode(), "r", None, broken)
    *told, done, nothing = end.rest.split(b"\n\n")
    assert (done, nothing) == (b"data: [DONE]", b"")
    return [json.loads(event.removeprefix(b"data: ")) for event in told]


@pytest.mark.parametrize("spaced", [":", ": "], ids=["dense", "spaced"])
@pytest.mark.parametrize(
    ("path", "body", "event"),
    [
        pytest.param(CHAT, {"messages": [{"role": "user", "content": "a"}]}, chat, id="chat"),
        pytest.param(
            CHAT,
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}]},
            chat,
            id="a-chat-that-ours-would-refuse",
        ),
        pytest.param(TEXT, {"prompt": "a"}, text, id="text"),
    ],
)
def test_a_choice_long_silent_ends_and_one_long_finished_does_not(
    path: bytes, body: _Event, event: _Chunk, spaced: str
) -> None:
    """Of four: one stopped long ago, one fell silent, one goes on, and one has said nothing."""
    came = [event(0, "a"), event(1, "b"), event(0, "", "stop")]
    came += [event(2, f"{n}") for n in range(LONG)]
    told = ends(path, {**body, "n": 4, "stream": True}, came, spaced)
    choices = [end["choices"][0] for end in told]  # type: ignore[index]
    assert [(one["index"], one["finish_reason"]) for one in choices] == [
        (1, "abort"),
        (2, "abort"),
        (3, "abort"),
    ]


@pytest.mark.parametrize("spaced", [":", ": "], ids=["dense", "spaced"])
def test_of_a_native_batch_each_ends_with_what_it_had(spaced: str) -> None:
    came = [native(0, "a", 1), native(1, "b", 1), native(0, "a", 1, "stop"), native(1, "b c", 2)]
    came += [native(2, "x" * n, n) for n in range(1, LONG)]
    body: _Event = {"text": "p", "sampling_params": {"n": 4}, "stream": True}
    told = ends(GENERATE, body, came, spaced)
    last = LONG - 1
    assert [(end["index"], end["text"], end["output_ids"]) for end in told] == [
        (1, "b c", [1, 1]),
        (2, "x" * last, [1] * last),
        (3, "", []),
    ]
    assert [end["meta_info"]["finish_reason"]["type"] for end in told] == ["abort"] * 3  # type: ignore[index]


def test_a_native_choice_whose_text_was_too_long_to_keep_is_not_told_that_it_had_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(let_go_choices, "MOST_BYTES", 400)
    came = [native(0, "a" * 300, 1), *(native(1, "x" * n, n) for n in range(1, LONG))]
    body: _Event = {"text": "p", "sampling_params": {"n": 2}, "stream": True}
    assert [end["index"] for end in ends(GENERATE, body, came, ":")] == [1]


def test_the_only_choice_that_had_its_finish_long_ago_gets_no_other() -> None:
    came = [chat(0, "", "stop"), *({**chat(0, ""), "choices": []} for _ in range(LONG))]
    body: _Event = {"messages": [{"role": "user", "content": "a"}], "stream": True}
    assert ends(CHAT, body, came, ":") == []


def test_what_a_choice_writes_of_finishes_is_none() -> None:
    said = json.dumps({"choices": [{"index": 0, "finish_reason": "stop"}]})
    came = [chat(0, said), *(chat(1, f"{n}") for n in range(LONG))]
    body: _Event = {"messages": [{"role": "user", "content": "a"}], "n": 2, "stream": True}
    told = ends(CHAT, body, came, ":")
    assert [end["choices"][0]["index"] for end in told] == [0, 1]  # type: ignore[index]
