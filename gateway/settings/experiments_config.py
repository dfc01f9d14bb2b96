"""What an experiment may be told, and where experiments write."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from radixgate.configs.declare import knob
from radixgate.errors import ConfigError
from radixgate.policies.registry import PolicyConfigs

_KINDS = ("switchback", "canary", "bucket", "shadow")
_NOT_NEGATIVE = ("washout_s", "hold_cap_s", "hold_until_in_flight")
_OVER_ZERO = ("pairs", "block_s", "guardrail_window_s", "guardrail_requests")


@dataclass(frozen=True, slots=True)
class ExperimentLogConfig:
    """Where experiments write what they record."""

    experiment_folder: str = knob(
        "experiments", help="folder of the records, one file an experiment; made when first needed"
    )
    experiment_lines: int = knob(
        5_000_000, help="lines of requests in one file at most; further ones are counted only"
    )

    def __post_init__(self) -> None:
        if self.experiment_lines < 1:
            raise ConfigError(f"experiment_lines is {self.experiment_lines}, it must be over 0")


@dataclass(frozen=True, slots=True)
class LiveExperimentConfig:
    """An experiment on live traffic: A is what runs without it, B is what is tried.

    What a kind does not use is ignored by it only where that is said here.
    """

    kind: str = knob(
        choices=_KINDS,
        help="`switchback`: the whole fleet in turns; `canary`: a pool of workers; `bucket`: a part"
        " of the sessions on shared workers, which gives no effect estimate; `shadow`: B only"
        " decides",
    )
    b: str = knob(help="policy of B")
    a: str | None = knob(None, help="policy of A; none: the gateway's own")
    a_settings: tuple[str, ...] = knob((), help="settings of A's policy, each `name=value`")
    b_settings: tuple[str, ...] = knob((), help="settings of B's policy, each `name=value`")
    start: bool = knob(False, help="begin with the gateway, as soon as its workers are ready")
    seed: int | None = knob(None, help="of the schedule; none: drawn, and recorded")
    salt: str | None = knob(
        None,
        help="of the buckets, recorded nowhere; gateways that share it agree on them. none: drawn",
    )

    block_s: float = knob(
        480.0, unit="s", help="switchback: length of a block, its hold and washout included"
    )
    pairs: int = knob(24, help="switchback: pairs of blocks, each AB or BA by coin")
    washout_s: float = knob(
        240.0, unit="s", help="switchback: what is sent so soon after a switch counts for no arm"
    )
    hold_cap_s: float = knob(
        30.0, unit="s", help="switchback: longest hold for the fleet to drain; 0: no hold, biased"
    )
    hold_until_in_flight: int = knob(
        0, unit="requests", help="switchback: so many still in flight count as drained"
    )
    resets_mirror: bool = knob(
        True, help="switchback: each block begins with an empty mirror; false: biased"
    )
    flush: str = knob(
        "auto",
        choices=("auto", "always", "never"),
        help="switchback: flush the workers' caches at a switch; auto: of workers that report them,"
        " whose reports would fill the mirror again",
    )

    share: float | None = knob(
        None,
        help="canary, bucket: part of the sessions that B gets; shadow: part that is looked at;"
        " none: 0.1, and all for a shadow",
    )
    workers: tuple[str, ...] = knob(
        (), help="canary: ids of B's pool; empty: drawn, so many as `share` of them, one at least"
    )
    unit: str = knob(
        "session", choices=("session", "tenant"), help="canary, bucket, shadow: what is bucketed"
    )

    metrics: tuple[str, ...] = knob((), help="for the report, the primary one first")
    slo_ttft_s: float | None = knob(None, unit="s", help="for the report: bound of attainment")
    slo_tpot_s: float | None = knob(None, unit="s", help="for the report: bound of attainment")
    guardrails: tuple[str, ...] = knob(
        (),
        help="`metric=limit`, as in `ttft_p95=2` (s) or, in multiples of A's, `ttft_p95=1.5x`",
    )
    guardrail_window_s: float = knob(60.0, unit="s", help="how far back guardrails look")
    guardrail_requests: int = knob(100, help="requests a guardrail needs before it may trip")

    def __post_init__(self) -> None:
        for name in _NOT_NEGATIVE:
            if not 0 <= getattr(self, name) < math.inf:
                raise ConfigError(f"{name} is {getattr(self, name):g}, it cannot be negative")
        for name in _OVER_ZERO:
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigError(f"{name} is {getattr(self, name):g}, it must be over 0")
        if self.share is not None and not 0.0 < self.share <= 1.0:
            raise ConfigError(f"share is {self.share:g}, a part of the sessions is over 0 to 1")
        if self.kind in ("canary", "bucket") and self.share == 1.0:
            raise ConfigError("share is 1: nothing would be left to A; use a switchback")
        if self.workers and self.kind != "canary":
            raise ConfigError(f"workers are of a canary's pool, and this is a {self.kind}")
        if self.guardrails and self.kind == "shadow":
            raise ConfigError("guardrails watch what B sends, and a shadow sends nothing")

    @property
    def part(self) -> float:
        """`share`, with its default."""
        return self.share if self.share is not None else 1.0 if self.kind == "shadow" else 0.1


@dataclass(frozen=True, slots=True)
class ExperimentRules:
    """All that a gateway is told of experiments when it starts."""

    log: ExperimentLogConfig = field(default_factory=ExperimentLogConfig)
    declared: Mapping[str, LiveExperimentConfig] = field(default_factory=dict)
    policies: PolicyConfigs = field(default_factory=PolicyConfigs)  # what arms begin from
