class Ring:
    """A queue of the kernel's (io_uring) of its own. Raises OSError where it gives none."""

    def __init__(self) -> None: ...
    def send(self, fds: list[int], pieces: list[bytes], /) -> list[tuple[int, int]]:
        """Hand each socket its piece, without waiting for any.

        Of those that did not go out whole: number in the row, and the bytes that went or, below
        zero, the error. Raises TypeError if one is no piece of a socket's: none has gone out. After
        any other exception nobody knows what went out, and the kernel may still read the pieces.
        """
