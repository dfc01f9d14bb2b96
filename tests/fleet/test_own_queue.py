"""What waits of our own prompts: whole until a worker tells what is left of those it has seen."""

import random
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from books import Books, ask, report
from clocks import FakeClock
from radixgate.fleet.own_queue import OwnQueue
from radixgate.policies.registry import make_policy


def asked(books: Books, text: str) -> int:
    """One more prompt for the only worker; the number of its lease."""
    return books.lease(text).number


def waits(books: Books) -> int:
    _, tokens = books.counts("a")
    return tokens


def told(books: Books, seen: int | None, left: int) -> None:
    books.fleet.report_load("a", report(seen_number=seen, queued_uncached_tokens_yours=left))
    books.fleet.check()


def test_what_a_report_has_seen_counts_as_it_says_and_what_came_later_counts_whole() -> None:
    books = Books("a")
    first = asked(books, "x" * 1_000)
    told(books, first, 300)
    asked(books, "y" * 200)
    assert waits(books) == 300 + 200


def test_a_report_that_knows_of_none_changes_nothing() -> None:
    """So it is with the first of a worker that was sent four prompts at once."""
    books = Books("a")
    for letter in "abcd":
        asked(books, letter * 613)
    told(books, 0, 0)
    assert waits(books) == 4 * 613


def test_a_worker_that_does_not_tell_what_it_has_seen_leaves_all_whole() -> None:
    books = Books("a")
    asked(books, "x" * 1_000)
    told(books, None, 0)
    assert waits(books) == 1_000


def test_a_worker_that_tells_no_more_is_one_that_never_told() -> None:
    books = Books("a")
    told(books, asked(books, "x" * 1_000), 300)
    told(books, None, 0)
    assert waits(books) == 1_000


def test_more_left_than_was_sent_is_no_more() -> None:
    """Prompts that begin alike wait together, and the worker counts what they share each time."""
    books = Books("a")
    told(books, asked(books, "x" * 100), 700)
    assert waits(books) == 100


def test_a_first_output_takes_its_lease_s_part_of_what_was_left() -> None:
    """Of two prompts of 500 and 600 tokens 700 were left; with the first computed, 600 at most."""
    books = Books("a")
    lease = books.lease("x" * 500)
    told(books, asked(books, "y" * 600), 700)
    assert waits(books) == 700
    lease.first_output()
    assert waits(books) == 600
    books.fleet.check()


def test_a_first_output_before_any_report_has_seen_the_lease() -> None:
    books = Books("a")
    told(books, asked(books, "x" * 1_000), 300)
    lease = books.lease("y" * 200)
    lease.first_output()
    assert waits(books) == 300
    told(books, lease.number, 250)
    assert waits(books) == 250


def test_a_report_that_is_too_old_is_none() -> None:
    books = Books("a")
    told(books, asked(books, "x" * 1_000), 300)
    books.clock.advance(2.1)
    number = asked(books, "y" * 200)
    assert waits(books) == 1_200
    told(books, number, 900)
    assert waits(books) == 900


def test_numbers_go_on_from_one_life_of_a_worker_to_the_next() -> None:
    """So that what was told of an earlier one says nothing of later leases."""
    books = Books("a")
    before = asked(books, "x" * 100)
    books.join("a")
    after = asked(books, "x" * 100)
    assert after > before
    told(books, before, 0)
    assert waits(books) == 100


def test_a_policy_is_shown_what_waits() -> None:
    books = Books("a")
    told(books, asked(books, "x" * 1_000), 300)
    rehearsal = books.fleet.rehearse(ask("z"))
    assert list(rehearsal.candidates.uncached_tokens_in_flight) == [300]


def test_a_conversation_stays_where_the_worker_says_that_little_is_left() -> None:
    """As in life: its worker has 1,839 tokens of ours, four prompts run, and 341 are left."""
    for left, home in ((1_839, "b"), (341, "a")):
        books = Books("a", policy=make_policy("kv_cost", FakeClock(), random.Random(1)))
        books.warm("t" * 900, "a")
        for letter in "xyz":
            number = asked(books, letter * 613)
        told(books, number, left)
        books.join("b")
        books.warm("t" * 200, "b")
        assert books.lease("t" * 960).worker.id == home


class Plain:
    """The rule by its words, each time from all leases."""

    def __init__(self) -> None:
        self.leases: dict[int, int] = {}
        self.seen = 0  # what a worker has taken up it never gives back
        self.last: tuple[int, int] | None = None  # seen up to, left

    def tokens(self) -> int:
        if self.last is None:
            return sum(self.leases.values())
        seen, left = self.last
        later = sum(tokens for number, tokens in self.leases.items() if number > seen)
        earlier = sum(tokens for number, tokens in self.leases.items() if number <= seen)
        return min(left, earlier) + later


@pytest.mark.slow
@given(data=st.data())
def test_it_is_the_plain_rule(data: st.DataObject) -> None:
    queue, plain, last, waiting = OwnQueue(count(1)), Plain(), 0, 0
    for _ in range(data.draw(st.integers(0, 40))):
        step = data.draw(st.sampled_from(["enter", "leave", "hear", "forget"]))
        if step == "enter":
            tokens = data.draw(st.integers(1, 50))
            last = queue.enter(tokens)
            plain.leases[last] = tokens
            waiting += tokens
        elif step == "leave" and plain.leases:
            number = data.draw(st.sampled_from(sorted(plain.leases)))
            waiting -= queue.leave(number, plain.leases.pop(number))
        elif step == "hear":
            plain.seen = data.draw(st.integers(plain.seen, last))
            left = data.draw(st.integers(0, 99))
            plain.last = plain.seen, left
            waiting -= queue.hear(plain.seen, left)
        elif step == "forget":
            waiting -= queue.hear(None, 0)
            plain.last = None
        queue.check()
        assert waiting == queue.tokens == plain.tokens()
