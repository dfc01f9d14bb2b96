"""What stands behind the last events of a stream that was broken off by order."""

import json
from collections.abc import Sequence

import pytest

from radixgate.gateway.attempt.broken_stream import BrokenStream, end_behind

GENERATE, CHAT, TEXT = b"/generate", b"/v1/chat/completions", b"/v1/completions"
DONE = b"data: [DONE]\n\n"


def ends(
    path: bytes, *events: object, choices: int = 1, news: bool | None = None
) -> list[dict[str, object]]:
    return ends_of(path, [json.dumps(event).encode() for event in events], choices, news)


def ends_of(
    path: bytes, events: Sequence[bytes], choices: int, news: bool | None = None
) -> list[dict[str, object]]:
    rest = end_behind(path, BrokenStream(events, news), choices)
    assert rest is not None
    *told, done, nothing = rest.split(b"\n\n")
    assert (done, nothing) == (b"data: [DONE]", b"")
    return [json.loads(event.removeprefix(b"data: ")) for event in told]


def native(text: str, ids: list[int], tokens: int, **more: object) -> dict[str, object]:
    meta = {"id": "r", "finish_reason": None, "prompt_tokens": 3, "completion_tokens": tokens}
    return {"text": text, "output_ids": ids, "meta_info": meta, **more}


def chunk(text: str, finish: str | None = None, index: int = 0) -> dict[str, object]:
    choice = {"index": index, "delta": {"content": text}, "finish_reason": finish}
    return {"id": "a-7", "model": "m", "created": 5, "choices": [choice]}


def test_of_generate_it_repeats_what_has_come() -> None:
    (end,) = ends(GENERATE, native("one", [1], 1), native("one two", [1, 2], 2))
    assert end == {
        "text": "one two",
        "output_ids": [1, 2],
        "meta_info": {
            "id": "r",
            "finish_reason": {"type": "abort", "message": ""},
            "prompt_tokens": 3,
            "completion_tokens": 2,
        },
    }


def test_of_generate_it_adds_nothing_to_what_comes_in_pieces() -> None:
    (end,) = ends(GENERATE, native(" two", [2], 2))
    assert (end["text"], end["output_ids"]) == ("", [])


def of_tokens(*texts: str, **more: list[int]) -> list[dict[str, object]]:
    """Without ids, unless there are `more`."""
    return [
        {"text": text, "meta_info": {"completion_tokens": tokens}, **more}
        for tokens, text in enumerate(texts, start=1)
    ]


@pytest.mark.parametrize(
    ("texts", "repeated"),
    [
        pytest.param(["one"], "one", id="one-event-is-taken-for-the-default"),
        pytest.param(["one", "one two"], "one two", id="all-of-it"),
        pytest.param(["one", "one", "one two"], "one two", id="a-token-without-text"),
        pytest.param(["one", " two"], "", id="pieces"),
        pytest.param(["one", ""], "", id="a-piece-without-text"),
        pytest.param(["h", "ha", "ha"], "ha", id="all-of-it-that-stands-still"),
        pytest.param(["h", "ha", "t"], "", id="pieces-of-which-one-begins-with-another"),
    ],
)
def test_of_generate_without_ids_the_texts_tell_whether_they_are_pieces(
    texts: list[str], repeated: str
) -> None:
    (end,) = ends(GENERATE, *of_tokens(*texts))
    assert end["text"] == repeated


def test_of_generate_ids_may_come_in_pieces_beside_all_of_the_text() -> None:
    (end,) = ends(GENERATE, *of_tokens("one", "one two", output_ids=[7]))
    assert (end["text"], end["output_ids"]) == ("one two", [])


def test_of_generate_ids_tell_where_the_texts_do_not() -> None:
    (end,) = ends(GENERATE, *of_tokens("ha", "ha", output_ids=[7]))
    assert (end["text"], end["output_ids"]) == ("", [])


def test_of_a_batch_the_texts_of_each_are_compared() -> None:
    told = ends(
        GENERATE,
        native("a", [1], 1, index=0),
        native("b", [1], 1, index=1),
        native("a c", [1, 2], 2, index=0),
        native("b d", [1, 2], 2, index=1),
        choices=2,
    )
    assert [(end["index"], end["text"]) for end in told] == [(0, "a c"), (1, "b d")]


