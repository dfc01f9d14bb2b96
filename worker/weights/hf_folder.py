"""Reads a model from a folder as Hugging Face lays it out."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec
import torch

from radixgate.errors import ModelError
from radixgate.text.bundle import TokenizerBundle
from radixgate.worker.weights.checkpoint import HEAD, check_shapes
from radixgate.worker.weights.hf_config import Json, read_hf_config
from radixgate.worker.weights.model_config import ModelConfig
from radixgate.worker.weights.tensor_files import TensorFiles, TensorSubset

T = TypeVar("T")


class _Index(msgspec.Struct):
    weight_map: dict[str, str]


class _AddedToken(msgspec.Struct):
    id: int
    content: str


class _TokenizerDocument(msgspec.Struct):
    added_tokens: list[_AddedToken] = []


@dataclass(frozen=True, slots=True)
class HfFolder:
    """What a folder holds. Tensors are read when asked for."""

    config: ModelConfig
    bundle: TokenizerBundle
    tensors: Mapping[str, torch.Tensor]
    weight_files: tuple[Path, ...]


def read_folder(folder: Path) -> HfFolder:
    """Open a folder with config.json, tokenizer.json and *.safetensors.

    Reads headers only. Raises ModelError that names the file and what is wrong in it.
    """
    raw = _json(folder / "config.json", Json)
    config = read_hf_config(raw, folder)
    files = _weight_files(folder)
    return HfFolder(config, _bundle(folder, raw), _tensors(files, config, folder), files)


def _weight_files(folder: Path) -> tuple[Path, ...]:
    index = folder / "model.safetensors.index.json"
    if index.exists():
        names = sorted(set(_json(index, _Index).weight_map.values()))
        if outside := [name for name in names if Path(name).name != name]:
            raise ModelError(f"{index}: {outside[0]!r} is not a file of this folder")
        return tuple(folder / name for name in names)
    files = tuple(sorted(folder.glob("*.safetensors")))
    if not files:
        raise ModelError(
            f"{folder}: no *.safetensors file; weights in other formats must be converted first"
        )
    return files


def _tensors(
    files: tuple[Path, ...], config: ModelConfig, folder: Path
) -> Mapping[str, torch.Tensor]:
    tensors = TensorFiles(files)
    shapes = {name: shape for name, shape in tensors.shapes().items() if _read(name, config)}
    check_shapes(config, shapes, folder)
    return TensorSubset(tensors, list(shapes))


def _read(name: str, config: ModelConfig) -> bool:
    """False for what older exports store and no model reads."""
    return not name.endswith(".rotary_emb.inv_freq") and not (
        config.tied_embeddings and name == HEAD
    )


def _bundle(folder: Path, raw: Json) -> TokenizerBundle:
    document = folder / "tokenizer.json"
    if not document.exists():
        raise ModelError(f"{document} is missing; other tokenizer formats are not read")
    about = _optional(folder / "tokenizer_config.json")
    eos = _content(about.get("eos_token"))
    added = _json(document, _TokenizerDocument).added_tokens
    # Chat models often end a turn with a token that config.json does not name.
    ends = {token.id for token in added if token.content == eos} | _eos_ids(folder, raw)
    return TokenizerBundle(
        tokenizer=msgspec.Raw(document.read_bytes()),
        chat_template=_chat_template(folder, about),
        bos_token=_content(about.get("bos_token")),
        eos_token=eos,
        eos_token_ids=sorted(ends),
    )


def _eos_ids(folder: Path, raw: Json) -> set[int]:
    """What ends an answer as the model says; generation_config.json has the last word."""
    generation = _optional(folder / "generation_config.json")
    ids = generation.get("eos_token_id", raw.get("eos_token_id"))
    if ids is None:
        return set()
    found = ids if isinstance(ids, list) else [ids]
    if not all(isinstance(token_id, int) for token_id in found):
        raise ModelError(f"{folder}: eos_token_id is {ids!r}, token ids are needed")
    return set(found)


def _chat_template(folder: Path, about: Json) -> str | None:
    file = folder / "chat_template.jinja"
    if file.exists():
        return _text(file)
    template = about.get("chat_template")
    if isinstance(template, list):  # several by name
        template = {item.get("name"): item.get("template") for item in template}.get("default")
    if template is not None and not isinstance(template, str):
        raise ModelError(f"{folder}/tokenizer_config.json: chat_template is not a string")
    return template


def _content(token: object) -> str | None:
    """A special token's text: a string, or an object with its flags."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else None


def _optional(path: Path) -> Json:
    return _json(path, Json) if path.exists() else {}


def _json(path: Path, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError) as exc:
        raise ModelError(f"{path}: {exc}") from exc


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise ModelError(f"{path}: {exc}") from exc
