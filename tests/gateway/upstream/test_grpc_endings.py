"""What an ended call is said to have ended of."""

import struct

import pytest

from radixgate.gateway.upstream.grpc_endings import (
    CLOSED_BY_WORKER,
    Goodbye,
    Headers,
    reset,
    status_in,
    wrong_head,
)

GRPC = (b"content-type", b"application/grpc+proto")


@pytest.mark.parametrize(
    ("trailers", "said"),
    [
        pytest.param([(b"grpc-status", b"0")], CLOSED_BY_WORKER, id="OK"),
        pytest.param([(b"grpc-status", b"14")], "UNAVAILABLE", id="no message"),
        pytest.param(
            [(b"grpc-status", b"9"), (b"grpc-message", b"contract 2%3A %C3%BC%")],
            "contract 2: ü%",
            id="a message",
        ),
        pytest.param([(b"grpc-status", b"99")], "gRPC status 99", id="unknown"),
        pytest.param([(b"grpc-status", b"x")], "gRPC status x", id="no number"),
        pytest.param([(b"grpc-message", b"why")], None, id="none"),
    ],
)
def test_a_status_is_told_by_its_message_or_its_name(trailers: Headers, said: str | None) -> None:
    assert status_in(trailers) == said


@pytest.mark.parametrize(
    ("head", "wrong"),
    [
        pytest.param([(b":status", b"200"), GRPC], None, id="right"),
        pytest.param(
            [(b":status", b"503"), GRPC], "HTTP status 503 instead of a gRPC answer", id="status"
        ),
        pytest.param(
            [(b":status", b"200"), (b"content-type", b"text/html")],
            "content of type 'text/html' instead of gRPC",
            id="content",
        ),
        pytest.param(
            [(b":status", b"200"), GRPC, (b"grpc-encoding", b"gzip")],
            "messages in gzip, which was not asked for",
            id="compressed",
        ),
    ],
)
def test_a_head_that_is_not_grpcs_is_told_by_what_is_wrong(
    head: Headers, wrong: str | None
) -> None:
    assert wrong_head(head) == wrong


def test_errors_of_http2_are_told_by_name_where_they_have_one() -> None:
    assert reset(8) == "the stream was reset: CANCEL"
    assert reset(0x77) == "the stream was reset: error 119"


@pytest.mark.parametrize(
    ("last_stream", "code", "said", "why", "leaves", "finds_pings_too_many"),
    [
        pytest.param(0, 0, b"", "NO_ERROR", False, False, id="this stream is too late"),
        pytest.param(2**32 - 1, 0, b"", "NO_ERROR", True, False, id="only new ones are"),
        pytest.param(1, 2, b"", "INTERNAL_ERROR", False, False, id="an error"),
        pytest.param(
            1, 11, b"too_many_pings", "ENHANCE_YOUR_CALM, too_many_pings", False, True, id="pings"
        ),
    ],
)
def test_a_goodbye_tells_why_and_whom_it_concerns(
    last_stream: int, code: int, said: bytes, why: str, leaves: bool, finds_pings_too_many: bool
) -> None:
    one = Goodbye.read(struct.pack(">II", last_stream, code) + said)
    assert one.why == f"the worker is going away: {why}"
    assert (one.leaves(1), one.finds_pings_too_many) == (leaves, finds_pings_too_many)
