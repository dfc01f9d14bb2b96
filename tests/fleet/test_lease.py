"""A lease's counts and blocks: entered at once, left exactly once."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from books import MODEL, Books, identity
from radixgate.fleet.fleet import Ask, Lease, MirrorKey, Outcome, WorkerState
from radixgate.fleet.worker_record import Drift
from radixgate.proto.blocks import BYTES_A_TOKEN, byte_chain


def test_counts_are_entered_and_left_in_two_steps() -> None:
    books = Books("a")
    lease = books.lease("x" * 100)
    assert books.counts("a") == (1, 100)
    lease.first_output()
    lease.first_output()
    assert books.counts("a") == (1, 0)
    lease.close(Outcome.OK)
    lease.close(Outcome.FAILED)
    lease.first_output()
    assert books.counts("a") == (0, 0)


def test_only_what_is_not_cached_queues() -> None:
    books = Books("a")
    books.warm("x" * 60, "a")
    lease = books.lease("x" * 100)
    assert (lease.predicted_cached_tokens, books.counts("a")) == (60, (1, 40))


def test_the_last_token_is_never_cached() -> None:
    books = Books("a")
    books.warm("x" * 60, "a")
    assert books.lease("x" * 60).predicted_cached_tokens == 59


@pytest.mark.parametrize(
    ("outcome", "after_first_output", "kept"),
    [
        pytest.param(Outcome.OK, True, True, id="answered"),
        pytest.param(Outcome.OK, False, True, id="answered-in-one-piece"),
        pytest.param(Outcome.ABORTED, True, True, id="client-left-an-answer"),
        pytest.param(Outcome.ABORTED, False, False, id="client-left-the-queue"),
        pytest.param(Outcome.FAILED, False, False, id="worker-broke-off"),
        pytest.param(Outcome.FAILED, True, False, id="worker-broke-off-an-answer"),
        pytest.param(Outcome.REFUSED, False, False, id="worker-refused"),
    ],
)
@pytest.mark.parametrize(
    "reports_kv", [pytest.param(True, id="events"), pytest.param(False, id="none")]
)
def test_what_was_not_computed_is_not_expected(
    outcome: Outcome, after_first_output: bool, kept: bool, reports_kv: bool
) -> None:
    books = Books("a", reports_kv=reports_kv)
    lease = books.lease("x" * 100)
    if after_first_output:
        lease.first_output()
    lease.close(outcome)
    assert books.lease("x" * 100).predicted_cached_tokens == (99 if kept else 0)
    books.fleet.check()


def test_drift_compares_prediction_and_reply() -> None:
    books = Books("a")
    books.warm("x" * 60, "a")
    books.lease("x" * 100).close(Outcome.OK, cached_tokens=48)
    books.lease("y" * 100).close(Outcome.OK, cached_tokens=4)
    books.lease("z" * 100).close(Outcome.OK)
    books.lease("z" * 100).close(Outcome.ABORTED, cached_tokens=9)
    view = books.fleet.worker("a")
    assert view is not None
    assert view.drift == Drift(2, predicted_tokens=60, cached_tokens=52, error_tokens=16)


def test_a_reply_corrects_what_is_believed_of_a_worker_without_events() -> None:
    books = Books("a", reports_kv=False)
    for text in ("o" * 50, "x" * 50):
        books.warm(text, "a")
        books.clock.advance(1)
    books.lease("x" * 50).close(Outcome.OK, cached_tokens=0)
    assert books.lease("o" * 50).predicted_cached_tokens == 0


def test_a_first_output_makes_the_prompt_one_that_was_answered() -> None:
    books = Books("a", reports_kv=False)
    books.warm("o" * 50, "a")
    books.clock.advance(1)
    books.lease("x" * 50).first_output()
    books.clock.advance(1)
    books.lease("x" * 50).close(Outcome.OK, cached_tokens=0)
    assert books.lease("o" * 50).predicted_cached_tokens == 0


def test_a_lease_outlives_its_worker_and_its_successor_without_harm() -> None:
    books = Books("a", "b")
    lease = books.lease("x" * 100, ["b"])
    books.join("a")
    assert books.counts("a") == (0, 0)
    other = books.lease("x" * 100, ["b"])
    assert other.predicted_cached_tokens == 0
    lease.first_output()
    lease.close(Outcome.FAILED)
    assert books.counts("a") == (1, 100)
    assert books.lease("x" * 100, ["b"]).predicted_cached_tokens == 99
    books.fleet.check()


def test_a_lease_outlives_the_whole_model() -> None:
    books = Books("a")
    lease = books.lease("x" * 100)
    books.fleet.remove("a")
    lease.first_output()
    lease.close(Outcome.OK, cached_tokens=0)
    assert books.fleet.workers() == ()


@pytest.mark.parametrize(
    ("told", "left"),
    [
        pytest.param(320, 639, id="half-may-be-rounding"),
        pytest.param(319, 0, id="under-half-so-what-was-used-before-is-gone"),
    ],
)
def test_a_reply_in_tokens_corrects_what_is_believed_in_bytes(told: int, left: int) -> None:
    key = MirrorKey(MODEL, "bytes", 0)
    books = Books()
    books.fleet.admit(identity("a", key=key, reports_kv=False))
    books.fleet.set_state("a", WorkerState.READY)

    def lease(letter: bytes) -> Lease:
        books.clock.advance(1.0)
        return books.fleet.lease(Ask(MODEL, 640, {key: byte_chain(1, letter * 2_560)}))

    for letter in (b"o", b"x"):
        answered = lease(letter)
        answered.first_output()
        answered.close(Outcome.OK, 0)
    again = lease(b"x")
    assert again.predicted_cached_tokens == 639
    again.close(Outcome.OK, told)
    assert lease(b"o").predicted_cached_tokens == left


BYTES = MirrorKey(MODEL, "bytes", 0)


def lease_of_text(books: Books, text: bytes) -> Lease:
    books.clock.advance(1.0)
    tokens = max(1, len(text) // BYTES_A_TOKEN)
    return books.fleet.lease(Ask(MODEL, tokens, {BYTES: byte_chain(1, text)}))


def silent_worker() -> Books:
    """Whose prompts are cut in bytes."""
    books = Books()
    books.fleet.admit(identity("a", key=BYTES, reports_kv=False))
    books.fleet.set_state("a", WorkerState.READY)
    return books


def believed_blocks(books: Books) -> int:
    return books.blocks_of("a").approximate


@settings(max_examples=30)
@given(
    texts=st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 2_000), st.integers(0, 2), st.integers(0, 999))
    )
)
def test_a_reply_that_tells_what_was_believed_makes_nothing_forgotten(
    texts: list[tuple[int, int, int, int]],
) -> None:
    """Texts that begin alike, for any number of bytes, and go on alike, or otherwise."""
    books = silent_worker()
    for start, shared, end, more in texts:
        before = believed_blocks(books)
        lease = lease_of_text(books, bytes([start]) * shared + bytes([100 + end]) * more)
        lease.first_output()
        lease.close(Outcome.OK, lease.predicted_cached_tokens)
        assert believed_blocks(books) >= before
    books.fleet.check()


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        pytest.param(64, 32, id="a-block-as-believed"),
        pytest.param(48, 32, id="what-a-short-system-prompt-is-in-whole-pages"),
        pytest.param(32, 32, id="half"),
        pytest.param(16, 1, id="less-than-half"),
    ],
)
def test_a_single_block_is_compared_by_its_tokens(told: int, kept: int) -> None:
    """Prompts of 8,000 bytes that have the first 300 in common: one block, taken for 64 tokens."""
    books = silent_worker()
    texts = [b"s" * 300 + letter * 7_900 for letter in (b"o", b"x", b"y")]
    for text in texts[:2]:
        first = lease_of_text(books, text)
        first.first_output()
        first.close(Outcome.OK)
    third = lease_of_text(books, texts[2])
    assert third.predicted_cached_tokens == 64
    third.close(Outcome.OK, told)
    held = books.fleet.mirror_of("a").depths(byte_chain(1, texts[0]))
    assert held["a"] == kept
