"""The compiled kernels for tests; who has no compiler skips what needs them."""

import os
from functools import cache

import pytest

from radixgate.errors import NativeUnavailable
from radixgate.worker.forward.native_build import FLAGS, build_native, find_compiler
from radixgate.worker.forward.native_library import NativeLibrary
from radixgate.worker.weights.model_store import DEFAULT_CACHE_DIR

# Set where the tests of the kernels shall run as on an older processor.
MACHINE = "RADIXGATE_TEST_MARCH"


def native_or_skip() -> NativeLibrary:
    """Compiled by the first test of the first run, from the cache after."""
    found = _native()
    if isinstance(found, str):
        pytest.skip(found)
    return found


def has_native() -> bool:
    return not isinstance(_native(), str)


def flags_for(machine: str) -> list[str]:
    """Every warning of our own an error, as nobody sees it otherwise."""
    return [*(flag.replace("=native", f"={machine}") for flag in FLAGS), "-Werror"]


@cache
def _native() -> NativeLibrary | str:
    machine = os.environ.get(MACHINE)
    flags = FLAGS if machine is None else flags_for(machine)
    folder = DEFAULT_CACHE_DIR.expanduser() / "native"
    try:
        return NativeLibrary(build_native(folder, find_compiler(), flags=flags))
    except NativeUnavailable as exc:
        return exc.message
