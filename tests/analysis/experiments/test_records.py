"""What is written of an experiment is read again, and names nobody."""

import pytest

from radixgate.analysis.experiments.records import (
    Arm,
    BlockEvent,
    Declaration,
    ExperimentEnd,
    Guardrail,
    GuardrailTrip,
    Record,
    RequestLine,
    ShadowDecision,
    line_of,
    read_lines,
)
from radixgate.analysis.experiments.schedule import schedule_of
from radixgate.errors import ConfigError

DECLARED = Declaration(
    experiment="colder",
    kind="switchback",
    arms=(Arm("a", "kv_cost"), Arm("b", "cache_aware", {"balance_abs_threshold": 4})),
    began_at=1_700_000_000.0,
    seed=7,
    block_s=480.0,
    pairs=6,
    washout_s=240.0,
    guardrails=(Guardrail("slow", "ttft_p99", 3.0, relative=True),),
)
ALL: list[Record] = [
    DECLARED,
    schedule_of(DECLARED),
    BlockEvent("colder", 0, "a", "drained", 3.5, held=4, held_s=6.25, hold_s=3.5),
    RequestLine("colder", 0, "a", True, 4.0, "ok", ttft_s=0.25, prompt_tokens=900, unit=77),
    RequestLine("colder", 0, "a", False, 300.0, "aborted"),
    GuardrailTrip("colder", 310.0, 0, "slow", "ttft_p99", 4.5, 3.0, 250),
    ShadowDecision("colder", 1.0, "w0", "w1", None, 900, 512, 0, None, 1.0, 1.5),
    ExperimentEnd("colder", 5_760.0, "finished"),
]


def test_every_record_survives_its_line() -> None:
    lines = [line_of(record) for record in ALL]
    assert list(read_lines(lines)) == ALL
    assert [line.count(b"\n") for line in lines] == [1] * len(ALL)


def test_a_line_that_was_cut_off_is_left_out_only_at_the_end() -> None:
    lines = [line_of(record) for record in ALL]
    assert list(read_lines([*lines[:3], lines[3][:20]])) == ALL[:3]
    with pytest.raises(ConfigError, match="log, line 2:"):
        list(read_lines([lines[0], lines[1][:20] + b"\n", lines[2]], "log"))


def test_an_unknown_record_is_refused_and_an_unknown_field_is_not() -> None:
    with pytest.raises(ConfigError, match="line 1"):
        list(read_lines([b'{"record": "diary", "experiment": "x"}\n']))
    newer = line_of(ALL[-1]).replace(b'"t_s"', b'"mood":"calm","t_s"')
    assert list(read_lines([newer])) == [ALL[-1]]
