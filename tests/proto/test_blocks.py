"""Block ids against golden vectors and against the rule, written a second time.

The vectors are part of the contract: another program that cuts prompts by the same rule must find
the same numbers, so they never change.
"""

import struct
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from radixgate.proto.blocks import (
    LONG_AFTER_BYTES,
    byte_chain,
    bytes_in_blocks,
    chain,
    root_id,
)

TOKENS = array("I", [0, 1, 2, 255, 256, 65_536, 2**32 - 1, *range(7, 40)])
TEXT = bytes(place * 7 % 256 for place in range(20_000))
TOY = 0x0B78856481E43EEE

tokens = st.lists(st.integers(0, 2**32 - 1), max_size=70).map(lambda ids: array("I", ids))
names = st.text(max_size=300)
salts = st.none() | names
few = st.text(max_size=4)
namespaces = st.tuples(few, st.none() | few, st.none() | few)
pages = st.sampled_from([1, 4, 16, 64])


def packed(value: str | None) -> bytes:
    """A msgpack nil or string."""
    if value is None:
        return b"\xc0"
    raw = value.encode()
    if len(raw) < 32:
        return bytes([0xA0 | len(raw)]) + raw
    if len(raw) < 256:
        return b"\xd9" + bytes([len(raw)]) + raw
    return b"\xda" + struct.pack(">H", len(raw)) + raw


def root_by_rule(*namespace: str | None) -> int:
    return xxh3_64_intdigest(b"\x93" + b"".join(map(packed, namespace)))


def chain_by_rule(parent: int, ids: "array[int]", page: int) -> list[int]:
    found = []
    for start in range(0, len(ids) - page + 1, page):
        content = struct.pack(f"<{page}I", *ids[start : start + page])
        parent = xxh3_64_intdigest(struct.pack("<Q", parent) + content)
        found.append(parent)
    return found


def byte_chain_by_rule(parent: int, text: bytes) -> list[int]:
    found: list[int] = []
    start = 0
    while True:
        size = 256 if start < 16_384 else 1_024
        if start + size > len(text):
            return found
        parent = xxh3_64_intdigest(struct.pack("<Q", parent) + text[start : start + size])
        found.append(parent)
        start += size


@pytest.mark.parametrize(
    ("weights_id", "adapter", "salt", "golden"),
    [
        pytest.param("toy", None, None, 0x0B78856481E43EEE, id="the base model"),
        pytest.param("toy", "lora-a", None, 0x67AB69A1CF18DD39, id="an adapter"),
        pytest.param("toy", None, "tenant-1", 0xCD9106418A6006AF, id="a salt"),
        pytest.param("toy", None, "", 0xFB129980CE484C26, id="an empty salt is not no salt"),
        pytest.param("toy", "lora-a", "tenant-1", 0xA5536D88435E1966, id="adapter and salt"),
        pytest.param("w" * 40, None, None, 0x80208BCA710DDA96, id="a name over 31 bytes"),
        pytest.param(
            "w", None, "ä" * 200, 0x9C41A5F02774FD55, id="a salt over 255 bytes, not ASCII"
        ),
    ],
)
def test_the_root_of_a_namespace(
    weights_id: str, adapter: str | None, salt: str | None, golden: int
) -> None:
    assert root_id(weights_id, adapter, salt) == golden
    assert root_by_rule(weights_id, adapter, salt) == golden


def test_adapter_and_salt_are_absent_unless_given() -> None:
    assert root_id("toy") == root_id("toy", None, None) == TOY


@pytest.mark.parametrize(
    ("page", "golden"),
    [
        pytest.param(
            1,
            [
                0xAD160F0FAEEE5F8A,
                0x38538D77212DD2BE,
                0xE67D47945406E640,
                0xAF4AFDFBF00AA462,
                0xB6D791629595958B,
                0x0A1B493DCA79BEE0,
                0x6D244351510D7F84,
                0x16547970B8801ACC,
            ],
            id="page 1",
        ),
        pytest.param(
            4,
            [
                0xBDEDA0AFFA80EE31,
                0x46F4B2410E309488,
                0xC9728E28C2E6FAF1,
                0x19C1CFB5FD5E57B0,
                0x8E9EC52D3172AB8C,
                0x4BD7B7A18770D414,
                0xDDE3CE13DA32FE68,
                0x0ECF203894F35A66,
                0xA53067CACB05C1F8,
                0x1FACCB19ED980DD1,
            ],
            id="page 4",
        ),
        pytest.param(
            16,
            [
                0xBAFAA34FAF97AAD7,
                0x84AC6F13BA5F499E,
            ],
            id="page 16",
        ),
    ],
)
def test_the_chain_of_a_prompt(page: int, golden: list[int]) -> None:
    ids = chain(TOY, TOKENS, page)
    assert list(ids[: len(golden)]) == golden
    assert list(ids) == chain_by_rule(TOY, TOKENS, page)


def test_the_chain_of_a_text_has_longer_blocks_behind_16_kb() -> None:
    ids = byte_chain(TOY, TEXT)
    assert len(ids) == 64 + 3
    assert ids[0] == 0x8CE35AFD24269145
    assert ids[63] == 0x8F545883198DCF67
    assert ids[64] == 0xBA15B808EFA5302C
    assert ids[66] == 0x5B33CCF0ACB15157
    assert list(ids) == byte_chain_by_rule(TOY, TEXT)


@given(ids=tokens, page=pages)
def test_ids_follow_the_rule(ids: "array[int]", page: int) -> None:
    assert list(chain(TOY, ids, page)) == chain_by_rule(TOY, ids, page)


@given(weights_id=names, adapter=salts, salt=salts)
def test_roots_follow_the_rule(weights_id: str, adapter: str | None, salt: str | None) -> None:
    assert root_id(weights_id, adapter, salt) == root_by_rule(weights_id, adapter, salt)


@given(ids=tokens, cut=st.integers(0, 70), page=pages)
def test_a_prefix_of_a_prompt_has_a_prefix_of_its_ids(
    ids: "array[int]", cut: int, page: int
) -> None:
    whole = chain(TOY, ids, page)
    prefix = chain(TOY, ids[:cut], page)
    assert len(prefix) == min(cut, len(ids)) // page
    assert whole[: len(prefix)] == prefix


@given(ids=tokens, cut=st.integers(0, 4), page=pages)
def test_a_chain_may_be_continued_from_any_of_its_ids(
    ids: "array[int]", cut: int, page: int
) -> None:
    whole = chain(TOY, ids, page)
    cut = min(cut, len(whole))
    parent = whole[cut - 1] if cut else TOY
    assert whole[:cut] + chain(parent, ids[cut * page :], page) == whole


@given(ids=tokens, page=pages)
def test_no_id_occurs_twice_in_a_chain(ids: "array[int]", page: int) -> None:
    found = chain(TOY, ids, page)
    assert len(set(found)) == len(found)


@given(ids=tokens, page=pages, namespaces=st.sets(namespaces, min_size=2, max_size=2))
def test_namespaces_share_no_id(
    ids: "array[int]", page: int, namespaces: set[tuple[str, str | None, str | None]]
) -> None:
    chains = [set(chain(root_id(*namespace), ids, page)) for namespace in namespaces]
    assert len(set().union(*chains)) == sum(map(len, chains))


@given(length=st.integers(0, LONG_AFTER_BYTES + 3_500))
def test_byte_blocks_cover_the_text_up_to_less_than_one_block(length: int) -> None:
    blocks = len(byte_chain(TOY, TEXT[:length]))
    assert bytes_in_blocks(blocks) <= length < bytes_in_blocks(blocks + 1)
