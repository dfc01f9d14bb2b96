"""Which arm has which block: drawn by coin, alike on every machine, and committed beforehand."""

from hashlib import blake2b, sha256

import msgspec

from radixgate.analysis.experiments.records import Block, Declaration, Schedule
from radixgate.errors import ConfigError


def schedule_of(declaration: Declaration) -> Schedule:
    """Pairs of blocks, each AB or BA by a coin of its own.

    A coin is a bit of blake2b over seed, name and pair: no library's generator, so that the same
    declaration has the same schedule on every machine and version. Raises ConfigError if the
    lengths leave nothing to measure.
    """
    _check(declaration)
    first, second = (arm.name for arm in declaration.arms)
    blocks = []
    for pair in range(declaration.pairs):
        order = (second, first) if coin(declaration, pair) else (first, second)
        for place, arm in enumerate(order):
            index = 2 * pair + place
            starts_s = index * declaration.block_s
            blocks.append(Block(index, pair, arm, starts_s, starts_s + declaration.block_s))
    return Schedule(declaration.experiment, tuple(blocks), digest_of(tuple(blocks)))


def coin(declaration: Declaration, pair: int) -> int:
    """1: B comes first."""
    words = f"{declaration.seed}/{declaration.experiment}/{pair}".encode()
    return blake2b(words, digest_size=1).digest()[0] & 1


def digest_of(blocks: tuple[Block, ...]) -> str:
    """SHA-256 of the blocks as JSON."""
    return sha256(msgspec.json.encode(blocks)).hexdigest()


def share_of(salt: bytes, unit: str) -> float:
    """Where a session or tenant lies in [0, 1): blake2b of salt and unit, by 2 to the 64th.

    Below `share_b` it is B's. Sticky for as long as the salt is kept; each experiment has a salt
    of its own, so that one experiment's split says nothing of another's.
    """
    return _number(salt, unit) / 2.0**64


def bucket_of(salt: bytes, unit: str) -> int:
    """The number that stands for a session or tenant in the records: 32 bits of the same hash."""
    return _number(salt, unit) >> 32


def _number(salt: bytes, unit: str) -> int:
    return int.from_bytes(blake2b(salt + unit.encode(), digest_size=8).digest(), "big")


def _check(declaration: Declaration) -> None:
    name = declaration.experiment
    if declaration.pairs < 1:
        raise ConfigError(f"experiment {name}: a switchback needs a pair of blocks at least")
    lost_s = declaration.washout_s + declaration.hold_cap_s
    if not declaration.block_s > lost_s:
        raise ConfigError(
            f"experiment {name}: blocks of {declaration.block_s:g} s leave nothing to measure after"
            f" a hold of up to {declaration.hold_cap_s:g} s and a washout of"
            f" {declaration.washout_s:g} s; make them {2 * lost_s:g} s or longer"
        )
    first, second = (arm.name for arm in declaration.arms)
    if first == second:
        raise ConfigError(f"experiment {name}: both arms are called {first!r}")
