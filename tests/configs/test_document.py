"""The page of settings says what the flags say."""

from radixgate.configs.document import page
from settings import DOOR, MODEL


def test_every_knob_and_refusal_has_a_row() -> None:
    text = page([DOOR, MODEL])
    assert "## radixgate door\n\nA door for tests.\n" in text
    assert "### `door`\n\nWhere the door listens.\n" in text
    for row in (
        "| `--port` | integer | `8000` | port to listen on |",
        "| `--host`<br>`--address` | text | `127.0.0.1` | address to listen on |",
        "| `--grace-s` | s | `30.0` | time for work in flight at the end |",
        "| `--worker-urls` | list of text | `empty` | workers behind the door |",
        "| `--policy` | `random`, `cache_aware` | `cache_aware` | the rule |",
        "| `--model-path` | text | required | the model |",
        "| `--nnodes` | one worker is one node | `1` |",
        "| `tone` | text | required | what it sounds like |",
    ):
        assert row in text.splitlines()
    assert "(environment: `DOOR_CACHE_DIR`)" in text


def test_the_page_ends_with_one_newline_and_has_no_trailing_spaces() -> None:
    text = page([DOOR])
    assert text.endswith("|\n")
    assert not text.endswith("\n\n")
    assert all(line == line.rstrip() or line.endswith("| |") for line in text.splitlines())
