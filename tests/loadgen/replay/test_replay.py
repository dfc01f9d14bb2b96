"""Recorded decisions, decided again."""

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from books import KEY, MODEL, ids_of
from clocks import FakeClock
from decided import NotedFleet
from radixgate.cli import main
from radixgate.errors import ConfigError
from radixgate.fleet.ask import Ask
from radixgate.fleet.decision_lines import encode_line
from radixgate.fleet.lease import Outcome
from radixgate.fleet.rule import Rule
from radixgate.loadgen.replay.config import ReplayConfig
from radixgate.loadgen.replay.run import run_replay
from radixgate.policies.cache_aware import CacheAwareConfig
from radixgate.policies.prefix_hash import PrefixHashConfig
from radixgate.policies.registry import POLICIES, PolicyConfigs, make_policy
from radixgate.policies.slo import SloConfig
from radixgate.policies.sticky import StickyConfig


def recorded(tmp_path: Path, policy: str, configs: PolicyConfigs | None = None) -> Path:
    noted = NotedFleet(policy, configs=configs)
    noted.busy_day(150)
    return noted.write(tmp_path / "decisions.jsonl")


def replayed(
    path: Path,
    policy: str | None = None,
    configs: PolicyConfigs | None = None,
    *,
    show: int = 20,
    seed: int | None = None,
) -> dict[str, Any]:
    out = path.with_name("out.json")
    config = ReplayConfig(str(path), policy, seed=seed, show=show, json=str(out))
    assert run_replay(config, configs or PolicyConfigs()) == 0
    found: dict[str, Any] = json.loads(out.read_text())
    return found


@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_policy_with_its_seed_makes_the_recorded_choices(
    tmp_path: Path, policy: str
) -> None:
    found = replayed(recorded(tmp_path, policy))["replay"]
    assert (found["decisions"], found["differing"]) == (150, 0)
    assert found["policies_of_unknown_seed"] == 0
    assert all(row["recorded"] == row["again"] for row in found["reasons"])


def test_how_much_a_block_holds_is_what_was_recorded(tmp_path: Path) -> None:
    """Prompts of ten times as many tokens as their blocks say, of which eight are the beginning."""
    configs = PolicyConfigs(prefix_hash=PrefixHashConfig(prefix_hash_tokens=8))
    noted = NotedFleet("prefix_hash", configs=configs)
    for number in range(30):
        blocks = ids_of(f"same {number} and so on")
        noted.books.fleet.lease(Ask(MODEL, 10 * len(blocks), {KEY: blocks})).close(Outcome.OK)
    assert replayed(noted.write(tmp_path / "decisions.jsonl"))["replay"]["differing"] == 0


def test_with_the_settings_that_were_recorded(tmp_path: Path) -> None:
    configs = PolicyConfigs(cache_aware=CacheAwareConfig(cache_threshold=0.9))
    path = recorded(tmp_path, "cache_aware", configs)
    assert replayed(path)["replay"]["differing"] == 0
    given = PolicyConfigs(cache_aware=CacheAwareConfig(balance_abs_threshold=0))
    assert replayed(path, configs=given)["replay"]["differing"] > 0
    other = PolicyConfigs(sticky=StickyConfig(sticky_sessions=1))
    assert replayed(path, configs=other)["replay"]["differing"] == 0


def test_another_policy_is_told_apart_with_where_and_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recorded(tmp_path, "kv_cost")
    found = replayed(path, "round_robin", show=2)
    summary = found["replay"]
    assert summary["same"] + summary["differing"] == 150
    assert len(found["differences"]) == summary["differing"] > 10
    one = found["differences"][0]
    assert one["recorded"]["worker"] != one["again"]["worker"]
    assert one["again"]["reason"] == "rotation"
    assert {"cached_tokens", "queued_tokens", "requests_in_flight"} <= one["recorded"].keys()
    hits = summary["believed_hit_rate"]
    assert hits["again"] < hits["recorded"]
    answers = summary["recorded_outcomes"]
    where_same, where_not = answers["where_same"], answers["where_differing"]
    assert where_same["answers"] + where_not["answers"] > 100
    said = capsys.readouterr().out
    assert "150 decisions by kv_cost, again by round_robin" in said
    assert said.count("  was ") == 2
    assert "rotation" in said


def test_it_is_the_same_to_the_byte_each_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recorded(tmp_path, "cache_aware")
    out = tmp_path / "out.json"
    seen = set()
    for _ in range(2):
        replayed(path, "power_of_two", seed=4)
        seen.add((out.read_bytes(), capsys.readouterr().out))
    assert len(seen) == 1
    replayed(path, "power_of_two", seed=5)
    assert out.read_bytes() not in {report for report, _ in seen}


