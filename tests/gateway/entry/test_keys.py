"""What the key ring and the file of keys accept."""

from hashlib import sha256
from pathlib import Path

import pytest

from radixgate.errors import ConfigError, Forbidden, Unauthorized
from radixgate.gateway.attempt.caller import Caller
from radixgate.gateway.entry.key_ring import KeyRing
from radixgate.gateway.settings.access_config import AccessConfig
from radixgate.gateway.settings.rules import warn_if_open

ONE = f"{{sha256: {sha256(b'one').hexdigest()}, tenant: a"


def test_without_keys_everybody_is_an_admin() -> None:
    ring = KeyRing.of(AccessConfig())
    assert not ring.used
    assert ring.caller(None).admin
    assert ring.admin(b"Bearer whatever").tenant is None


def test_the_only_key_opens_everything_until_there_is_an_admin_s() -> None:
    assert KeyRing.of(AccessConfig(api_key="k")).admin(b"bearer k").admin
    ring = KeyRing.of(AccessConfig(api_key="k", admin_api_key="a"))
    assert not ring.caller(b"Bearer k").admin
    with pytest.raises(Forbidden):
        ring.admin(b"Bearer k")
    with pytest.raises(Unauthorized):
        ring.admin(None)


def test_no_key_is_kept() -> None:
    ring = KeyRing.of(AccessConfig(api_key="SECRET"))
    assert "SECRET" not in repr(vars(ring))


def test_salts_of_tenants_never_meet() -> None:
    def tenant(name: str | None) -> Caller:
        return Caller(tenant=name, salted=True)

    salts = {
        tenant("a").salt(b"", b""),
        tenant("b").salt(b"", b""),
        tenant("a").salt(b"b", b""),
        tenant("a").salt(b"", b"b"),
        tenant("ab").salt(b"", b""),
        tenant(None).salt(b"a", b""),
        tenant(None).salt(b"", b""),
    }
    assert len(salts) == 7
    assert Caller(tenant="a").salt(b"x") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("keys: []", "keys", id="empty"),
        pytest.param("keys: [{tenant: a}]", "sha256", id="no-hash"),
        pytest.param("keys: [{sha256: SECRET, tenant: a}]", "64 hex digits", id="no-digest"),
        pytest.param(f"keys: [{ONE}, key: SECRET}}]", "key", id="a-key-in-the-clear"),
        pytest.param(f"keys: [{ONE}}}, {ONE}}}]", "twice", id="twice"),
        pytest.param(
            f"keys: [{ONE}}}, {{sha256: {'0' * 63}a, tenant: a, tokens_per_minute: 5}}]",
            "other limits",
            id="limits-that-disagree",
        ),
        pytest.param(f"keys: [{ONE}, requests_per_minute: 0}}]", "requests_per_minute", id="zero"),
        pytest.param("keys: [SECRET", "not YAML", id="no-yaml"),
    ],
)
def test_a_file_that_cannot_be_used_is_said_without_its_content(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "keys.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=said) as caught:
        KeyRing.of(AccessConfig(api_keys_file=str(path)))
    assert str(path) in caught.value.message
    assert "SECRET" not in caught.value.message


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match="/none"):
        KeyRing.of(AccessConfig(api_keys_file="/none"))


@pytest.mark.parametrize("key", ["", "a b", "ä", "a\n"])
def test_a_key_that_no_header_carries_is_refused_unseen(key: str) -> None:
    with pytest.raises(ConfigError, match="visible ASCII"):
        AccessConfig(api_key=key)


def test_clients_and_admins_cannot_share_a_key() -> None:
    with pytest.raises(ConfigError, match="the same"):
        AccessConfig(api_key="k", admin_api_key="k")


@pytest.mark.parametrize(
    ("host", "access", "lines"),
    [
        pytest.param("0.0.0.0", AccessConfig(), 1, id="open-to-all"),
        pytest.param("gateway.lan", AccessConfig(), 1, id="by-name"),
        pytest.param("127.0.0.2", AccessConfig(), 0, id="loopback"),
        pytest.param("::1", AccessConfig(), 0, id="loopback-6"),
        pytest.param("localhost", AccessConfig(), 0, id="localhost"),
        pytest.param("0.0.0.0", AccessConfig(api_key="k"), 0, id="with-a-key"),
        pytest.param("0.0.0.0", AccessConfig(admin_api_key="k"), 1, id="generations-open"),
    ],
)
def test_an_open_door_is_said_in_one_line(
    host: str, access: AccessConfig, lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    warn_if_open(host, access)
    assert len(caplog.records) == lines
