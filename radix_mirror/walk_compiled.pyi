from collections.abc import Sequence

from radixgate.radix_mirror.walk import Depths, Lookup

def fill(depths: Depths, tables: Sequence[Lookup], alive: int, ids: Sequence[int], /) -> int: ...
