"""A gateway says whether it was installed with a compiler."""

import pytest

from radixgate.gateway import compiled_parts, data_path
from radixgate.gateway.compiled_parts import tell_compiled_parts
from small_gateway import small_gateway


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
        tell_compiled_parts("off")
    (record,) = caplog.records
    assert (record.levelname, record.getMessage()) == ("INFO", "compiled parts")
    assert vars(record)["fields"] == told | {"row_writes": "off"}


class Ring:
    def send(self, fds: list[int], pieces: list[bytes], /) -> list[tuple[int, int]]:
        return []


@pytest.mark.parametrize(
    ("ring", "in_rows", "told"),
    [(Ring(), True, "io_uring"), (None, True, "none"), (Ring(), False, "off")],
)
async def test_its_log_says_who_takes_rows_of_writes_without_opening_another_queue(
    ring: Ring | None,
    in_rows: bool,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    opened: list[Ring | None] = []

    def open_ring() -> Ring | None:
        opened.append(ring)
        return ring

    monkeypatch.setattr(data_path, "open_ring", open_ring)
    with caplog.at_level("INFO", logger="radixgate"):
        async with small_gateway([], row_writes=in_rows):
            pass
    (record,) = [one for one in caplog.records if one.getMessage() == "compiled parts"]
    assert vars(record)["fields"]["row_writes"] == told
    assert opened == [ring] * in_rows
