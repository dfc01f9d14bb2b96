"""The data of a body in chunks, where a piece of it is made of whole ones and of nothing else.

Nearly every piece is, as a worker writes a chunk at a time. Any other is for the parser to read: it
knows the whole of the grammar, and takes six times as long. Where this was installed without a
compiler every piece is, as the parser is still three times as quick as Python.
"""

__all__ = ["COMPILED", "whole_chunks"]


def none_are_taken(piece: bytes, begin: int, /) -> tuple[bytes, bool] | None:
    """What stands for `whole_chunks` without a compiler: all is for the parser."""
    return None


try:
    from radixgate.gateway.heads.chunks_compiled import whole_chunks
except ImportError:
    whole_chunks = none_are_taken
COMPILED = whole_chunks is not none_are_taken
