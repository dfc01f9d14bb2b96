"""The tensors of safetensors files by name, read when asked for, as float32."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, cast

import torch
from safetensors import SafetensorError, safe_open

from radixgate.errors import ModelError


class _Slice(Protocol):
    def get_shape(self) -> list[int]: ...


class _File(Protocol):
    """What safetensors' `safe_open` gives; the library itself is not typed."""

    def keys(self) -> list[str]: ...
    def get_tensor(self, name: str) -> torch.Tensor: ...
    def get_slice(self, name: str) -> _Slice: ...


class TensorFiles(Mapping[str, torch.Tensor]):
    """One or more files as one mapping. A float32 tensor is the mapped file itself, not a copy.

    Opening reads the headers only. Asking for a tensor stored as float16 or bfloat16 makes a
    float32 copy each time. Files stay mapped as long as this object or one of its tensors lives.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        """Raises ModelError for a file that is no safetensors, or a name that comes twice."""
        self._file_of: dict[str, _File] = {}
        for path in paths:
            file = _opened(path)
            for name in file.keys():  # noqa: SIM118  (not a dict: it has keys() only)
                if name in self._file_of:
                    raise ModelError(f"{path}: the tensor {name} is in another file as well")
                self._file_of[name] = file

    def __getitem__(self, name: str) -> torch.Tensor:
        tensor = self._file_of[name].get_tensor(name)
        if not tensor.dtype.is_floating_point:
            raise ModelError(f"the tensor {name} is {tensor.dtype}, not a floating-point type")
        return tensor.to(torch.float32)

    def __iter__(self) -> Iterator[str]:
        return iter(self._file_of)

    def __len__(self) -> int:
        return len(self._file_of)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of every tensor, from the headers alone."""
        return {
            name: tuple(file.get_slice(name).get_shape()) for name, file in self._file_of.items()
        }


class TensorSubset(Mapping[str, torch.Tensor]):
    """Some tensors of a mapping: a checkpoint may hold more than its model reads."""

    def __init__(self, tensors: Mapping[str, torch.Tensor], names: Sequence[str]) -> None:
        self._tensors = tensors
        self._names = dict.fromkeys(names)

    def __getitem__(self, name: str) -> torch.Tensor:
        if name not in self._names:
            raise KeyError(name)
        return self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class PlacedTensors(Mapping[str, torch.Tensor]):
    """The same tensors, each copied to a device when it is asked for; no copy if it is there."""

    def __init__(self, tensors: Mapping[str, torch.Tensor], device: torch.device | str) -> None:
        self._tensors = tensors
        self._device = device

    def __getitem__(self, name: str) -> torch.Tensor:
        return self._tensors[name].to(self._device)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)


def _opened(path: Path) -> _File:
    try:
        return cast(_File, safe_open(path, framework="pt"))
    except (OSError, SafetensorError) as exc:
        raise ModelError(f"{path}: {exc}") from exc
