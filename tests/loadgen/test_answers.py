"""What makes a success, and how everything else is called."""

import pytest

from radixgate.loadgen import client
from radixgate.loadgen.answers import Answer, read_answer
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.exchange import CUT_OFF, Exchange
from radixgate.loadgen.targets import BodyFields, target_for
from timed_server import chat_chunk, sse, usage_event

CHAT = target_for("openai-chat", BodyFields.of(BenchConfig(), "m", {}))
GENERATE = target_for("sglang", BodyFields.of(BenchConfig(), "m", {}))


def exchange(
    *pieces: tuple[float, bytes],
    status: int | None = 200,
    broken: str | None = None,
    content_type: str = "text/event-stream",
) -> Exchange:
    return Exchange(
        t_dispatch_s=0.0,
        t_end_s=9.0,
        status=status,
        content_type=content_type,
        pieces=list(pieces),
        broken=broken,
    )


def read(*pieces: tuple[float, bytes], broken: str | None = None, status: int = 200) -> Answer:
    return read_answer(CHAT, exchange(*pieces, broken=broken, status=status))


CONTENT = (0.2, sse(chat_chunk("a", tokens=1)))
FINISH = (0.3, sse(chat_chunk(finish="length", tokens=1)))
DONE = (0.4, sse("[DONE]"))


def test_a_whole_answer() -> None:
    answer = read(
        (0.1, sse(chat_chunk("", role="assistant", tokens=0))),
        (0.2, sse(chat_chunk("ab", tokens=2), chat_chunk("c", tokens=3))),
        FINISH,
        (0.35, sse(usage_event(3, prompt=12, cached=8))),
        DONE,
    )
    assert answer.failure is None
    assert [(a.at_s, a.tokens) for a in answer.arrivals] == [(0.2, 2), (0.2, 1)]
    assert answer.t_last_s == 0.3
    assert (answer.output_tokens, answer.prompt_tokens, answer.cached_tokens) == (3, 12, 8)
    assert answer.finish_reason == "length"


def test_an_event_cut_over_pieces_is_stamped_by_the_piece_that_completes_it() -> None:
    whole = sse(chat_chunk("a", tokens=1))
    answer = read((0.1, whole[:9]), (0.2, whole[9:-1]), (0.3, whole[-1:]), DONE)
    assert [a.at_s for a in answer.arrivals] == [0.3]


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param((CONTENT, DONE), id="content-and-done"),
        pytest.param((CONTENT, FINISH), id="finish-and-a-clean-end"),
        pytest.param((FINISH, DONE), id="empty-text-but-a-finish"),
    ],
)
def test_successes(pieces: tuple[tuple[float, bytes], ...]) -> None:
    assert read(*pieces).failure is None


def test_an_empty_finish_has_no_token_and_ends_when_it_came() -> None:
    answer = read((0.3, sse(chat_chunk(finish="stop", tokens=0))), DONE)
    assert (answer.output_tokens, answer.arrivals, answer.t_last_s) == (0, (), 0.3)


@pytest.mark.parametrize(
    ("pieces", "broken", "failure"),
    [
        pytest.param((DONE,), None, "empty answer", id="only-done"),
        pytest.param((), None, "empty answer", id="empty-body"),
        pytest.param((CONTENT,), None, "cut off", id="clean-end-without-a-finish"),
        pytest.param((CONTENT,), CUT_OFF, "cut off", id="reset-in-the-middle"),
        pytest.param((CONTENT, FINISH), CUT_OFF, "cut off", id="reset-before-done"),
        pytest.param((CONTENT,), client.TIMEOUT, "timeout", id="silence"),
        pytest.param(((0.1, sse({"error": {"message": "no"}})), DONE), None, "error event"),
        pytest.param((CONTENT, (0.3, sse({"error": {"message": "no"}}))), CUT_OFF, "error event"),
        pytest.param(((0.1, sse("{not json")), DONE), None, "malformed event"),
        pytest.param(
            (CONTENT, (0.3, sse(chat_chunk(finish="abort"))), DONE), None, "aborted by the server"
        ),
    ],
)
def test_failures(
    pieces: tuple[tuple[float, bytes], ...], broken: str | None, failure: str
) -> None:
    answer = read(*pieces, broken=broken)
    assert answer.failure == failure
    assert answer.t_last_s == 9.0


def test_a_reset_after_done_is_no_failure() -> None:
    assert read(CONTENT, DONE, broken=CUT_OFF).failure is None


def test_an_http_error_is_classed_by_its_status_and_keeps_the_start_of_its_body() -> None:
    answer = read((0.1, b'{"error": "full"}' + b"x" * 5000), status=503)
    assert answer.failure == "HTTP 503"
    assert answer.failure_detail.startswith('{"error": "full"}')
    assert len(answer.failure_detail) <= 200


def test_no_head_is_what_the_transport_says() -> None:
    answer = read_answer(CHAT, exchange(status=None, broken=client.REFUSED))
    assert answer.failure == "connection refused"


def test_a_json_answer_is_not_a_stream() -> None:
    found = exchange((0.1, b'{"choices": []}'), content_type="application/json")
    assert read_answer(CHAT, found).failure == "not a stream"


def test_generate_counts_are_its_last() -> None:
    events = sse(
        {"text": "a", "meta_info": {"completion_tokens": 1, "prompt_tokens": 5}},
        {
            "text": "abc",
            "meta_info": {
                "completion_tokens": 3,
                "prompt_tokens": 5,
                "cached_tokens": 4,
                "finish_reason": {"type": "stop", "matched": 2},
            },
        },
    )
    answer = read_answer(GENERATE, exchange((0.1, events), DONE))
    assert (answer.output_tokens, answer.prompt_tokens, answer.cached_tokens) == (3, 5, 4)
    assert answer.finish_reason == "stop"
