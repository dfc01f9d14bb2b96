"""Flags come from the knobs; what is not one is refused with a way out."""

from dataclasses import dataclass

import pytest

from radixgate.configs.command import Command, Refusal
from radixgate.configs.declare import knob
from radixgate.configs.load import load
from radixgate.errors import ConfigError
from settings import DOOR, MODEL, DoorConfig, ModelConfig, RuleConfig


def door(*argv: str) -> DoorConfig:
    return load(DOOR, argv, environ={}).of(DoorConfig)


def error(*argv: str, command: Command = DOOR) -> str:
    with pytest.raises(ConfigError) as caught:
        load(command, argv, environ={})
    assert "\n" not in caught.value.message
    return caught.value.message


def test_without_flags_every_knob_has_its_default() -> None:
    settings = load(DOOR, [], environ={})
    assert settings.of(DoorConfig) == DoorConfig()
    assert settings.of(RuleConfig) == RuleConfig()
    assert settings.sections.keys() == {"door", "rule"}


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        pytest.param(["--port", "0"], DoorConfig(port=0), id="integer"),
        pytest.param(["--port=-1"], DoorConfig(port=-1), id="negative, with an equals sign"),
        pytest.param(["--port", "-1"], DoorConfig(port=-1), id="negative, apart"),
        pytest.param(["--address", "::1"], DoorConfig(host="::1"), id="second spelling"),
        pytest.param(["--grace-s", "1e-3"], DoorConfig(grace_s=0.001), id="number"),
        pytest.param(["--grace-s", "inf"], DoorConfig(grace_s=float("inf")), id="no limit"),
        pytest.param(["--no-metrics"], DoorConfig(metrics=False), id="switched off"),
        pytest.param(["--cache-dir", "c"], DoorConfig(cache_dir="c"), id="optional"),
        pytest.param(
            ["--cache-dir", "c", "--cache-dir", "none"], DoorConfig(), id="the last flag wins"
        ),
        pytest.param(
            ["--worker-urls", "a", "b", "--port", "1"],
            DoorConfig(worker_urls=("a", "b"), port=1),
            id="several values after one flag",
        ),
        pytest.param(
            ["--worker-urls", "a", "--worker-urls", "b"],
            DoorConfig(worker_urls=("a", "b")),
            id="one flag several times",
        ),
        pytest.param(["--depths", "3", "4"], DoorConfig(depths=(3, 4)), id="list of integers"),
    ],
)
def test_a_flag_sets_its_knob(argv: list[str], expected: DoorConfig) -> None:
    assert door(*argv) == expected


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        pytest.param(["--port", "x"], "--port: expected an integer, not 'x'", id="integer"),
        pytest.param(["--port", "1.5"], "--port: expected an integer, not '1.5'", id="fraction"),
        pytest.param(["--grace-s", "x"], "--grace-s: expected a number, not 'x'", id="number"),
        pytest.param(["--grace-s", "nan"], "--grace-s: expected a number, not 'nan'", id="nan"),
        pytest.param(
            ["--policy", "cash_aware"],
            "--policy: expected one of random, cache_aware, not 'cash_aware'",
            id="choice",
        ),
        pytest.param(["--port"], "--port: expected one argument", id="no value"),
        pytest.param(["--port", "none"], "--port: expected an integer, not 'none'", id="not none"),
        pytest.param(["--metrics", "yes"], "yes: a value that belongs to no flag", id="bool"),
        pytest.param(
            ["--polcy", "random"],
            "--polcy: radixgate door has no such flag; nearest is --policy",
            id="unknown",
        ),
        pytest.param(
            ["--no-metric"],
            "--no-metric: radixgate door has no such flag; nearest is --no-metrics",
            id="unknown negation",
        ),
        pytest.param(
            ["--por=1"],
            "--por: radixgate door has no such flag; nearest is --port",
            id="no abbreviations",
        ),
    ],
)
def test_a_wrong_flag_says_what_is_right(argv: list[str], message: str) -> None:
    assert error(*argv) == message


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        pytest.param(["--nnodes", "4"], "--nnodes 4: one worker is one node", id="one value"),
        pytest.param(["--nnodes=4"], "--nnodes 4: one worker is one node", id="equals sign"),
        pytest.param(["--nnodes"], "--nnodes: one worker is one node", id="no value"),
        pytest.param(
            ["--speculate", "a", "b", "--port", "1"],
            "--speculate a b: draft tokens are not supported",
            id="several values",
        ),
    ],
)
def test_a_refused_flag_gives_its_reason(argv: list[str], message: str) -> None:
    assert error(*argv) == message


def test_a_refused_flag_passes_where_it_asks_for_what_is_so_anyway() -> None:
    assert door("--nnodes", "1", "--disable-graphs", "--port", "1") == DoorConfig(port=1)


def test_a_setting_without_default_must_be_given() -> None:
    message = "--model-path must be given (in a file: model.model_path)"
    assert error(command=MODEL) == message
    given = load(MODEL, ["--model-path", "toy"], environ={})
    assert given.of(ModelConfig) == ModelConfig(model_path="toy")


def test_a_section_that_the_command_lacks_cannot_be_read() -> None:
    with pytest.raises(TypeError, match="no section is a ModelConfig"):
        load(DOOR, [], environ={}).of(ModelConfig)


def test_help_shows_sections_units_and_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        load(DOOR, ["--help"], environ={})
    assert stop.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    for part in (
        "A door for tests.",
        "door: Where the door listens. --port",
        "time for work in flight at the end (s; default: 30.0)",
        "(default: 1,2)",
        "(default: none; environment: DOOR_CACHE_DIR)",
        "--policy {random,cache_aware}",
        "100 % is all",
        "--metrics, --no-metrics",
    ):
        assert part in text
    assert "nnodes" not in text
    assert "second paragraph" not in text


@dataclass(frozen=True, slots=True)
class OtherDoor:
    port: int = knob(1, help="another port")


@dataclass(frozen=True, slots=True)
class Negated:
    no_metrics: int = knob(1, help="looks like the other's --no-metrics")


@dataclass(frozen=True, slots=True)
class SetConfig:
    set: int = knob(1, help="the name of a flag that every command has")


@pytest.mark.parametrize(
    ("second", "owners"),
    [
        pytest.param(OtherDoor, "--port belongs to door and to second", id="same name"),
        pytest.param(Negated, "--no-metrics belongs to door and to second", id="negation"),
        pytest.param(SetConfig, "--set belongs to every command and to second", id="own flag"),
    ],
)
def test_two_sections_cannot_share_a_flag(second: type, owners: str) -> None:
    with pytest.raises(TypeError, match=owners):
        Command("two", "", {"door": DoorConfig, "second": second})


def test_a_knob_cannot_be_refused_too() -> None:
    with pytest.raises(TypeError, match="--port of door is also refused"):
        Command("two", "", {"door": DoorConfig}, refused={"--port": Refusal("no")})


def test_a_knob_must_have_a_type_that_a_flag_can_carry() -> None:
    @dataclass(frozen=True, slots=True)
    class Strange:
        table: dict[str, int] = knob(help="no flag can say this")

    with pytest.raises(TypeError, match="knob table"):
        Command("strange", "", {"strange": Strange})
