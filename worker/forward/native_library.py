"""The compiled kernels as typed calls; every pointer is the address of a contiguous array."""

import ctypes
import logging
from ctypes import c_float, c_int, c_int64, c_void_p
from pathlib import Path
from typing import Any, Final

import torch

from radixgate.errors import NativeUnavailable
from radixgate.log import fields
from radixgate.worker.forward.native_build import build_native, find_compiler

_log = logging.getLogger(__name__)

_POINTER: Final = c_void_p
# Name: result, then parameters; see the sources for what each means.
_CALLS: Final[dict[str, tuple[Any, tuple[Any, ...]]]] = {
    "rg_panel_columns": (c_int64, ()),
    "rg_use_large_pages": (None, (_POINTER, c_int64)),
    "rg_pack_f32": (None, (_POINTER, _POINTER, c_int64, c_int64, _POINTER)),
    "rg_linear_f32": (
        None,
        (
            _POINTER,
            c_int64,
            c_int64,
            c_int64,
            _POINTER,
            _POINTER,
            c_int64,
            c_int64,
            _POINTER,
            c_int,
        ),
    ),
    "rg_quant_panel_bytes": (c_int64, (c_int, c_int64)),
    "rg_pack_quant": (None, (c_int, _POINTER, _POINTER, c_int64, c_int64, _POINTER)),
    "rg_linear_quant": (
        c_int,
        (
            *(c_int, _POINTER, c_int64, c_int64, c_int64, _POINTER),
            *(_POINTER, c_int64, c_int64, _POINTER, c_int),
        ),
    ),
    "rg_norm": (None, (_POINTER, c_int64, c_int64, c_int64, _POINTER, c_float, _POINTER)),
    "rg_rotate": (
        None,
        (
            *(_POINTER, c_int64, c_int64, c_int64, c_int64),
            *(_POINTER, _POINTER, c_int64, _POINTER, c_float),
        ),
    ),
    "rg_layers": (c_int, (_POINTER, c_int64, _POINTER, _POINTER, _POINTER)),
    "rg_attention_new": (c_void_p, (c_int64, c_int64, c_int64)),
    "rg_attention_free": (None, (c_void_p,)),
    "rg_attention_plan": (
        c_int,
        (c_void_p, c_int64, _POINTER, _POINTER, _POINTER, c_int64, _POINTER),
    ),
    "rg_attention_run": (
        c_int,
        (
            *(c_void_p, c_int, c_int, c_int, _POINTER, _POINTER, _POINTER, _POINTER),
            *(_POINTER, c_int64, _POINTER, c_int64, _POINTER, c_int64, _POINTER),
        ),
    ),
}


class NativeLibrary:
    """One loaded library. Its calls release the interpreter lock while they run.

    They use as many threads as torch may in the calling thread, and torch's own: see native_build.
    """

    def __init__(self, path: Path) -> None:
        """Raises NativeUnavailable if the library does not fit into this process."""
        if not torch._C.has_openmp:
            raise NativeUnavailable("torch was built without OpenMP, which the kernels run on")
        try:
            library = ctypes.CDLL(str(path))
            for name, (result, parameters) in _CALLS.items():
                function = getattr(library, name)
                function.restype, function.argtypes = result, parameters
        except (OSError, AttributeError) as exc:
            raise NativeUnavailable(f"{path} cannot be loaded: {exc}") from exc
        self.path = path
        self.panel_columns: int = library.rg_panel_columns()
        self.use_large_pages = library.rg_use_large_pages
        self.pack_f32 = library.rg_pack_f32
        self.linear_f32 = library.rg_linear_f32
        self.quant_panel_bytes = library.rg_quant_panel_bytes
        self.pack_quant = library.rg_pack_quant
        self.linear_quant = library.rg_linear_quant
        self.norm = library.rg_norm
        self.rotate = library.rg_rotate
        self.layers = library.rg_layers
        self.attention_new = library.rg_attention_new
        self.attention_free = library.rg_attention_free
        self.attention_plan = library.rg_attention_plan
        self.attention_run = library.rg_attention_run


def load_native(cache_dir: Path) -> NativeLibrary:
    """The kernels, compiled on first use and kept under `cache_dir`. Raises NativeUnavailable."""
    folder = cache_dir.expanduser() / "native"
    return NativeLibrary(build_native(folder, find_compiler()))


def native_or_none(cache_dir: Path) -> NativeLibrary | None:
    """The kernels where they can be had; otherwise None, and one line in the log that says why."""
    try:
        return load_native(cache_dir)
    except NativeUnavailable as exc:
        _log.warning("no native kernels, torch computes alone", extra=fields(reason=exc.message))
        return None
