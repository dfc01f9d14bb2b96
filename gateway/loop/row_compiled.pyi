import asyncio

class Ring:
    """A queue of the kernel's (io_uring) of its own. Raises OSError where it gives none."""

    def __init__(self) -> None: ...
    def send(
        self,
        waiting: dict[asyncio.Transport, bytes],
        fds: dict[asyncio.Transport, int],
        least: int,
        /,
    ) -> list[tuple[asyncio.Transport, bytes]]:
        """Hand the socket of each that has one in `fds` its piece, if there are `least` of them.

        It waits for none. Returns what is left to be written by its transport: of one that closes,
        has bytes of its own waiting, or whose socket took only a part, or none. After an exception
        nobody knows what went out, and the kernel may still read the pieces.
        """
