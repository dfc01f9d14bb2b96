def whole_chunks(piece: bytes, begin: int, /) -> tuple[bytes, bool] | None:
    """What the chunks from `begin` on hold, and whether the last one of all is among them.

    None: they have extensions or trailers, one is not whole, or something stands behind the last.
    O(piece); raises ValueError if `begin` lies outside of it.
    """
