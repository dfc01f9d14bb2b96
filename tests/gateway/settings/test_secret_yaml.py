"""A file that may hold keys is refused without a word of what stands in it."""

from pathlib import Path

import msgspec
import pytest

from radixgate.errors import ConfigError
from radixgate.gateway.settings.secret_yaml import read_secret_yaml

UNKNOWN = "a field or value that is not known"


class Entry(msgspec.Struct, forbid_unknown_fields=True):
    tenant: str


class File(msgspec.Struct, forbid_unknown_fields=True):
    keys: list[Entry]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("keys: [{sk-mine: 1}]", f"{UNKNOWN} - at `$.keys[0]`", id="a-field-within"),
        pytest.param("sk-mine: 1", UNKNOWN, id="a-field-of-the-file"),
        pytest.param("tennant: 1", "Object contains unknown field `tennant`", id="a-slip"),
        pytest.param("keys: 2024-13-45", "a date or a number in it is none", id="no-date"),
        pytest.param("keys: " + 2_000 * "[sk-mine, ", "nests too deep", id="deep"),
        pytest.param("keys: [{}]", "Object missing required field `tenant` - at `$.keys[0]`"),
        pytest.param("keys: [sk-mine]", "Expected `object`, got `str` - at `$.keys[0]`"),
    ],
)
def test_what_was_written_is_not_quoted(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "keys.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as refused:
        read_secret_yaml("api_keys_file", str(path), File)
    assert refused.value.message == f"api_keys_file {path}: {why}"
    # Nor is the error that does quote it told of in a traceback.
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__
