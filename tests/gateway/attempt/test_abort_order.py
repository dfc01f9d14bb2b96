"""Whose requests an order to abort means."""

import pytest

from radixgate.gateway.attempt.abort_order import AbortOrder, rid_of


@pytest.mark.parametrize(
    ("body", "meant"),
    [
        pytest.param(b'{"rid": "mine"}', True, id="its-rid"),
        pytest.param(b'{"rid": ["other", "mine"]}', True, id="one-of-a-batch"),
        pytest.param(b'{"rid": "mine, too"}', False, id="another-rid"),
        pytest.param(b"{}", False, id="none"),
        pytest.param(b"{", False, id="no-json"),
        pytest.param(b'{"a": ' + b"[" * 2_000, False, id="nested-too-deep-to-read"),
    ],
)
def test_a_body_that_waits_is_meant_by_its_rid(body: bytes, meant: bool) -> None:
    assert AbortOrder("mine").names_any(rid_of(body)) is meant
