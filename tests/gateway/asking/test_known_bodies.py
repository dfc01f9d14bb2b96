"""What is left out of a body that begins like one before changes nothing of what is read."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreign_asking import KEY, new_asking
from radixgate.errors import RequestError
from radixgate.gateway.asking import known_bodies, known_chains
from radixgate.gateway.asking.foreign_request import ForeignRequest, read_foreign
from radixgate.gateway.asking.known_bodies import KnownBodies
from radixgate.gateway.asking.question import Asking
from radixgate.gateway.attempt.caller import ANYONE, Caller

CHAT, COMPLETION, NATIVE = b"/v1/chat/completions", b"/v1/completions", b"/generate"
UNITS = ("word ", "line\n", 'a "name"', "back\\slash", "é", "漢字", "😀", "\x7f/", "\t ", "\x00")


def chat(*texts: str, **more: object) -> dict[str, object]:
    roles = ("user", "assistant")
    turns = [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]
    return {"model": "toy", "messages": turns, **more}


def document(units: tuple[str, ...], size: int, seed: int = 0) -> str:
    """So many bytes or a few more, no two stretches of it alike."""
    rng, pieces, length = random.Random(seed), [], 0
    while length < size:
        pieces.append(f"{rng.randrange(1_000)}{rng.choice(units)}")
        length += len(pieces[-1].encode())
    return "".join(pieces)


def whole(request: ForeignRequest, known: KnownBodies, path: bytes, body: bytes) -> bool:
    """Read with nothing left out, and as without a memory."""
    found, hole = known.read(path, body)
    return hole is None and found == request


def outcome(asking: Asking, body: bytes, caller: Caller = ANYONE) -> object:
    try:
        return asking.read(CHAT, body, caller)
    except RequestError as error:
        return type(error), str(error), error.param


@pytest.mark.parametrize("ascii_only", [True, False], ids=["escaped", "as-it-is"])
@pytest.mark.parametrize("units", [UNITS[:1], UNITS[:3], UNITS[4:6], UNITS[6:7], UNITS])
def test_the_third_request_about_a_document_is_read_around_it(
    units: tuple[str, ...], ascii_only: bool
) -> None:
    known, text = KnownBodies(), document(units, 60_000)
    for turn in range(4):
        body = json.dumps(chat(f"{text} {turn}", user="u"), ensure_ascii=ascii_only).encode()
        request, plain = read_foreign(CHAT, body), known.read(CHAT, body)
        found, hole = plain
        assert (hole is not None) == (turn > 1)
        if hole is not None:
            left_out = request.prompt[hole.before : hole.end]
            assert len(left_out) > 20_000
            around = found.prompt[: hole.before] + left_out + found.prompt[hole.before :]
            assert around == request.prompt
            assert found.session == request.session == "u"


def test_a_short_body_and_one_of_many_messages_are_read_as_ever() -> None:
    known = KnownBodies()
    for size, messages in ((3_000, 1), (1_000, 60)):
        texts = [document(UNITS, size, seed) for seed in range(messages)]
        body = json.dumps(chat(*texts)).encode()
        for _ in range(4):
            assert whole(read_foreign(CHAT, body), known, CHAT, body)


def test_the_same_body_on_another_path_is_another_one() -> None:
    known, text = KnownBodies(), document(UNITS, 60_000)
    both = {"prompt": text, "text": text, "model": "toy"}
    body = json.dumps(both).encode()
    # The end of the body is in a text that is no prompt here, which takes some tries to learn.
    found = [known.read(COMPLETION, body) for _ in range(10)]
    assert found[-1][1] is not None
    for _ in range(2):
        assert whole(read_foreign(NATIVE, body), known, NATIVE, body)


def test_what_one_owner_has_sent_is_new_from_another() -> None:
    known = KnownBodies()
    body = json.dumps(chat(document(UNITS, 60_000))).encode()
    assert [known.read(CHAT, body, "a")[1] is not None for _ in range(3)] == [False, False, True]
    assert [known.read(CHAT, body, "b")[1] is not None for _ in range(3)] == [False, False, True]


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_bodies, "MAX_BEGINNINGS", 10)
    monkeypatch.setattr(known_chains, "MAX_HOLES", 2)
    asking = new_asking()
    for seed in range(6):
        body = json.dumps(chat(document(UNITS[:2], 50_000, seed))).encode()
        for _ in range(4):
            asked = asking.read(CHAT, body)
        assert asked == new_asking().read(CHAT, body)
        assert len(asking._bodies._known) <= 10
        assert len(asking._chains._in_holes) <= 2


def test_a_field_behind_the_text_is_read_each_time() -> None:
    asking, text = new_asking(), document(UNITS, 60_000)
    salts, seen = ("red", "blue", None), []
    for salt in salts * 4:
        body = json.dumps(chat(text, cache_salt=salt)).encode()
        question = asking.read(CHAT, body)
        assert question == new_asking().read(CHAT, body)
        assert question is not None
        seen.append(question.ask.blocks[KEY][-1])
    assert len(set(seen)) == 3


def test_a_conversation_keeps_its_name_where_its_text_ends_with_a_block() -> None:
    """The whole text is left out then, and what stands right behind the hole ends the exchange."""
    asking, names = new_asking(), []
    filler = b'{"metadata":"%b","messages":[{"role":"user","content":"'
    head = filler % (b"m" * (1_031 - len(filler)))
    for seed in range(2):
        text = document(UNITS[:1], 36_864, seed).encode()[: 36_864 - len(head)]
        for turn in range(5):
            tail = (
                b'"},{"role":"assistant","content":"yes"},{"role":"user","content":"%d"}]}' % turn
            )
            body = head + text + tail
            question = asking.read(CHAT, body)
            assert question == new_asking().read(CHAT, body)
            assert question is not None
            names.append(question.ask.session)
    assert len(set(names)) == 2


TAILS = (
    b'"}]}',
    b' and more"}],"temperature":0.5}',
    b'"},{"role":"assistant","content":"yes"},{"role":"user","content":"so?"}]}',
    b'"}],"messages":[{"role":"user","content":"the last one counts"}]}',
    b'"}],"model":"other"}',
    b'"}],"tools":[{"type":"function"}]}',
    b'","content":"of one name the last counts"}]}',
    b'"}],"temperature":-1}',
    b'"}]',
    b"",
    b"\\",
    b'\\u00e9\\n\\\\"}]}',
    b'\x01"}]}',
    b'\xff"}]}',
    b'\xa9"}]}',
    b'\\ude00"}]}',
    b'er\\u001f"}]}',
    b'\\u001e"}]}',
    b'"}]} ',
    b'"}]}}',
    b'"}],"session_id":"s","user":5}',
)
HEADS = (
    b'{"model":"toy","messages":[{"role":"user","content":"',
    b'{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"',
    b'{"messages":[{"role":"user","content":"hi"},{"role":"tool","content":"',
    b'{"messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"text","text":"',
    b'{"messages":[{"role":"user","content":"us',
    b'{"metadata":"',
    b'{"tools":[{"description":"',
    b'{"model":"',
)
CALLERS = (ANYONE, Caller(tenant="red", salted=True))


def one_body(head: bytes, text: str, ascii_only: bool, tail: bytes) -> bytes:
    inside = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
    return head + inside.encode() + tail


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    head=st.sampled_from(HEADS),
    units=st.lists(st.sampled_from(UNITS), min_size=1, max_size=4).map(tuple),
    size=st.integers(24_000, 70_000),
    ascii_only=st.booleans(),
    asked=st.lists(
        st.tuples(st.sampled_from(TAILS), st.sampled_from(CALLERS), st.integers(0, 30_000)),
        min_size=3,
        max_size=12,
    ),
)
def test_every_question_is_the_same_with_a_memory(
    head: bytes,
    units: tuple[str, ...],
    size: int,
    ascii_only: bool,
    asked: list[tuple[bytes, Caller, int]],
) -> None:
    asking, text = new_asking(), document(units, size)
    usual = one_body(head, text, ascii_only, b'"}]}')
    for _ in range(3):
        outcome(asking, usual)
    for tail, caller, more in asked:
        body = one_body(head, text + text[:more], ascii_only, tail)
        assert outcome(asking, body, caller) == outcome(new_asking(), body, caller)
