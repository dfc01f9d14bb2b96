"""Counts and endings read out of answers that are passed on untouched."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from radixgate.gateway.attempt.attempt import AnswerCounts
from radixgate.gateway.attempt.first_token import (
    MAX_LOOKED_AT_BYTES,
    FirstToken,
    begins_with_output,
)
from radixgate.gateway.workers.answer_reading import (
    TRIM_AT_BYTES,
    TRIM_FAST_AT_BYTES,
    StreamedAnswer,
    WholeAnswer,
    _events_of,
)
from radixgate.proto import sse

DELTA = (
    b'data: {"choices":[{"index":0,"delta":{"content":"caf\xc3\xa9"},"finish_reason":null}]}'
    b"\r\n\r\n"
)
PLAIN = b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'
FINISH = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
USAGE = (
    b'data:{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,'
    b'"prompt_tokens_details":{"cached_tokens":4}}}\n\n'
)
DONE = b"data: [DONE]\n\n"
NATIVE = (
    b'data: {"text":"a","meta_info":{"prompt_tokens":5,"completion_tokens":2,'
    b'"cached_tokens":1,"finish_reason":{"type":"length"}}}\n\n'
)


def streamed(*pieces: bytes) -> StreamedAnswer:
    answer = StreamedAnswer()
    for piece in pieces:
        answer.feed(piece)
    return answer


def test_a_stream_cut_anywhere_gives_the_same_counts() -> None:
    body = DELTA + b": ping\n\n" + USAGE + DONE
    for cut in range(1, len(body)):
        answer = streamed(body[:cut], body[cut:])
        assert answer.is_whole()
        assert answer.counts() == AnswerCounts(7, 4, 3)


@pytest.mark.parametrize(
    ("pieces", "whole"),
    [
        pytest.param((DELTA, DELTA), False, id="only-deltas"),
        pytest.param((), False, id="nothing"),
        pytest.param((DELTA, FINISH), True, id="finish-without-done"),
        pytest.param((DELTA, DONE), True, id="done-without-finish"),
        pytest.param((DELTA, FINISH, USAGE), True, id="finish-then-usage"),
        pytest.param((DELTA, DONE.rstrip()), True, id="no-blank-line-at-the-end"),
        pytest.param((DELTA, b'data: {"error":{"message":"x"}}\n\n'), True, id="own-error"),
        pytest.param((NATIVE,), True, id="native"),
        pytest.param((DELTA, b"data: {broken\n\n"), False, id="nonsense"),
    ],
)
def test_what_counts_as_an_end(pieces: tuple[bytes, ...], whole: bool) -> None:
    assert streamed(*pieces).is_whole() is whole


ERROR = b'data: {"error":{"message":"x"}}\n\n'


@pytest.mark.parametrize(
    ("pieces", "good"),
    [
        pytest.param((PLAIN, PLAIN, FINISH, DONE), True, id="as-most-end"),
        pytest.param((FINISH, DONE), True, id="a-finish-alone"),
        pytest.param((PLAIN, FINISH, USAGE, DONE), True, id="finish-then-usage"),
        pytest.param((PLAIN, PLAIN, DONE), False, id="done-without-finish"),
        pytest.param((DONE,), False, id="done-alone"),
        pytest.param((PLAIN, FINISH, ERROR, DONE), False, id="error-behind-the-finish"),
        pytest.param((PLAIN, ERROR, FINISH, DONE), False, id="error-before-the-finish"),
        pytest.param((PLAIN, b": " + FINISH, DONE), False, id="a-finish-in-a-comment"),
    ],
)
def test_a_good_stream_has_a_finish_and_no_error(pieces: tuple[bytes, ...], good: bool) -> None:
    assert streamed(b"".join(pieces)).is_good() is good


def test_a_stream_that_ends_as_most_do_tells_no_counts_unless_they_are_there() -> None:
    assert streamed(PLAIN, FINISH, DONE).counts().untold
    assert (
        streamed(PLAIN, FINISH.replace(b'"stop"}]', b'"stop"}],"usage":{"prompt_tokens":7}'), DONE)
        .counts()
        .prompt
        == 7
    )


def test_native_counts() -> None:
    assert streamed(NATIVE, DONE).counts() == AnswerCounts(5, 1, 2)


def test_a_long_stream_keeps_only_its_end() -> None:
    answer = StreamedAnswer()
    for _ in range(20_000):
        answer.feed(DELTA)
    answer.feed(USAGE + DONE)
    assert answer._size < 2 * TRIM_AT_BYTES
    assert answer.counts().completion == 3


def test_a_very_long_event_does_not_hide_what_follows() -> None:
    long = b'data: {"choices":[{"delta":{"content":"' + b"x" * 1_048_576 + b'"}}]}\n\n'
    pieces = [long[at : at + 100_000] for at in range(0, len(long), 100_000)]
    assert streamed(*pieces, USAGE, DONE).counts().prompt == 7


@pytest.mark.parametrize(
    ("body", "counts"),
    [
        pytest.param(
            b'{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}',
            AnswerCounts(1, None, 2),
            id="openai",
        ),
        pytest.param(
            b'{"text":"","meta_info":{"prompt_tokens":1,"completion_tokens":2,"cached_tokens":0}}',
            AnswerCounts(1, 0, 2),
            id="native",
        ),
        pytest.param(
            b'[{"meta_info":{"prompt_tokens":1,"completion_tokens":2}},'
            b'{"meta_info":{"prompt_tokens":3,"completion_tokens":4,"cached_tokens":1}}]',
            AnswerCounts(4, None, 6),
            id="batch-with-one-figure-missing",
        ),
        pytest.param(b'{"error":"no"}', AnswerCounts(), id="no-counts"),
        pytest.param(b"not json", AnswerCounts(), id="not-json"),
        pytest.param(b'{"usage":{"prompt_tokens":"many"}}', AnswerCounts(), id="wrong-type"),
    ],
)
def test_counts_of_a_whole_answer(body: bytes, counts: AnswerCounts) -> None:
    answer = WholeAnswer()
    answer.feed(body[:5])
    answer.feed(body[5:])
    assert answer.counts() == counts


ROLE = b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'


@pytest.mark.parametrize(
    ("event", "is_output"),
    [
        pytest.param(ROLE, False, id="role"),
        pytest.param(b": ping\n\n", False, id="comment"),
        pytest.param(USAGE, False, id="usage"),
        pytest.param(b'data: {"error":{}}\n\n', False, id="error"),
        pytest.param(DONE, False, id="done"),
        pytest.param(DELTA, True, id="content"),
        pytest.param(b'data: {"choices":[{"delta":{"tool_calls":[{}]}}]}\n\n', True, id="tool"),
        pytest.param(b'data: {"choices":[{"text":"a"}]}\n\n', True, id="completion"),
        pytest.param(FINISH, True, id="finish"),
        pytest.param(NATIVE, True, id="native"),
    ],
)
def test_the_first_token_is_the_first_output(event: bytes, is_output: bool) -> None:
    first = FirstToken()
    assert not first.feed(event[:9])
    assert first.feed(event[9:]) is is_output
    assert first.feed(DELTA) or is_output


PLAIN = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'


@pytest.mark.parametrize(
    ("piece", "begins"),
    [
        pytest.param(PLAIN, True, id="an-event"),
        pytest.param(PLAIN + ROLE, True, id="and-more"),
        pytest.param(NATIVE, True, id="native"),
        pytest.param(ROLE + PLAIN, False, id="role"),
        pytest.param(DONE, False, id="done"),
        pytest.param(PLAIN[:-1], False, id="cut"),
        pytest.param(b": ping\n\n" + PLAIN, False, id="comment"),
        pytest.param(PLAIN.replace(b"\n", b"\r\n"), False, id="crlf"),
        pytest.param(b"data: {\ndata: }\n\n", False, id="two-lines"),
        pytest.param(b"data: x\r\rdata: y\n\n", False, id="two-events-by-cr"),
    ],
)
def test_a_first_piece_is_known_at_once_where_its_first_event_is_plain(
    piece: bytes, begins: bool
) -> None:
    assert begins_with_output(piece) is begins
    assert not begins or FirstToken().feed(piece)


def test_a_stream_that_shows_no_token_is_not_searched_for_ever() -> None:
    first = FirstToken()
    assert first.feed(b": " + b"x" * MAX_LOOKED_AT_BYTES)


CREATED = b'event: response.created\ndata: {"type":"response.created","response":{}}\n\n'
PIECE = b'data: {"type":"response.output_text.delta","delta":"hi"}\n\n'
COMPLETED = (
    b'event: response.completed\ndata: {"type":"response.completed","response":{"usage":'
    b'{"input_tokens":5,"output_tokens":2,"input_tokens_details":{"cached_tokens":3}}}}\n\n'
)


def test_a_stream_of_responses_ends_with_its_own_event() -> None:
    assert not streamed(CREATED, PIECE).is_whole()
    whole = streamed(CREATED, PIECE, COMPLETED)
    assert whole.is_whole()
    assert whole.counts() == AnswerCounts(5, 3, 2)


def test_a_stream_of_responses_begins_with_its_first_text() -> None:
    look = FirstToken()
    assert not look.feed(CREATED)
    assert look.feed(PIECE)


def test_embeddings_count_a_prompt_and_no_completion() -> None:
    answer = WholeAnswer()
    answer.feed(b'{"data":[{"embedding":[0.5]}],"usage":{"prompt_tokens":4,"total_tokens":4}}')
    assert answer.counts() == AnswerCounts(4, None, None)


@pytest.mark.parametrize(
    ("pieces", "counts"),
    [
        pytest.param((DELTA, DELTA), AnswerCounts(completion=2), id="a-token-an-event"),
        pytest.param((DELTA, DELTA[:-4]), AnswerCounts(completion=1), id="half-an-event"),
        pytest.param((), AnswerCounts(completion=0), id="nothing"),
        pytest.param((NATIVE,), AnswerCounts(5, 1, 2), id="told-on-the-way"),
        pytest.param((DELTA, FINISH, DONE), AnswerCounts(completion=3), id="whole-and-untold"),
        pytest.param((PLAIN, PLAIN, PLAIN[:-2]), AnswerCounts(completion=2), id="half-a-plain-one"),
        pytest.param((PLAIN, b": ping\n\n", PLAIN), AnswerCounts(completion=2), id="a-comment"),
        pytest.param((b"id: 1\n" + PLAIN, PLAIN), AnswerCounts(completion=2), id="other-fields"),
    ],
)
def test_what_had_come_of_a_stream_that_is_cut(
    pieces: tuple[bytes, ...], counts: AnswerCounts
) -> None:
    answer = streamed(*pieces)
    answer.is_whole()
    assert answer.counts_so_far() == counts


def test_what_was_let_go_of_a_long_stream_is_counted() -> None:
    event = b'data: {"choices":[{"index":0,"delta":{"content":"abc"},"finish_reason":null}]}\n\n'
    for end in (b"\n\n", b"\r\n\r\n"):
        answer = streamed(*[event.replace(b"\n\n", end)] * 5_000)
        assert answer.counts_so_far() == AnswerCounts(completion=5_000)


def test_a_stream_keeps_little_however_it_is_cut() -> None:
    event = DONE * 10
    slow, fast = StreamedAnswer(), StreamedAnswer()
    for _ in range(2_000):
        slow.feed(event)
        assert slow._size < TRIM_AT_BYTES
    for _ in range(50):
        fast.feed(event * 40)
        assert fast._size < TRIM_FAST_AT_BYTES
    for streamed_answer in (slow, fast):
        assert streamed_answer.is_whole()
        assert streamed_answer.counts_so_far() == AnswerCounts(completion=20_000)


@settings(max_examples=40)
@given(
    st.lists(
        st.sampled_from(
            [
                b"data: ",
                b"data:",
                b"data: {}",
                b"data: [DONE]",
                b"\n\n",
                b"\n",
                b"\r\n",
                b": hi",
                b"x",
            ]
        ),
        max_size=14,
    ).map(b"".join)
)
def test_events_are_those_of_the_scanner_in_whatever_form_they_come(stream: bytes) -> None:
    assert _events_of(stream) == list(sse.SseScanner().feed(stream + b"\n\n"))
