"""The data of a body in chunks, where a piece of it is made of whole ones and of nothing else.

Nearly every piece is, as a worker writes a chunk at a time. Any other is for the parser to read: it
knows the whole of the grammar, and takes six times as long. Compiled (`chunks_compiled.c`); where
this was installed without a compiler the same is done chunk by chunk.
"""

import re

__all__ = ["COMPILED", "whole_chunks", "whole_chunks_in_python"]

_size_line = re.compile(rb"([0-9a-fA-F]{1,8})\r\n").match


def whole_chunks_in_python(piece: bytes, begin: int) -> tuple[bytes, bool] | None:
    """What the chunks from `begin` on hold, and whether the last one of all is among them.

    None: they have extensions or trailers, one is not whole, or something stands behind the last.
    O(piece); raises ValueError if `begin` lies outside of it.
    """
    if not 0 <= begin <= len(piece):
        raise ValueError("they begin in the piece, or at its end")
    held, size = [], 1
    while begin < len(piece):
        line = _size_line(piece, begin)
        if line is None or not size:
            return None
        size = int(line[1], 16)
        begin = line.end() + size + 2
        if piece[begin - 2 : begin] != b"\r\n":
            return None
        held.append(piece[line.end() : begin - 2])
    return b"".join(held), not size


try:
    from radixgate.gateway.heads.chunks_compiled import whole_chunks
except ImportError:
    whole_chunks = whole_chunks_in_python
COMPILED = whole_chunks is not whole_chunks_in_python
