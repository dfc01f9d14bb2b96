"""From what an experiment is told to what is recorded of it before it begins."""

import re
from collections.abc import Sequence
from hashlib import blake2b

from radixgate.analysis.experiments.records import Declaration, Kind
from radixgate.configs.spelling import nearest
from radixgate.errors import ConfigError
from radixgate.gateway.experiments.arm_policies import ArmPolicies
from radixgate.gateway.experiments.guard import rail_of
from radixgate.gateway.settings.experiments_config import LiveExperimentConfig

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
# What a report can show. The gateway works none of it out, and does without the tools for it.
METRICS = (
    "ttft_mean",
    "ttft_p50",
    "ttft_p95",
    "ttft_p99",
    "e2e_mean",
    "e2e_p95",
    "tpot_mean",
    "hit_rate",
    "imbalance",
    "error_share",
    "attainment",
)
_KINDS: dict[str, Kind] = {
    "switchback": "switchback",
    "canary": "canary",
    "bucket": "bucket",
    "shadow": "shadow",
}


def check_name(name: str) -> None:
    """It becomes part of a file's name. Raises ConfigError."""
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"experiment {name!r:.100}: a name has at most 64 letters, digits, dots, dashes and"
            " underscores, and begins with a letter or digit"
        )


def declaration_of(
    name: str,
    config: LiveExperimentConfig,
    arms: ArmPolicies,
    *,
    began_at: float,
    seed: int,
    salt: bytes,
    pool: Sequence[str] = (),
) -> Declaration:
    """`pool`: the workers of a canary. Raises ConfigError for what cannot be."""
    check_name(name)
    for metric in config.metrics:
        if metric not in METRICS:
            raise ConfigError(
                f"there is no metric {metric!r:.100}; nearest is {nearest(metric, METRICS)}"
            )
    switches, splits = config.kind == "switchback", config.kind in ("canary", "bucket")
    return Declaration(
        name,
        kind=_KINDS[config.kind],
        arms=(
            arms.arm("A", config.a, config.a_settings),
            arms.arm("B", config.b, config.b_settings),
        ),
        began_at=began_at,
        seed=seed,
        block_s=config.block_s if switches else 0.0,
        pairs=config.pairs if switches else 0,
        washout_s=config.washout_s if switches else 0.0,
        hold_cap_s=config.hold_cap_s if switches else 0.0,
        resets_mirror=config.resets_mirror,
        metrics=config.metrics,
        guardrails=tuple(rail_of(text, config.guardrail_requests) for text in config.guardrails),
        share_b=None if switches else config.part,
        workers_b=tuple(pool) if splits else (),
        salt_id=blake2b(salt, digest_size=4).hexdigest(),
        slo_ttft_s=config.slo_ttft_s,
        slo_tpot_s=config.slo_tpot_s,
    )
