"""A gateway says whether it was installed with a compiler."""

import pytest

from radixgate.gateway import compiled_parts
from radixgate.gateway.compiled_parts import tell_compiled_parts


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        (
            {"block_ids": True, "costs": False, "chunks": True},
            {"in_c": "block_ids,chunks", "in_python": "costs"},
        ),
        ({"costs": True}, {"in_c": "costs", "in_python": "none"}),
        ({"costs": False}, {"in_c": "none", "in_python": "costs"}),
    ],
)
def test_its_log_names_what_is_compiled_and_what_is_not(
    parts: dict[str, bool],
    told: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(compiled_parts, "_PARTS", parts)
    with caplog.at_level("INFO", logger="radixgate"):
        tell_compiled_parts(row_writes=False)
    (record,) = caplog.records
    assert (record.levelname, record.getMessage()) == ("INFO", "compiled parts")
    assert vars(record)["fields"] == told | {"row_writes": "off"}


class Ring:
    def send(self, fds: list[int], pieces: list[bytes], /) -> list[tuple[int, int]]:
        return []


@pytest.mark.parametrize(("ring", "told"), [(Ring(), "io_uring"), (None, "none")])
def test_its_log_says_whether_the_kernel_takes_rows_of_writes(
    ring: Ring | None,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(compiled_parts, "open_ring", lambda: ring)
    with caplog.at_level("INFO", logger="radixgate"):
        tell_compiled_parts(row_writes=True)
    (record,) = caplog.records
    assert vars(record)["fields"]["row_writes"] == told
