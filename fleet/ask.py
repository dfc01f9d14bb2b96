"""What the fleet is asked: which worker shall take this prompt?"""

from collections.abc import Mapping, Sequence

import msgspec

from radixgate.fleet.identity import MirrorKey


class Ask(msgspec.Struct, frozen=True):
    """A request as far as routing needs it. A Struct: one is made for every request.

    `blocks` holds the prompt's ids under every mirror of the model; a mirror that is not named
    counts as cold. `fingerprint` is a hash of the whole prompt: it tells a prompt that comes again
    from one that differs only behind its last whole block. 0: unknown, then length decides.
    `only`: the one worker that can answer, as it has stored what the request goes on from; None:
    any. `adapters`: what a worker must list for the model to be able to answer. `foreign`: no
    worker of ours can, as nobody has read for it what the request asks. The gateway leaves out all
    others before the policy chooses.
    """

    model: str | None  # None or "": the only one there is
    prompt_tokens: int
    blocks: Mapping[MirrorKey, Sequence[int]]
    session: str | None = None
    group: str | None = None
    tenant: str | None = None
    priority: int = 0
    fingerprint: int = 0
    only: str | None = None
    adapters: tuple[str, ...] = ()
    foreign: bool = False

    @property
    def name(self) -> str | None:
        """The model, and behind a colon the first adapter."""
        return f"{self.model}:{self.adapters[0]}" if self.adapters else self.model
