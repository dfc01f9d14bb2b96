"""How long a prompt should take where the worker has not shown its speed: as long as usual."""

from books import IDLE, Books, report

UNKNOWN = ["a", "b"]  # leaves out those that have shown theirs


def show(books: Books, name: str, tokens_per_s: int) -> None:
    for told in (IDLE, report(prefill_busy_us_total=1_000_000, prefill_tokens_total=tokens_per_s)):
        books.fleet.report_load(name, told)


def test_what_is_usual_follows_each_speed_that_is_shown_and_each_worker_that_leaves() -> None:
    books = Books("new", "a", "b")

    def expected_s(text: str) -> float:
        lease = books.lease(text * 1_000, UNKNOWN)
        lease.first_output()
        return lease.predicted_ttft_s

    guess_s = expected_s("x")
    assert expected_s("y") == guess_s
    show(books, "a", 2_000)
    assert expected_s("z") == 0.5
    faster = report(prefill_busy_us_total=2_000_000, prefill_tokens_total=2_000 + 8_000)
    books.fleet.report_load("a", faster)
    assert expected_s("u") == 0.125
    show(books, "a", 2_000)
    show(books, "b", 4_000)
    assert expected_s("v") == 1_000 / 3_000
    books.fleet.remove("a")
    assert expected_s("w") == 0.25
