"""A section whose entries have names: from files and --set, and what is wrong there."""

from pathlib import Path

import pytest

from radixgate.configs.load import load
from radixgate.errors import ConfigError
from settings import DOOR, BellConfig


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def bells(text: str, *argv: str) -> dict[str, BellConfig]:
    Path("fleet.yaml").write_text(text, encoding="utf-8")
    settings = load(DOOR, ["--config", "fleet.yaml", *argv], environ={})
    return dict(settings.named_of(BellConfig))


def error(text: str, *argv: str) -> str:
    with pytest.raises(ConfigError) as caught:
        bells(text, *argv)
    assert "\n" not in caught.value.message
    return caught.value.message


def test_entries_keep_their_names_and_their_order() -> None:
    found = bells("bells:\n  front-door: {tone: ding}\n  a_b: {tone: dong, volume: 5}\n")
    assert list(found.items()) == [
        ("front-door", BellConfig("ding")),
        ("a_b", BellConfig("dong", 5)),
    ]


def test_without_entries_there_are_none() -> None:
    assert bells("") == {}
    assert bells("bells:\n") == {}


def test_set_goes_over_the_file_and_can_make_an_entry() -> None:
    text = "bells:\n  front-door: {tone: ding}\n"
    found = bells(text, "--set", "bells.front-door.volume=9", "--set", "bells.back.tone=dong")
    assert found == {"front-door": BellConfig("ding", 9), "back": BellConfig("dong")}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "bells:\n  a:\n    tune: x\n",
            "fleet.yaml:3: no setting bells.a.tune; nearest is bells.a.tone",
            id="unknown",
        ),
        pytest.param(
            "bells:\n  tone: x\n",
            "fleet.yaml:2: expected a mapping of settings for bells.tone, not 'x'",
            id="no-name",
        ),
        pytest.param(
            "bells: [a]\n", "fleet.yaml:1: expected bells by name, not a list", id="a-list"
        ),
        pytest.param(
            "bells:\n  a: {volume: 1}\n",
            "bells.a.tone must be given: what it sounds like",
            id="required",
        ),
        pytest.param(
            "bells:\n  a: {tone: x, volume: -1}\n",
            "bells.a: volume is -1, it cannot be negative",
            id="impossible",
        ),
        pytest.param("bell:\n  a: x\n", "no section bell; nearest is bells", id="section"),
    ],
)
def test_an_error_names_the_entry(text: str, message: str) -> None:
    assert message in error(text)


def test_set_needs_a_name_and_a_setting() -> None:
    assert "write it as bells.NAME.setting" in error("", "--set", "bells.tone=x")
