"""Fleets and traffic in which a switchback's answer is known: sessions that come, and a crowd."""

import random
from dataclasses import dataclass, replace

from radixgate.loadgen.simulator.engine_model import EngineModel
from radixgate.loadgen.simulator.prefix_sessions import PrefixTraffic, crowd_for, sessions_for
from radixgate.loadgen.simulator.switchback import SwitchedSite
from radixgate.loadgen.simulator.workload import Workload

BLOCK_SIZE = 256


@dataclass(frozen=True, slots=True)
class Scene:
    """What the arms are tried on."""

    site: SwitchedSite
    traffic: PrefixTraffic
    users: int | None = None  # that there are, always the same; None: sessions come open loop

    def paced(self, share: float) -> "Scene":
        """The same with so many times the sessions a second."""
        pace = share * self.traffic.sessions_per_s
        return replace(self, traffic=replace(self.traffic, sessions_per_s=pace))

    def workload(self, seconds: float, seed: int) -> Workload:
        rng = random.Random(f"{seed}/traffic")
        if self.users is None:
            return sessions_for(self.traffic, seconds, rng)
        return crowd_for(self.traffic, self.users, seconds, rng)


# Sessions come at a pace of their own: what waits is soon answered, what is cached stays.
SESSIONS = Scene(
    SwitchedSite(
        workers=4,
        kv_blocks=420,
        believed_blocks=440,
        block_size=BLOCK_SIZE,
        engine=EngineModel(
            step_s=0.020,
            prefill_token_s=1 / 8_000,
            decode_row_s=0.0005,
            context_token_s=20e-9,
            chunk_tokens=2_048,
        ),
    ),
    PrefixTraffic(
        sessions_per_s=1.6,
        groups=40,
        zipf=0.9,
        prefix_blocks=12,
        turns=3.0,
        turn_blocks=2,
        output_tokens=300,
        think_s=5.0,
        block_size=BLOCK_SIZE,
    ),
)
# As many rollouts or agents as were started, each of which waits for its answer: where prompts of
# 12k tokens are computed again, most of the crowd waits, and what waits is minutes of work.
CROWD = Scene(
    replace(SESSIONS.site, kv_blocks=1_000, believed_blocks=1_000),
    PrefixTraffic(
        sessions_per_s=0.0,  # a session comes when another has ended
        groups=40,
        zipf=0.6,
        prefix_blocks=48,
        turns=4.0,
        turn_blocks=2,
        output_tokens=100,
        think_s=20.0,
        block_size=BLOCK_SIZE,
    ),
    users=400,
)
# Prompts of 25k tokens that begin with one of 16 texts, each worker with room for seven: kept apart
# they stay cached, and copied everywhere hardly any does. Then most of the crowd waits, for longer
# than it takes copies to spread.
COPIED_CROWD = replace(
    CROWD,
    site=replace(CROWD.site, kv_blocks=700, believed_blocks=700),
    traffic=replace(
        CROWD.traffic, groups=16, zipf=0.3, prefix_blocks=96, output_tokens=30, think_s=30.0
    ),
)
