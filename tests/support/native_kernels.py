"""The compiled kernels for tests; who has no compiler skips what needs them."""

from functools import cache

import pytest

from radixgate.errors import NativeUnavailable
from radixgate.worker.model_store import DEFAULT_CACHE_DIR
from radixgate.worker.native_library import NativeLibrary, load_native


def native_or_skip() -> NativeLibrary:
    """Compiled by the first test of the first run, from the cache after."""
    found = _native()
    if isinstance(found, str):
        pytest.skip(found)
    return found


def has_native() -> bool:
    return not isinstance(_native(), str)


@cache
def _native() -> NativeLibrary | str:
    try:
        return load_native(DEFAULT_CACHE_DIR)
    except NativeUnavailable as exc:
        return exc.message