def test_of_a_batch_what_one_shows_holds_for_all() -> None:
    """A piece may begin with the one before it, and one alone shows nothing."""
    told = ends(
        GENERATE,
        native("h", [1], 1, index=0),
        native("b", [1], 1, index=1),
        native("ha", [2], 2, index=0),
        native(" d", [2], 2, index=1),
        native("e", [1], 1, index=2),
        choices=3,
    )
    assert [(end["index"], end["text"], end["output_ids"]) for end in told] == [
        (0, "", []),
        (1, "", []),
        (2, "", []),
    ]


@pytest.mark.parametrize(
    ("news", "left"),
    [
        pytest.param(True, ("", []), id="pieces"),
        pytest.param(False, ("one", [1]), id="all-of-it"),
        pytest.param(None, ("one", [1]), id="not-told-is-the-default"),
    ],
)
def test_after_one_event_the_worker_tells_whether_it_was_a_piece(
    news: bool | None, left: tuple[str, list[int]]
) -> None:
    (end,) = ends(GENERATE, native("one", [1], 1), news=news)
    assert (end["text"], end["output_ids"]) == left


def test_of_a_batch_those_end_that_have_not() -> None:
    stopped = native("b", [1], 1, index=1)
    stopped["meta_info"] = {"finish_reason": {"type": "stop"}}
    told = ends(GENERATE, native("a", [1], 1, index=0), stopped, choices=3)
    assert [(end["index"], end["text"]) for end in told] == [(0, "a"), (2, "")]
    assert told[1] == {
        "text": "",
        "output_ids": [],
        "meta_info": {
            "finish_reason": {"type": "abort", "message": ""},
            "completion_tokens": 0,
        },
        "index": 2,
    }


def test_of_a_chat_it_has_the_same_id_and_no_second_role_and_no_usage() -> None:
    assert ends(CHAT, chunk("one"), chunk(" two")) == [
        {
            "id": "a-7",
            "model": "m",
            "created": 5,
            "choices": [
                {
                    "index": 0,
                    "delta": {"content": ""},
                    "logprobs": None,
                    "finish_reason": "abort",
                }
            ],
        }
    ]


def test_each_choice_of_a_chat_ends_once() -> None:
    told = ends(CHAT, chunk("a"), chunk("a", "stop", 1), chunk("b", index=2), choices=3)
    assert [end["choices"][0]["index"] for end in told] == [0, 2]  # type: ignore[index]


def test_the_only_choice_ends_whatever_its_last_events_tell() -> None:
    (end,) = ends(CHAT, {**chunk(""), "choices": []})
    assert end["choices"][0]["finish_reason"] == "abort"  # type: ignore[index]


def test_where_nobody_knows_how_many_there_are_those_end_that_are_told_of() -> None:
    told = ends(CHAT, chunk("a", index=2), chunk("b", "stop", 1), chunk("c"), choices=0)
    assert [end["choices"][0]["index"] for end in told] == [0, 2]  # type: ignore[index]


def test_a_text_completion_has_its_own_form() -> None:
    (end,) = ends(TEXT, {"id": "c", "choices": [{"index": 0, "text": "a"}], "usage": None})
    finish = {"index": 0, "text": "", "logprobs": None, "finish_reason": "abort"}
    assert end == {"id": "c", "choices": [finish], "usage": None}


def test_what_says_nothing_has_no_end() -> None:
    for data in (b'{"choi', b'{"index": [], "a": 1}', b"[DONE]", b"7", b'{"a": 1}', b"[" * 5_000):
        assert end_behind(CHAT, BrokenStream([data]), 1) is None
        assert end_behind(GENERATE, BrokenStream([data]), 1) is None
    assert end_behind(CHAT, BrokenStream(), 1) is None
    for odd in (b'{"choices": 7}', b'{"choices": [7, {"index": {}, "finish_reason": {}}]}'):
        assert end_behind(CHAT, BrokenStream([odd]), 0) == DONE
    assert end_behind(GENERATE, BrokenStream([b'{"meta_info": 7, "index": {}}']), 1) == DONE
