"""What `PrefillPace` makes of measured steps, right or wrong to begin with."""

from collections.abc import Callable
from random import Random

import pytest

from radixgate.worker.schedule.prefill_pace import LEAST_CHUNK, PrefillPace

SLO_S = 0.060
DECODE_S = 0.030
TOKEN_S = 0.002


def room(pace: PrefillPace, decode_s: float = DECODE_S, token_s: float = TOKEN_S) -> float:
    """Tokens for a step that takes what the pace aims at."""
    assert SLO_S / 1.4 - 1e-9 <= pace.aim_s <= SLO_S / 1.1 + 1e-9
    return (pace.aim_s - decode_s) / token_s


def mixed(pace: PrefillPace, decode_s: float = DECODE_S, token_s: float = TOKEN_S) -> int:
    """A step as large as the pace allows; returns its tokens."""
    tokens = pace.tokens(0)
    pace.stepped([(0, tokens)], decode_s + token_s * tokens, decodes=True)
    return tokens


def guessing(decode_s: float, token_s: float) -> PrefillPace:
    """Has measured this, one step of each."""
    pace = PrefillPace(SLO_S)
    pace.stepped([(0, 100)], 100 * token_s, decodes=False)
    pace.stepped([], decode_s, decodes=True)
    return pace


def settled() -> PrefillPace:
    pace = guessing(DECODE_S, TOKEN_S)
    for _ in range(10):
        mixed(pace)
    assert pace.tokens(0) == pytest.approx(room(pace), abs=1)
    return pace


@pytest.mark.parametrize(
    ("decode_s", "token_s"),
    [
        pytest.param(DECODE_S / 3, TOKEN_S, id="decoding-seems-cheap"),
        pytest.param(DECODE_S * 1.9, TOKEN_S, id="decoding-seems-to-leave-no-room"),
        pytest.param(DECODE_S * 4, TOKEN_S, id="decoding-seems-to-take-more-than-the-slo"),
        pytest.param(DECODE_S, TOKEN_S / 4, id="tokens-seem-cheap"),
        pytest.param(DECODE_S, TOKEN_S * 10, id="tokens-seem-dear"),
        pytest.param(DECODE_S * 4, TOKEN_S * 10, id="all-seems-dear"),
        pytest.param(DECODE_S / 4, TOKEN_S / 4, id="all-seems-cheap"),
    ],
)
def test_from_a_wrong_start_thirty_mixed_steps_lead_to_the_latency(
    decode_s: float, token_s: float
) -> None:
    pace = guessing(decode_s, token_s)
    for _ in range(30):
        mixed(pace)
    assert 0.7 * SLO_S <= DECODE_S + TOKEN_S * mixed(pace) <= SLO_S + TOKEN_S / 2


def test_what_only_decodes_is_learnt_in_ten_steps() -> None:
    pace = guessing(DECODE_S * 4, TOKEN_S)
    for _ in range(10):
        pace.stepped([], DECODE_S, decodes=True)
    assert pace.tokens(0) == pytest.approx(room(pace), abs=2)


@pytest.mark.parametrize("hiccup", ["mixed", "decoding"])
def test_one_step_of_ten_times_its_length_changes_no_cost_but_what_is_kept_for_such(
    hiccup: str,
) -> None:
    pace = settled()
    if hiccup == "mixed":
        pace.stepped([(0, pace.tokens(0))], 10 * SLO_S, decodes=True)
    else:
        for seconds in (DECODE_S, DECODE_S, 10 * DECODE_S, DECODE_S, DECODE_S):
            pace.stepped([], seconds, decodes=True)
    for _ in range(5):
        mixed(pace)
    assert pace.aim_s == pytest.approx(SLO_S / 1.4, rel=0.02)
    assert mixed(pace) == pytest.approx(room(pace), abs=2)


def test_steps_aim_below_the_latency_by_what_the_longest_of_late_stood_out() -> None:
    pace = settled()
    for _ in range(1_000):
        mixed(pace)
    assert pace.aim_s == pytest.approx(SLO_S / 1.1), "the least that is kept"
    tokens = pace.tokens(0)
    pace.stepped([(0, tokens)], 1.3 * (DECODE_S + TOKEN_S * tokens), decodes=True)
    for _ in range(2):
        mixed(pace)
    assert pace.aim_s == pytest.approx(SLO_S / 1.3, rel=0.01)
    for _ in range(256):
        mixed(pace)
    assert SLO_S / pace.aim_s == pytest.approx(1.0 + 0.3 * 0.37, abs=0.01), "it is forgotten"


