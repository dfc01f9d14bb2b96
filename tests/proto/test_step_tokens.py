"""Which items go into columns, and that each handle's outputs keep their order."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from items import item
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.step_tokens import with_tokens


def logged(handle: int) -> pb.Item:
    made = item("a", ids=[1], handle=handle)
    made.logprobs.add(token_id=1)
    return made


WHOLE = {
    "two-tokens": item("ab", ids=[1, 2]),
    "no-token": item("a"),
    "another-choice": item("a", ids=[1], choice=1),
    "counts": item("a", ids=[1], counts=(3, 0, 1)),
    "finish": item("a", ids=[1], finish="stop"),
    "logprobs": logged(1),
}


@pytest.mark.parametrize("whole", list(WHOLE))
def test_an_item_that_brings_more_than_a_token_stays_one(whole: str) -> None:
    batch = pb.StepBatch(step=3, items=[WHOLE[whole]])
    assert with_tokens(batch) is batch
    beside = with_tokens(pb.StepBatch(step=3, items=[WHOLE[whole], item("b", ids=[7], handle=2)]))
    assert list(beside.items) == [WHOLE[whole]]
    assert beside.step == 3
    assert beside.tokens == pb.Tokens(handles=[2], token_ids=[7], texts=["b"])


def test_refusals_stay() -> None:
    refused = pb.Refused(handle=4, status=429)
    batch = pb.StepBatch(items=[item("a", ids=[1])], refused=[refused])
    assert list(with_tokens(batch).refused) == [refused]


handles = st.integers(1, 3)
items = st.one_of(
    st.builds(
        lambda handle, token: item(str(token), ids=[token], handle=handle),
        handles,
        st.integers(0, 9),
    ),
    st.builds(lambda handle: item("", ids=[1], counts=(1, 0, 1), handle=handle), handles),
    st.builds(lambda handle: item("x", ids=[4, 5], choice=1, handle=handle), handles),
)


@given(sent=st.lists(items, max_size=12))
def test_read_columns_first_each_handle_s_outputs_are_what_they_were(sent: list[pb.Item]) -> None:
    batch = with_tokens(pb.StepBatch(items=sent))
    tokens = batch.tokens
    read = [
        item(text, ids=[token_id], handle=handle)
        for handle, token_id, text in zip(
            tokens.handles, tokens.token_ids, tokens.texts, strict=True
        )
    ] + list(batch.items)
    for handle in (1, 2, 3):
        before = [one for one in sent if one.handle == handle]
        assert [one for one in read if one.handle == handle] == before
