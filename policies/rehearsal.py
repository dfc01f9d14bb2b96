"""What a policy would choose: asked of a copy, so that the policy itself is as it was."""

import copy
import random
from collections.abc import Iterator
from contextlib import contextmanager

from radixgate.errors import RadixgateError
from radixgate.policies.base import Policy


@contextmanager
def undrawn(rng: random.Random) -> Iterator[None]:
    """What is drawn inside will be drawn again afterwards. About 20 us."""
    state = rng.getstate()
    try:
        yield
    finally:
        rng.setstate(state)


def understudy(policy: Policy, rng: random.Random) -> Policy:
    """A copy that chooses as the policy would next, and shares no state with it but `rng`.

    Valid until the policy chooses. Use it inside `undrawn(rng)`; a random source of its own is
    copied with it. Raises RadixgateError if the policy cannot be copied.
    """
    try:
        return copy.deepcopy(policy, {id(rng): rng})
    except Exception as exc:  # whatever a foreign policy's parts raise
        raise RadixgateError(
            f"the policy {type(policy).__name__} cannot be copied, so what it would choose cannot"
            f" be told: {exc}"
        ) from exc
