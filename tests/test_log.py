"""A record is a line, whatever others have put into its fields."""

import logging

import pytest

from radixgate.log import LineFormatter, fields


@pytest.mark.parametrize(
    ("given", "written"),
    [
        pytest.param("w1", "w1", id="plain"),
        pytest.param("no answer within 2 s", "no answer within 2 s", id="spaces"),
        pytest.param("模型😀", "模型😀", id="other-scripts"),
        pytest.param("a\nINFO all is well", r"a\nINFO all is well", id="another-line"),
        pytest.param("a\r\u2028\x85b\tc", r"a\r\u2028\x85b\tc", id="ends-of-lines-elsewhere"),
        pytest.param("\x1b[31mred\x00\x7f", r"\x1b[31mred\x00\x7f", id="orders-to-a-terminal"),
        pytest.param(("a\n", 3), r"('a\n', 3)", id="within-another-value"),
        pytest.param(None, "None", id="none"),
    ],
)
def test_a_field_holds_no_end_of_a_line(given: object, written: str) -> None:
    record = logging.makeLogRecord({"msg": "worker ready", **fields(model=given)})
    line = LineFormatter("%(message)s").format(record)
    assert line == f"worker ready model={written}"
    assert line.splitlines() == [line]
