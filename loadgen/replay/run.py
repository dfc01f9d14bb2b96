"""`radixgate replay`: recorded decisions under another policy, and what comes out otherwise."""

import random
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import msgspec

from radixgate.errors import ConfigError
from radixgate.fleet.decision_lines import DecisionLine, OutcomeLine, StartLine
from radixgate.fleet.rule import UNNAMED
from radixgate.loadgen.output_places import check_file
from radixgate.loadgen.replay.config import ReplayConfig
from radixgate.loadgen.replay.log_reader import Gaps, read_log
from radixgate.loadgen.replay.redecide import LogClock, Redecider
from radixgate.loadgen.replay.table import table
from radixgate.loadgen.replay.tally import Tally
from radixgate.policies.base import Policy
from radixgate.policies.registry import (
    DEFAULT_POLICY,
    SLO_POLICY,
    PolicyConfigs,
    check_aims,
    check_thresholds,
    make_policy,
)


def run_replay(config: ReplayConfig, configs: PolicyConfigs) -> int:
    """Decide again, print and write. Raises ConfigError for what cannot be read or made."""
    check_file("--json", config.json)
    gaps, tally = Gaps(), Tally()
    redecider = Redecider(lambda *told: _policy(config, configs, *told), config.seed)
    for line in read_log(Path(config.log), gaps):
        match line:
            case StartLine():
                redecider.start(line)
            case DecisionLine():
                tally.decided(redecider.decide(line))
            case OutcomeLine():
                tally.ended(line)
    summary = {
        "policy": config.policy or "as recorded",
        "seed": "as recorded" if config.seed is None else config.seed,
        **tally.summary(),
        "missing_decisions": gaps.missing,
        "decisions_in_older_files": gaps.before,
        "unreadable_lines": gaps.unreadable,
        "policies_of_unknown_seed": redecider.seedless,
    }
    if config.json is not None:
        _write(Path(config.json), {"replay": summary, "differences": tally.differences()})
    print(table(tally, gaps, config.policy or "itself", config.show))  # its reader may have gone
    return 0


def _policy(
    config: ReplayConfig,
    given: PolicyConfigs,
    start: StartLine | None,
    rng: random.Random,
    clock: LogClock,
) -> Policy:
    recorded = UNNAMED if start is None else start.policy
    if config.policy is None and recorded == UNNAMED:
        raise ConfigError(
            f"{config.log} has decisions whose policy nobody can tell: name the one to decide again"
            " by --policy"
        )
    configs = given if start is None else _settings(given, start)
    name = config.policy or recorded
    check_thresholds(name, given)
    if config.policy is not None:
        check_aims(name, configs)
    if given.slo.given and name != SLO_POLICY and (config.policy or name == DEFAULT_POLICY):
        raise ConfigError(
            f"ttft_slo and itl_slo belong to {SLO_POLICY}, and {name} decides: give --policy"
            f" {SLO_POLICY}, or leave them out"
        )
    return make_policy(name, clock, rng, configs)


def _settings(given: PolicyConfigs, start: StartLine) -> PolicyConfigs:
    """A section of which anything is given now is taken from there, any other from the log."""
    default = PolicyConfigs()
    try:
        recorded = msgspec.convert(start.settings, PolicyConfigs)
    except (msgspec.ValidationError, ConfigError) as exc:
        raise ConfigError(f"the settings of {start.policy} in run {start.run}: {exc}") from exc
    sections = {}
    for section in fields(PolicyConfigs):
        now = getattr(given, section.name)
        kept = now != getattr(default, section.name)
        sections[section.name] = now if kept else getattr(recorded, section.name)
    return PolicyConfigs(**sections)


def _write(path: Path, report: Mapping[str, object]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
    except OSError as error:
        raise ConfigError(f"--json {path} cannot be written: {error}") from error
