"""Why a run failed, in the words of the server and without those of the prompt."""

import json
from dataclasses import replace

import pytest

from radixgate.analysis.records import RequestRecord
from radixgate.analysis.summary import summarise
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.failure_messages import failure_lines, first_messages
from radixgate.loadgen.report import table
from request_records import record

TOO_LONG = "9419 tokens; the context of 8192 has no room"


def failed(failure: str, detail: str) -> RequestRecord:
    return replace(record(failure=failure, end=0.1), failure_detail=detail)


RUN = [
    record((0.2, 1)),
    failed("timeout", ""),
    failed("HTTP 400", '{"error":{"message":"' + TOO_LONG + '","type":"invalid_request_error"}}'),
    failed("HTTP 400", '{"error":{"message":"a later one"}}'),
    failed("abandoned", "the client had enough"),
]


def test_the_table_shows_the_first_message_under_the_count() -> None:
    lines = table(BenchConfig(), summarise(RUN), first_messages(RUN)).splitlines()
    at = next(place for place, line in enumerate(lines) if "HTTP 400:" in line)
    assert lines[at].split() == ["HTTP", "400:", "2"]
    assert lines[at + 1] == f"    {TOO_LONG}"
    assert lines[at + 2].split() == ["timeout:", "1"]


def test_a_line_a_class_for_those_who_show_no_table() -> None:
    assert list(failure_lines(RUN)) == [f"HTTP 400: 2, the first: {TOO_LONG}", "timeout: 1"]


@pytest.mark.parametrize(
    ("detail", "shown"),
    [
        pytest.param("Connection reset\nby peer", "Connection reset by peer", id="one-line"),
        pytest.param("x" * 300, "x" * 197 + "...", id="shortened"),
        pytest.param('{"error": {"message": "too lo', "too lo", id="a-body-that-was-cut"),
        pytest.param('{"message": "no \\"a\\" here"}', 'no "a" here', id="quotes"),
        pytest.param(
            '{"detail": [{"msg": "not an int", "input": "my secret"}]}',
            "not an int",
            id="validator",
        ),
        pytest.param(
            "[{'loc': 'prompt', 'input': 'my secret'}]", None, id="nothing-but-what-was-sent"
        ),
        pytest.param(
            "1 error [type=int, input_value='my secret']", "1 error [type=int,", id="input-value"
        ),
        pytest.param('{"prompt": "my secret"}', None, id="no-message"),
        pytest.param(
            'messages: invalid type: string "my \\"secret\\" prompt", expected a sequence',
            'messages: invalid type: string "...", expected a sequence',
            id="serde",
        ),
        pytest.param(
            json.dumps(
                {"message": 'x: invalid value: string "a \\"secret\\"", expected one of `a`'}
            ),
            'x: invalid value: string "...", expected one of `a`',
            id="serde-in-a-message",
        ),
        pytest.param(
            'x: invalid type: string "my \\"secret\\", expected \\"too\\", and cu',
            'x: invalid type: string "..."',
            id="serde-that-was-cut",
        ),
        pytest.param(
            "role: unknown variant `my `secret` prompt`, expected one of `user`, `tool`",
            "role: unknown variant `...`, expected one of `user`, `tool`",
            id="serde-variant",
        ),
        pytest.param(
            "unknown variant `secret`, there are no variants",
            "unknown variant `...`, there are no variants",
            id="serde-variant-of-one-word",
        ),
        pytest.param(
            "unknown variant `my `, expected` secret",
            "unknown variant `...`",
            id="serde-variant-that-was-cut",
        ),
        pytest.param(
            "unknown field `min_tokens`, expected one of `n`, `stop` at line 1 column 9",
            "unknown field `min_tokens`, expected one of `n`, `stop` at line 1 column 9",
            id="serde-field",
        ),
        pytest.param(
            "unknown field `my secret`, expected `n`",
            "unknown field `...`, expected `n`",
            id="serde-field-that-is-no-name",
        ),
        pytest.param(
            "unknown field `a`, expected `n`\nunknown variant `my secret`, expected `n`",
            "unknown field `a`, expected `n` unknown variant `...`, expected `n`",
            id="serde-field-and-variant",
        ),
        pytest.param(
            'event: error\ndata: {"prompt": "my secret", "message": "too long"}',
            "too long",
            id="an-event-with-a-name",
        ),
    ],
)
def test_what_is_shown_of_a_detail(detail: str, shown: str | None) -> None:
    assert first_messages([failed("HTTP 422", detail)]).get("HTTP 422") == shown
