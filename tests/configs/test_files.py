"""Files, --set and the environment: who wins, and what an error points at."""

from pathlib import Path

import pytest

from radixgate.configs.load import Settings, load
from radixgate.errors import ConfigError
from settings import DOOR, DoorConfig, RuleConfig


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def from_file(text: str, *argv: str, env: str = "") -> Settings:
    Path("fleet.yaml").write_text(text, encoding="utf-8")
    environ = {"DOOR_CACHE_DIR": env} if env else {}
    return load(DOOR, ["--config", "fleet.yaml", *argv], environ=environ)


def error(text: str, *argv: str) -> str:
    with pytest.raises(ConfigError) as caught:
        from_file(text, *argv)
    assert "\n" not in caught.value.message
    return caught.value.message


def test_a_file_sets_knobs_by_section(folder: Path) -> None:
    settings = from_file(
        """
        door:
          port: 1
          host: no            # a name, though YAML would read false
          worker-urls: [http://a:1, http://b:2]
          grace_s: 1e-3
          metrics: off
          depths: [3]
        rule:
          threshold: null
        """
    )
    assert settings.of(DoorConfig) == DoorConfig(
        port=1,
        host="no",
        worker_urls=("http://a:1", "http://b:2"),
        grace_s=0.001,
        metrics=False,
        depths=(3,),
    )
    assert settings.of(RuleConfig) == RuleConfig()


@pytest.mark.parametrize("text", ["", "# nothing\n", "door:\n", "{}", "---\n"])
def test_an_empty_file_changes_nothing(folder: Path, text: str) -> None:
    assert from_file(text).of(DoorConfig) == DoorConfig()


def test_flags_win_over_set_over_file_over_environment_over_defaults(folder: Path) -> None:
    file = "door: {cache_dir: file}"
    set_it, flag = ["--set", "door.cache-dir=set"], ["--cache-dir", "flag"]

    def chosen(text: str, *argv: str, env: str = "env") -> str | None:
        return from_file(text, *argv, env=env).of(DoorConfig).cache_dir

    assert chosen(file, *flag, *set_it) == "flag"
    assert chosen(file, *set_it) == "set"
    assert chosen(file) == "file"
    assert chosen("") == "env"
    assert chosen("", env="") is None


def test_set_takes_lists_with_commas_and_the_last_one_wins(folder: Path) -> None:
    settings = from_file("", "--set", "door.depths=1", "--set", "door.depths=4, 5")
    assert settings.of(DoorConfig).depths == (4, 5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "rule:\n  polcy: random\n",
            "fleet.yaml:2: no setting rule.polcy; nearest is rule.policy",
            id="key",
        ),
        pytest.param(
            "\nrul:\n  policy: random\n",
            "fleet.yaml:3: no section rul; nearest is rule",
            id="section",
        ),
        pytest.param(
            "rule:\n  port: 1\n",
            "fleet.yaml:2: no setting rule.port; nearest is door.port",
            id="key of another section",
        ),
        pytest.param(
            "port:\n  x: 1\n",
            "fleet.yaml:2: port is not a section but a setting: write door.port",
            id="setting as section",
        ),
        pytest.param(
            "port: 1\n",
            "fleet.yaml:1: expected a mapping of settings for port, not '1'",
            id="setting at the top",
        ),
        pytest.param(
            "door:\n  host: a\n  port: many\n",
            "fleet.yaml:3: door.port: expected an integer, not 'many'",
            id="wrong type",
        ),
        pytest.param(
            "door:\n  port:\n",
            "fleet.yaml:2: door.port: expected an integer, not nothing",
            id="no value",
        ),
        pytest.param(
            "door:\n  port: [1]\n",
            "fleet.yaml:2: door.port: expected an integer, not a list",
            id="list for one value",
        ),
        pytest.param(
            "door:\n  depths: [1, ~]\n",
            "fleet.yaml:2: door.depths: expected an integer, not nothing",
            id="gap in a list",
        ),
        pytest.param(
            "door:\n  port: {a: 1}\n",
            "fleet.yaml:2: expected one value, not a mapping",
            id="mapping for a value",
        ),
        pytest.param(
            "rule:\n  policy: best\n",
            "fleet.yaml:2: rule.policy: expected one of random, cache_aware, not 'best'",
            id="choice",
        ),
        pytest.param(
            "- door\n",
            "fleet.yaml:1: expected a mapping of sections, not a list",
            id="no mapping",
        ),
        pytest.param(
            "door:\n  worker_urls: [a]\n  worker-urls: [b]\n",
            "fleet.yaml:3: worker_urls stands a second time; the first is fleet.yaml:2",
            id="key twice",
        ),
        pytest.param(
            "door:\n  host: !secret x\n",
            "fleet.yaml:2: the tag !secret has no meaning here",
            id="tag",
        ),
        pytest.param("door:\n  [a]: 1\n", "fleet.yaml:2: expected a name, not a list", id="name"),
    ],
)
def test_an_error_points_at_file_and_line(folder: Path, text: str, message: str) -> None:
    assert error(text) == message


def test_a_broken_file_is_an_error_with_its_line(folder: Path) -> None:
    assert error("door:\n  port: [1\nrule: 2\n").startswith("fleet.yaml:3: ")


def test_a_wrong_line_shows_even_where_a_flag_overrides_it(folder: Path) -> None:
    assert error("door: {port: x}", "--port", "1").startswith("fleet.yaml:1: door.port")


def test_a_missing_file_is_named(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"^--config none\.yaml: No such file or directory$"):
        load(DOOR, ["--config", "none.yaml"], environ={})


def test_a_file_that_is_not_text_is_named(folder: Path) -> None:
    Path("fleet.yaml").write_bytes(b"door: \xff")
    with pytest.raises(ConfigError, match="not UTF-8 at byte 6"):
        load(DOOR, ["--config", "fleet.yaml"], environ={})


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        pytest.param(
            "door.prt=1",
            "--set door.prt=1: no setting door.prt; nearest is door.port",
            id="unknown",
        ),
        pytest.param(
            "door.port=x", "--set door.port: expected an integer, not 'x'", id="wrong type"
        ),
        pytest.param("port=1", "--set port=1: write it as section.key=value", id="no section"),
        pytest.param("door.port", "--set door.port: write it as section.key=value", id="no value"),
    ],
)
def test_a_wrong_set_is_repeated_in_the_error(folder: Path, setting: str, message: str) -> None:
    assert error("", "--set", setting) == message


def test_an_environment_variable_counts_only_where_a_knob_names_it_and_it_is_not_empty() -> None:
    settings = load(DOOR, [], environ={"DOOR_CACHE_DIR": "", "PORT": "x"})
    assert settings.of(DoorConfig) == DoorConfig()


def test_the_environment_of_the_process_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOOR_CACHE_DIR", "warm")
    assert load(DOOR, []).of(DoorConfig).cache_dir == "warm"