def test_what_is_missing_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = recorded(tmp_path, "kv_cost")
    lines = path.read_bytes().splitlines(keepends=True)
    numbered = [n for n, line in enumerate(lines) if b'"kind":"decision"' in line]
    for gone in sorted((0, *numbered[:4], numbered[20]), reverse=True):
        del lines[gone]
    path.write_bytes(b"".join(lines) + b'{"kind":"decision","cut')
    with pytest.raises(ConfigError, match="nobody can tell"):
        replayed(path)
    capsys.readouterr()
    found = replayed(path, "kv_cost")["replay"]
    assert found["decisions_in_older_files"] == 4
    assert found["missing_decisions"] == 1
    assert found["unreadable_lines"] == 1
    assert found["policies_of_unknown_seed"] == 1
    said = capsys.readouterr().out
    assert "4 decisions before the first one" in said
    assert "1 decisions were dropped; 1 lines are unreadable" in said


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        pytest.param(b'"running":[0,', b'"running":[', "columns of 2 and of 3", id="column"),
        pytest.param(b'"blocks":"', b'"blocks":"A', "blocks: ", id="blocks"),
        pytest.param(b'"n":2,', b'"n":1,', "decision 1 of run .* its decision 1: give", id="twice"),
    ],
)
def test_a_line_that_contradicts_itself_or_others_is_named(
    tmp_path: Path, was: bytes, now: bytes, said: str
) -> None:
    path = recorded(tmp_path, "kv_cost")
    content = path.read_bytes()
    assert was in content
    path.write_bytes(content.replace(was, now, 1))
    with pytest.raises(ConfigError, match=rf"decisions.jsonl:\d+: {said}"):
        replayed(path)


def test_a_file_is_given_once(tmp_path: Path) -> None:
    path = recorded(tmp_path, "kv_cost")
    path.write_bytes(gzip.compress(2 * path.read_bytes()))
    with pytest.raises(ConfigError, match="give each file once, the older first"):
        replayed(path)


def test_a_rotated_log_goes_on_where_it_ended(tmp_path: Path) -> None:
    noted = NotedFleet("cache_aware")
    noted.busy_day(60)
    heading = noted.journal.heading()
    before = len(noted.notes)
    noted.busy_day(60, seed=8)
    first = b"".join(note.encode() for note in noted.notes[:before])
    second = encode_line(heading) + b"".join(note.encode() for note in noted.notes[before:])
    path = tmp_path / "whole.jsonl.gz"
    path.write_bytes(gzip.compress(first + second))
    assert replayed(path)["replay"]["differing"] == 0


def test_a_policy_that_was_put_in_place_has_to_be_named(tmp_path: Path) -> None:
    noted = NotedFleet("kv_cost")
    noted.busy_day(10)
    noted.books.fleet.use_policy(make_policy("random", FakeClock(), random.Random(1)))
    noted.journal.begin(Rule.of("kv_cost", PolicyConfigs(), 1).unnamed())
    noted.busy_day(10)
    path = noted.write(tmp_path / "decisions.jsonl")
    with pytest.raises(ConfigError, match="name the one to decide again"):
        replayed(path)
    found = replayed(path, "kv_cost")["replay"]
    assert found["recorded_policies"] == {"kv_cost": 10, "unnamed": 10}
    assert found["policies_of_unknown_seed"] == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(None, "cannot be read", id="no-file"),
        pytest.param("", "holds no decision", id="empty"),
        pytest.param("{}\n", "1 lines that are none", id="something-else"),
        pytest.param(
            '{"kind":"start","version":9,"run":"r","at":0,"policy":"x","settings":{}}\n',
            "is of version 9",
            id="from-the-future",
        ),
        pytest.param(
            '{"kind":"start","version":1,"run":"r","at":0,"policy":"x","settings":{"sticky":'
            '{"sticky_sessions":0}},"seed":1}\n',
            "sticky_sessions is 0",
            id="settings-that-cannot-be",
        ),
    ],
)
def test_what_is_no_log_is_refused(tmp_path: Path, text: str | None, said: str) -> None:
    path = tmp_path / "decisions.jsonl"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match=said):
        run_replay(ReplayConfig(str(path)), PolicyConfigs())


def test_aims_decide_again_or_are_refused(tmp_path: Path) -> None:
    path = recorded(tmp_path, "kv_cost")
    aims = PolicyConfigs(slo=SloConfig(ttft_slo=1.0))
    for policy in (None, "kv_cost", "random"):
        with pytest.raises(ConfigError, match="ttft_slo and itl_slo belong to kv_cost_slo, and"):
            replayed(path, policy, aims)
    with pytest.raises(ConfigError, match="neither is given"):
        replayed(path, "kv_cost_slo")
    reasons = replayed(path, "kv_cost_slo", aims)["replay"]["reasons"]
    assert "late" in {row["again"] for row in reasons}
    kept = recorded(tmp_path, "kv_cost_slo", aims)
    assert replayed(kept, "kv_cost_slo")["replay"]["differing"] == 0
    assert replayed(kept, None, PolicyConfigs(slo=SloConfig(ttft_slo=9e9)))["replay"]["differing"]


def test_thresholds_of_cache_aware_are_not_passed_over(tmp_path: Path) -> None:
    path = recorded(tmp_path, "kv_cost")
    given = PolicyConfigs(cache_aware=CacheAwareConfig(balance_abs_threshold=4))
    with pytest.raises(ConfigError, match="belong to cache_aware, and the policy is kv_cost"):
        replayed(path, None, given)
    assert replayed(path, "cache_aware", given)["replay"]["decisions"] == 150


def test_the_command_takes_the_file_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recorded(tmp_path, "kv_cost")
    assert main(["replay", str(path), "--policy", "lmetric", "--show", "0"]) == 0
    assert "again by lmetric" in capsys.readouterr().out
    assert main(["replay", str(path), "--policy", "lmetrik"]) == 2
    assert "did you mean 'lmetric'" in capsys.readouterr().err
