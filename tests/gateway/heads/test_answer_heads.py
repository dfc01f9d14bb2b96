"""Equal heads are read once, and only where the whole answer is there."""

import pytest

from radixgate.gateway.attempt.attempt import Headers
from radixgate.gateway.heads.answer_heads import MAX_HEADS, AnswerHeads

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"
FIELDS: Headers = [(b"content-length", b"2")]


def taught(head: bytes = HEAD, body: bytes = b"{}", status: int = 200) -> AnswerHeads:
    heads = AnswerHeads()
    heads.learn(head + body, status, FIELDS)
    return heads


def test_an_answer_under_a_known_head_is_found() -> None:
    known = taught().find(HEAD + b"[]")
    assert known is not None
    assert (known.size, known.status, known.headers) == (len(HEAD), 200, FIELDS)


@pytest.mark.parametrize(
    "piece",
    [
        pytest.param(HEAD + b"{", id="body-is-cut"),
        pytest.param(HEAD + b"{}{", id="more-than-was-asked-for"),
        pytest.param(HEAD[:-2], id="head-is-cut"),
        pytest.param(HEAD.replace(b"200", b"500") + b"{}", id="other-status"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_anything_else_is_left_to_the_parser(piece: bytes) -> None:
    assert taught().find(piece) is None


@pytest.mark.parametrize(
    ("head", "body"),
    [
        pytest.param(b"HTTP/1.1 103 Early Hints\r\n\r\n" + HEAD, b"{}", id="interim-answer-first"),
        pytest.param(HEAD, b"{", id="not-whole"),
        pytest.param(
            HEAD.replace(b"\r\n\r\n", b"\r\nx: " + b"y" * 2000 + b"\r\n\r\n"), b"{}", id="long"
        ),
    ],
)
def test_what_is_not_one_whole_answer_is_not_learned(head: bytes, body: bytes) -> None:
    assert taught(head, body).find(head + body) is None


def test_a_length_of_thousands_of_digits_behind_an_interim_head_is_not_learned() -> None:
    interim, length = b"HTTP/1.1 103 Early Hints\r\n\r\n", b"0" * 5_000 + b"2"
    piece = interim + HEAD.replace(b" 2\r", b" %b\r" % length) + b"{}"
    heads = AnswerHeads()
    heads.learn(piece, 200, [(b"content-length", length)])
    assert heads.find(piece) is None


@pytest.mark.parametrize(("status", "version"), [(404, b"1.1"), (200, b"1.0"), (500, b"1.1")])
def test_answers_of_any_status_are_learned_where_they_came_whole(
    status: int, version: bytes
) -> None:
    head = HEAD.replace(b"1.1 200", b"%b %d" % (version, status))
    known = taught(head, status=status).find(head + b"[]")
    assert known is not None
    assert (known.status, known.whole) == (status, len(head) + 2)


def test_what_is_remembered_is_bounded() -> None:
    heads = AnswerHeads()
    for number in range(3 * MAX_HEADS):
        heads.learn(HEAD.replace(b"OK", b"%d" % number) + b"{}", 200, FIELDS)
        heads.same(HEAD.replace(b"OK", b"%d" % number), 200, FIELDS)
    assert len(heads._known) <= MAX_HEADS
    assert len(heads._lists) <= MAX_HEADS


def test_a_head_that_comes_again_has_the_same_list() -> None:
    heads = AnswerHeads()
    first = heads.same(HEAD + b"{", 200, list(FIELDS))
    assert heads.same(HEAD + b"[", 200, list(FIELDS)) is first
    assert heads.same(HEAD.replace(b"2\r", b"3\r"), 200, [(b"content-length", b"3")]) is not first


@pytest.mark.parametrize(
    "begins",
    [
        pytest.param(b"HTTP/1.1 103 Early Hints\r\n\r\n", id="interim"),
        pytest.param(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 2000, id="long"),
        pytest.param(b"\r\n", id="blank-line-before"),
    ],
)
def test_a_head_behind_another_has_its_own_list(begins: bytes) -> None:
    heads = AnswerHeads()
    for value in (b"1", b"2"):
        headers = [(b"content-length", value)]
        assert heads.same(begins + HEAD, 200, headers) is headers


CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
IN_CHUNKS: Headers = [(b"transfer-encoding", b"chunked")]


def test_the_head_of_an_answer_in_chunks_is_found_however_much_of_it_is_there() -> None:
    heads = AnswerHeads()
    heads.learn_chunked(CHUNKED + b"1\r\na\r\n", 200, IN_CHUNKS)
    for body in (b"", b"1\r", b"1\r\na\r\n0\r\n\r\n"):
        known = heads.find(CHUNKED + body)
        assert known is not None
        assert (known.size, known.whole, known.headers) == (len(CHUNKED), None, IN_CHUNKS)
    assert heads.find(CHUNKED[:-1]) is None


@pytest.mark.parametrize(
    ("piece", "status", "headers"),
    [
        pytest.param(HEAD, 200, FIELDS, id="length"),
        pytest.param(CHUNKED, 200, [*IN_CHUNKS, *FIELDS], id="both"),
        pytest.param(CHUNKED, 200, [(b"transfer-encoding", b"gzip, chunked")], id="more-codings"),
        pytest.param(CHUNKED.replace(b"200", b"404"), 404, IN_CHUNKS, id="other-status"),
        pytest.param(b"HTTP/1.1 103 Early\r\n\r\n" + CHUNKED, 200, IN_CHUNKS, id="behind-interim"),
        pytest.param(CHUNKED[:-4] + b"\r\nx: " + b"y" * 2000, 200, IN_CHUNKS, id="cut"),
    ],
)
def test_other_heads_are_not_learned_as_chunked(
    piece: bytes, status: int, headers: Headers
) -> None:
    heads = AnswerHeads()
    heads.learn_chunked(piece, status, headers)
    assert heads.find(piece) is None
