"""How a stream ends, in C as in Python."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixgate.gateway.workers.stream_ends import (
    data_lines,
    data_lines_in_python,
    plain_finish,
    plain_finish_in_python,
)

DELTA = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
STOP = b'{"choices":[{"delta":{},"finish_reason":"stop"}]}'
END = b"data: " + STOP + b"\n\ndata: [DONE]\n\n"
# Of these nearly everything that is looked for can be put together.
PARTS = [DELTA, END, b"data: [DONE]\n\n", b"data: ", b"data:", b"\n", b"\n\n", b"\r", b'"', b"x"]
PARTS += [b'"error"', b'"usage"', b'"meta_info"', b'"response.', b'"errors"', b'"err', b""]


@pytest.mark.parametrize("find", [plain_finish_in_python, plain_finish], ids=["python", "c"])
@pytest.mark.parametrize(
    ("stream", "finish"),
    [
        pytest.param(DELTA * 70 + END, STOP, id="as-most-end"),
        pytest.param(END, STOP, id="nothing-before-it"),
        pytest.param(b"\n\n" + END, STOP, id="a-blank-line-before-it"),
        pytest.param(b'data: "usage"\n\n' + DELTA * 3 + END, STOP, id="said-long-before"),
        pytest.param(b'data: "usage"\n\n' + DELTA * 1 + END, None, id="usage"),
        pytest.param(b'data: "error"\n\n' + END, None, id="error"),
        pytest.param(b'data: "meta_info"\n\n' + END, None, id="native"),
        pytest.param(b'data: "response.created"\n\n' + END, None, id="of-responses"),
        pytest.param(b'data: "errors"\n\n' + END, STOP, id="a-word-that-begins-so"),
        pytest.param(DELTA + END.replace(b"\n", b"\r\n"), None, id="crlf"),
        pytest.param(b": x\r\n\r\n" + DELTA * 2 + END, None, id="crlf-in-the-last-events"),
        pytest.param(DELTA * 4 + END[:-1], None, id="cut"),
        pytest.param(DELTA * 4, None, id="no-marker"),
        pytest.param(b"data: [DONE]\n\n", None, id="the-marker-alone"),
        pytest.param(b"\n\ndata: [DONE]\n\n", None, id="nothing-is-the-finish"),
        pytest.param(b"event: x\ndata: y\n\ndata: [DONE]\n\n", None, id="another-field"),
        pytest.param(b"data: y\n\n\ndata: [DONE]\n\n", b"y\n", id="a-line-more"),
        pytest.param(b"", None, id="nothing"),
    ],
)
def test_the_finish_before_the_marker_is_found(
    find: Callable[[bytes], bytes | None], stream: bytes, finish: bytes | None
) -> None:
    assert find(stream) == finish


@pytest.mark.parametrize("count", [data_lines_in_python, data_lines], ids=["python", "c"])
@pytest.mark.parametrize(
    ("stream", "lines"),
    [
        pytest.param(b"", 0, id="nothing"),
        pytest.param(b"data:", 1, id="the-first"),
        pytest.param(b"data: a\n\ndata: b\n\n", 2, id="two"),
        pytest.param(b"\ndata: a", 1, id="behind-a-line-end"),
        pytest.param(b"\n\ndata: a\ndata: b\n", 2, id="of-one-event"),
        pytest.param(b"x data: a\nevent: data:\ndat", 0, id="elsewhere-in-a-line"),
    ],
)
def test_lines_of_data_are_counted(
    count: Callable[[bytes], int], stream: bytes, lines: int
) -> None:
    assert count(stream) == lines


@given(st.lists(st.sampled_from(PARTS), max_size=12).map(b"".join))
def test_both_say_the_same(stream: bytes) -> None:
    for ended in (stream, stream + END, stream + b"\n\ndata: [DONE]\n\n"):
        assert plain_finish(ended) == plain_finish_in_python(ended)
        assert data_lines(ended) == data_lines_in_python(ended)


@pytest.mark.parametrize("wrong", ["text", None])
def test_what_is_no_bytes_is_refused(wrong: bytes) -> None:
    with pytest.raises((TypeError, AttributeError)):
        plain_finish(wrong)
