"""Schedules are drawn by coin, the same on every machine, and cannot be changed unseen."""

import os
import subprocess
import sys

import msgspec
import pytest

from radixgate.analysis.experiments.records import Arm, Declaration
from radixgate.analysis.experiments.schedule import bucket_of, digest_of, schedule_of, share_of
from radixgate.errors import ConfigError

DECLARED = Declaration(
    experiment="golden",
    kind="switchback",
    arms=(Arm("a", "kv_cost"), Arm("b", "cache_aware")),
    began_at=0.0,
    seed=7,
    block_s=480.0,
    pairs=12,
    washout_s=240.0,
    hold_cap_s=60.0,
)
DIGEST = "d5c34cce371635f7be1154e43fdd19c3189edbb209b6ee1948d7613534a0a6b6"


def test_each_pair_has_both_arms_and_the_blocks_fill_the_time() -> None:
    blocks = schedule_of(DECLARED).blocks
    assert len(blocks) == 24
    for first, second in zip(blocks[::2], blocks[1::2], strict=True):
        assert {first.arm, second.arm} == {"a", "b"}
        assert first.pair == second.pair
        assert first.ends_s == second.starts_s
    assert blocks[-1].ends_s == 24 * 480.0


def test_over_many_seeds_the_coins_are_fair() -> None:
    heads = 0
    for seed in range(400):
        blocks = schedule_of(msgspec.structs.replace(DECLARED, seed=seed)).blocks
        heads += sum(block.arm == "b" for block in blocks[::2])
    assert abs(heads - 2_400) < 4 * (4_800 * 0.25) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_the_schedule_depends_on_the_declaration_alone(hash_seed: str) -> None:
    program = "from test_schedule import DECLARED, schedule_of; print(schedule_of(DECLARED).sha256)"
    found = subprocess.run(
        [sys.executable, "-c", program],
        cwd=os.path.dirname(__file__),
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == DIGEST == schedule_of(DECLARED).sha256


def test_a_changed_schedule_has_another_digest() -> None:
    blocks = schedule_of(DECLARED).blocks
    swapped = (blocks[1], blocks[0], *blocks[2:])
    assert digest_of(swapped) != digest_of(blocks) == DIGEST


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        pytest.param({"pairs": 0}, "a pair of blocks", id="no-pairs"),
        pytest.param({"washout_s": 420.0}, "make them 960 s or longer", id="no-time"),
        pytest.param({"arms": (Arm("a", "x"), Arm("a", "y"))}, "both arms", id="one-name"),
    ],
)
def test_what_cannot_be_measured_is_refused(change: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        schedule_of(msgspec.structs.replace(DECLARED, **change))


def test_a_unit_keeps_its_share_and_another_salt_deals_anew() -> None:
    units = [f"session {n}" for n in range(4_000)]
    shares = [share_of(b"salt", unit) for unit in units]
    assert shares == [share_of(b"salt", unit) for unit in units]
    assert all(0.0 <= share < 1.0 for share in shares)
    in_b = [share < 0.25 for share in shares]
    assert abs(sum(in_b) - 1_000) < 4 * (4_000 * 0.25 * 0.75) ** 0.5
    again = [share_of(b"other", unit) < 0.25 for unit in units]
    both = sum(one and other for one, other in zip(in_b, again, strict=True))
    assert abs(both - 250) < 4 * 250**0.5
    assert bucket_of(b"salt", "session 0") == int(share_of(b"salt", "session 0") * 2**32)
