"""Which event brought how many tokens, with and without the server's count."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixgate.loadgen.targets import Event
from radixgate.loadgen.token_arrivals import tokens_in


def arrivals(*events: Event) -> list[tuple[float, int]]:
    return [(arrival.at_s, arrival.tokens) for arrival in tokens_in(events).arrivals]


def text(at_s: float, characters: int = 4, tokens: int | None = None) -> Event:
    return Event(at_s, characters=characters, tokens_so_far=tokens)


def usage(at_s: float, tokens: int) -> Event:
    return Event(at_s, tokens_so_far=tokens, of_choice=False)


def test_lg1_continuous_usage_counts_each_event() -> None:
    events = (
        Event(0.050, tokens_so_far=0),  # the role
        text(0.200, tokens=3),
        text(0.300, tokens=5),
        text(0.360, tokens=6),
        usage(0.362, 6),
    )
    assert arrivals(*events) == [(0.200, 3), (0.300, 2), (0.360, 1)]
    assert tokens_in(events).counted


def test_a_token_without_text_is_an_arrival() -> None:
    assert arrivals(text(0.1, 0, tokens=1), text(0.2, 3, tokens=2)) == [(0.1, 1), (0.2, 1)]


def test_text_without_a_new_token_is_an_arrival_of_none() -> None:
    assert arrivals(text(0.1, tokens=1), text(0.2, tokens=1)) == [(0.1, 1), (0.2, 0)]


def test_the_first_text_has_its_token_even_if_it_is_counted_later() -> None:
    assert arrivals(text(0.1, tokens=0), text(0.2, tokens=3)) == [(0.1, 1), (0.2, 2)]


def test_tokens_told_only_by_the_last_usage_came_with_the_last_choice() -> None:
    finish = Event(0.3, finish_reason="stop")
    counted = (text(0.1, tokens=1), text(0.2, tokens=2))
    assert arrivals(*counted, usage(0.9, 4)) == [(0.1, 1), (0.2, 3)]
    assert arrivals(*counted, finish, usage(0.9, 3)) == [(0.1, 1), (0.2, 1), (0.3, 1)]


def test_a_total_equal_to_the_events_is_one_token_each() -> None:
    found = tokens_in([text(0.1, 9), text(0.2, 1), usage(0.3, 2)])
    assert [a.tokens for a in found.arrivals] == [1, 1]
    assert found.counted


def test_a_total_over_the_events_is_shared_out_by_length() -> None:
    found = tokens_in([text(0.1, 2), text(0.2, 6), usage(0.3, 6)])
    assert [a.tokens for a in found.arrivals] == [2, 4]
    assert not found.counted


def test_a_total_below_the_events_leaves_arrivals_out_but_never_the_first() -> None:
    found = tokens_in([text(0.1, 1), text(0.2, 1), text(0.3, 1), text(0.4, 1), usage(0.5, 2)])
    assert [(a.at_s, a.tokens) for a in found.arrivals] == [(0.1, 1), (0.3, 1)]


def test_without_any_count_an_event_is_a_token_and_that_is_said() -> None:
    found = tokens_in([text(0.1), text(0.2)])
    assert found.tokens == 2
    assert not found.counted


def test_a_total_without_any_text_came_with_the_finish() -> None:
    assert arrivals(Event(0.2, finish_reason="length"), usage(0.3, 1)) == [(0.2, 1)]


def test_no_events_no_tokens() -> None:
    assert tokens_in([]).tokens == 0


@given(lengths=st.lists(st.integers(1, 50), min_size=1, max_size=30), total=st.integers(1, 200))
def test_shared_out_tokens_add_up_to_the_total(lengths: list[int], total: int) -> None:
    events = [text(float(place), length) for place, length in enumerate(lengths)]
    found = tokens_in([*events, usage(99.0, total)])
    assert found.tokens == total
    assert found.arrivals[0].at_s == 0.0
    assert all(arrival.tokens >= 1 for arrival in found.arrivals)


@given(counts=st.lists(st.integers(0, 9), min_size=1, max_size=30))
def test_counted_tokens_add_up_to_the_highest_count(counts: list[int]) -> None:
    so_far = [sum(counts[: place + 1]) for place in range(len(counts))]
    events = [text(float(place), tokens=tokens) for place, tokens in enumerate(so_far)]
    assert tokens_in(events).tokens == max(1, so_far[-1])


@pytest.mark.parametrize("tokens", [0, None], ids=["told-none", "not-told"])
def test_a_finish_without_anything_is_no_arrival(tokens: int | None) -> None:
    assert arrivals(Event(0.1, finish_reason="stop", tokens_so_far=tokens)) == []
