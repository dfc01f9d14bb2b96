"""Stop strings: nothing of one leaks, none is missed, no held text is lost."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixgate.errors import RequestError
from radixgate.text.detokenizer import Detokenizer
from radixgate.text.stop_strings import StopStrings
from radixgate.text.tokenizer import Tokenizer
from vocabularies import tokenizer_of

VOCABULARIES = [
    pytest.param(tokenizer_of(), id="bytes"),
    pytest.param(tokenizer_of("beta", "alpha", "bet"), id="words"),
]


@dataclass(frozen=True)
class Answer:
    deltas: list[str]  # the empty ones too
    finish: str

    @property
    def text(self) -> str:
        return "".join(self.deltas)


def answer(tokenizer: Tokenizer, ids: Sequence[int], stops: Sequence[str]) -> Answer:
    """What the worker's output loop does with the tokens of one choice."""
    detokenizer, watch = Detokenizer(tokenizer), StopStrings(stops)
    deltas = []
    for token_id in ids:
        shown, matched = watch.push(detokenizer.push(token_id))
        watch.check()
        deltas.append(shown)
        if matched is not None:
            return Answer(deltas, "stop")
    shown, matched = watch.push(detokenizer.flush())
    return Answer([*deltas, shown, watch.flush()], "length" if matched is None else "stop")


def whole(text: str, stops: Sequence[str]) -> str:
    """The text that an answer in one piece shows."""
    watch = StopStrings(stops)
    shown, _ = watch.push(text)
    return shown + watch.flush()


G10 = "alpha-beta-gamma"


@pytest.mark.parametrize("tokenizer", VOCABULARIES)
@pytest.mark.parametrize(
    ("text", "stops", "shown", "finish"),
    [
        pytest.param(G10, ["-beta-"], "alpha", "stop", id="a-spans-tokens"),
        pytest.param(G10, ["et"], "alpha-b", "stop", id="b-inside-a-token"),
        pytest.param("alpha-bet!", ["-beta"], "alpha-bet!", "length", id="c-never-completes"),
        pytest.param("alpha-", ["-zz"], "alpha-", "length", id="d-cut-while-held"),
        pytest.param(G10, ["a-g", "beta-gam"], "alpha-bet", "stop", id="e-first-to-complete"),
        pytest.param(G10, ["a"], "", "stop", id="f-first-character"),
    ],
)
def test_g10_the_stop_string_ends_the_text(
    tokenizer: Tokenizer, text: str, stops: list[str], shown: str, finish: str
) -> None:
    got = answer(tokenizer, tokenizer.encode(text), stops)
    assert (got.text, got.finish) == (shown, finish)
    assert got.text == whole(text, stops)


@pytest.mark.parametrize("tokenizer", VOCABULARIES)
def test_g10_a_no_letter_of_the_stop_string_is_ever_shown(tokenizer: Tokenizer) -> None:
    assert all("-" not in d for d in answer(tokenizer, tokenizer.encode(G10), ["-beta-"]).deltas)


def test_g10_b_the_stop_lies_inside_one_token() -> None:
    tokenizer = tokenizer_of("beta")
    assert tokenizer.token_bytes(tokenizer.encode(G10)[6]) == b"beta"


def test_g10_c_text_is_held_only_while_the_stop_can_still_complete() -> None:
    tokenizer = tokenizer_of()
    deltas = answer(tokenizer, tokenizer.encode("alpha-bet!"), ["-beta"]).deltas
    assert deltas[:10] == [*"alpha", "", "", "", "", "-bet!"]


def test_g10_d_a_limit_gives_the_held_text_back() -> None:
    tokenizer = tokenizer_of("alpha")
    ids = tokenizer.encode("alpha-beta")[:2]
    assert answer(tokenizer, ids, ["-zz"]) == Answer(["alpha", "", "", "-"], "length")


def test_of_stops_that_complete_together_the_longest_wins() -> None:
    assert StopStrings(["c", "abc", "bc"]).push("xabc") == ("x", "abc")


def test_an_overlapping_start_is_not_lost() -> None:
    watch = StopStrings(["aab"])
    assert watch.push("aaa") == ("a", None)
    assert watch.push("b!") == ("", "aab")


def test_after_a_match_nothing_more_comes_out() -> None:
    watch = StopStrings(["."])
    watch.push("one.")
    assert watch.push("two.") == ("", ".")
    assert watch.flush() == ""


def test_without_stops_everything_passes_at_once() -> None:
    watch = StopStrings([])
    assert watch.push("text") == ("text", None)
    assert watch.flush() == ""


def test_an_empty_stop_string_is_refused_by_name() -> None:
    with pytest.raises(RequestError) as refused:
        StopStrings(["x", ""])
    assert refused.value.param == "stop"


few_letters = st.text("ab-", max_size=12)


@given(
    pieces=st.lists(few_letters, max_size=8),
    stops=st.lists(st.text("ab-", min_size=1, max_size=4), max_size=4),
)
def test_pieces_do_not_matter_and_the_first_to_complete_wins(
    pieces: list[str], stops: list[str]
) -> None:
    text = "".join(pieces)
    ends = [(text.find(stop) + len(stop), -len(stop)) for stop in stops if stop in text]
    expected = text
    if ends:
        end, minus_length = min(ends)
        expected = text[: end + minus_length]

    watch = StopStrings(stops)
    shown, matched = "", None
    for piece in pieces:
        out, matched = watch.push(piece)
        watch.check()
        shown += out
        assert expected.startswith(shown)
    shown += watch.flush()
    assert (shown, matched is not None) == (expected, bool(ends))
    assert whole(text, stops) == expected