def test_that_all_steps_become_longer_is_no_reason_to_keep_more() -> None:
    pace = settled()
    for _ in range(1_000):
        mixed(pace)
    for _ in range(10):
        mixed(pace, 1.5 * DECODE_S)
    assert pace.aim_s == pytest.approx(SLO_S / 1.1, rel=0.02)


def test_with_noise_the_chunk_stays_about_where_it_is() -> None:
    rng, pace = Random(3), settled()
    for _ in range(500):
        by, there_is = rng.uniform(0.85, 1.15), room(pace)
        chunk = mixed(pace, DECODE_S * by, TOKEN_S * by)
        assert 0.5 * there_is <= chunk <= 1.5 * there_is


def slowly(place: int) -> tuple[float, float]:
    return DECODE_S, TOKEN_S * (1 + place / 100)


def at_once(place: int) -> tuple[float, float]:
    return (DECODE_S, TOKEN_S) if place < 20 else (1.5 * DECODE_S, TOKEN_S)


@pytest.mark.parametrize("costs", [slowly, at_once], ids=["the-context-grows", "others-join"])
def test_what_changes_while_a_prompt_is_computed_is_followed(
    costs: Callable[[int], tuple[float, float]],
) -> None:
    """No step only decodes meanwhile, so that none tells what decoding alone costs now."""
    pace = settled()
    for place in range(100):
        mixed(pace, *costs(place))
    decode_s, token_s = costs(100)
    assert pace.tokens(0) == pytest.approx(room(pace, decode_s, token_s), abs=1)


def test_it_does_not_stay_at_the_least_once_there_is_room_again() -> None:
    pace = settled()
    for _ in range(50):
        mixed(pace, 4 * DECODE_S, 4 * TOKEN_S)  # a neighbour takes the machine
    assert pace.tokens(0) == LEAST_CHUNK
    for _ in range(20):
        mixed(pace)
    assert pace.tokens(0) == pytest.approx(room(pace), abs=1)


def test_where_the_slo_leaves_no_room_prompts_take_a_quarter_of_what_decoding_takes() -> None:
    pace = guessing(decode_s=0.200, token_s=TOKEN_S)
    assert pace.tokens(0) == 25


def test_it_never_falls_below_the_least() -> None:
    rng, pace = Random(7), PrefillPace(SLO_S)
    assert pace.tokens(0) == LEAST_CHUNK, "nothing has been measured"
    for _ in range(2_000):
        seconds = 10 ** rng.uniform(-6.0, 2.0)
        pace.stepped(rng.choice([[], [(0, pace.tokens(0))]]), seconds, decodes=True)
        assert pace.tokens(0) >= LEAST_CHUNK


def test_a_clock_that_stands_still_teaches_nothing() -> None:
    pace = settled()
    before = pace.tokens(0)
    pace.stepped([], 0.0, decodes=True)
    for decodes in (True, False):
        pace.stepped([(0, 8)], 0.0, decodes=decodes)
    assert pace.tokens(0) == before


def test_what_is_learnt_at_the_beginning_of_a_prompt_holds_after_a_long_context() -> None:
    pace = PrefillPace(SLO_S, even_context=2_000)
    pace.stepped([(0, 100)], 100 * TOKEN_S, decodes=False)
    pace.stepped([], DECODE_S, decodes=True)

    def as_places_cost() -> bool:
        there_is = room(pace)
        costs = ((0, 1), (2_000, 2), (4_000, 3))
        return all(pace.tokens(at) == max(LEAST_CHUNK, int(there_is / by)) for at, by in costs)

    assert as_places_cost()
    for start in range(0, 2_000, 10):
        tokens = pace.tokens(start)
        pace.stepped(
            [(start, tokens)], DECODE_S + TOKEN_S * tokens * (1 + start / 2_000), decodes=True
        )
    assert as_places_cost()
