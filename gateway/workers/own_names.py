"""What one gateway process calls itself and its requests, which no other may call theirs."""

import random

from radixgate.gateway.attempt.request_ids import RequestIds


class OwnNames:
    """Drawn from the system: gateways that are started with one seed must still be told apart, as a
    worker takes the second of one name for the first come back."""

    def __init__(self, source: random.Random | None = None) -> None:
        """`source`: where names are to be repeated, as in a test; None: from the system."""
        self._source = random.Random() if source is None else source
        self.gateway_id = f"gateway-{self._source.getrandbits(64):016x}"
        self.request_ids = RequestIds(self._source)

    def new_rid(self) -> str:
        """Of a prompt or choice at a worker of ours whose client has named none."""
        return f"{self._source.getrandbits(128):032x}"
