"""Log probabilities of `/generate`, sent again with each event and worked out once."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from items import item
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.generation import AnswerContext
from radixgate.proto.native_answer import renderer

_TEXTS = st.text(st.sampled_from('ab"\\/\n\x00\x7f\u2028é😀'), max_size=3)


def scored(
    token: int, logprob: float | None, *, tops: Sequence[int] = (), of_ids: Sequence[int] = ()
) -> pb.TokenLogprobs:
    made = pb.TokenLogprobs(token_id=token)
    if logprob is not None:
        made.logprob = logprob
    for each in tops:
        made.top.add(token_id=each, logprob=-each / 8)
    for each in of_ids:
        made.of_ids.add(token_id=each, logprob=-each / 4)
    return made


def item_of(
    text: str, entries: Sequence[pb.TokenLogprobs], inputs: Sequence[pb.TokenLogprobs] = ()
) -> pb.Item:
    made = item(text, ids=[entry.token_id for entry in entries])
    made.logprobs.extend(entries)
    made.input_logprobs.extend(inputs)
    return made


def context(asked: list[int]) -> AnswerContext:
    """`asked`: gets the ids whose bytes are looked up."""

    def token_bytes(token: int) -> bytes:
        asked.append(token)
        return bytes([token])

    return AnswerContext("r1", "toy", 0, token_bytes)


def events_of(*items: pb.Item, choices: int = 1) -> list[dict[str, object]]:
    make = renderer(stream=True, batch=choices > 1, choices=choices, text_in_logprobs=True)
    stream = make(context([]))
    return [json.loads(stream.item(0, one).removeprefix(b"data: ")) for one in items]


def test_what_an_event_repeats_is_worked_out_once() -> None:
    asked: list[int] = []
    make = renderer(stream=True, batch=False, choices=1, text_in_logprobs=True)
    stream = make(context(asked))
    for token in range(100):
        event = stream.item(0, item_of("a", [scored(token, -1.0)]))
    assert asked == list(range(100))
    told = json.loads(event.removeprefix(b"data: "))["meta_info"]["output_token_logprobs"]
    assert told == [[-1.0, token, chr(token)] for token in range(100)]


def test_the_likeliest_stand_beside_each_token_once_one_has_them() -> None:
    first, last = events_of(
        item_of("a", [scored(97, -0.5)], inputs=[scored(98, None), scored(99, -2.0, of_ids=[4])]),
        item_of("bc", [scored(98, -0.25, tops=[98, 99]), scored(99, -3.0)]),
    )
    assert isinstance(first["meta_info"], dict)
    assert first["meta_info"]["output_token_logprobs"] == [[-0.5, 97, "a"]]
    assert "output_top_logprobs" not in first["meta_info"]
    meta = last["meta_info"]
    assert isinstance(meta, dict)
    assert meta["output_top_logprobs"] == [[], [[-12.25, 98, "b"], [-12.375, 99, "c"]], []]
    assert "output_token_ids_logprobs" not in meta
    assert meta["input_token_logprobs"] == [[None, 98, "b"], [-2.0, 99, "c"]]
    assert meta["input_token_ids_logprobs"] == [[], [[-1.0, 4, "\x04"]]]


@pytest.mark.parametrize("choice", [0, 1])
def test_those_of_a_prompt_hold_for_all_its_choices(choice: int) -> None:
    inputs = item_of("a", [scored(97, -0.5)], inputs=[scored(98, None)])
    other = item("b", ids=[98], choice=choice)
    (_, event) = events_of(inputs, other, choices=2)
    assert event["index"] == choice
    meta = event["meta_info"]
    assert isinstance(meta, dict)
    assert meta["input_token_logprobs"] == [[None, 98, "b"]]
    assert ("output_token_logprobs" in meta) == (choice == 0)


@settings(max_examples=40)
@given(pieces=st.lists(st.tuples(_TEXTS, st.lists(st.integers(0, 255), max_size=3)), min_size=1))
def test_pieces_add_up_to_what_one_whole_answer_says(
    pieces: Sequence[tuple[str, Sequence[int]]],
) -> None:
    items = [
        item_of(text, [scored(token, -token / 3, tops=[token][: token % 2]) for token in ids])
        for text, ids in pieces
    ]
    whole = renderer(stream=False, batch=False, choices=1, text_in_logprobs=False)(context([]))
    for one in items:
        assert whole.item(0, one) == b""
    told = json.loads(whole.end())
    tokens = [token for _, ids in pieces for token in ids]
    assert told["text"] == "".join(text for text, _ in pieces)
    assert told["output_ids"] == tokens
    meta = told["meta_info"]
    assert meta["completion_tokens"] == len(tokens)
    assert meta.get("output_token_logprobs", []) == [[-token / 3, token, None] for token in tokens]
    tops = [[[-token / 8, token, None]] if token % 2 else [] for token in tokens]
    assert meta.get("output_top_logprobs", [[] for _ in tokens]) == tops
