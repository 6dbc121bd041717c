"""Ini lines that describe a user's own server."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.suites import parse_endpoint
from pytest_openclaw.util.errors import TargetError
from pytest_openclaw.values.settings import Endpoint

KINDS = ("ollama_openai", "openai_responses")
FORM = "Write name = kind base_url KEY_ENV_NAME, the last only if it needs a key."
NAME_RULE = "A name has up to 40 letters, digits, _ . or -, and starts with a letter."
URL_HINT = "Write for example http://127.0.0.1:8000/v1."
SECRET = "sk-proj-4f9a81c2d7e64b30"
KEY_HINT = (
    "vllm: its last word is not the name of an environment variable in capitals; it may be a key. "
    "Put the key into a variable and write the variable's name, for example VLLM_API_KEY."
)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param(
            "vllm = ollama_openai http://127.0.0.1:8000/v1",
            ("vllm", "ollama_openai", "http://127.0.0.1:8000/v1", None),
            id="without-a-key",
        ),
        pytest.param(
            "  open-router.ai=openai_responses\thttps://r.example/api/v1   ROUTER_API_KEY ",
            ("open-router.ai", "openai_responses", "https://r.example/api/v1", "ROUTER_API_KEY"),
            id="with-a-key-and-odd-blanks",
        ),
        pytest.param(
            "six = ollama_openai http://user:pw@[::1]:8080",
            ("six", "ollama_openai", "http://user:pw@[::1]:8080", None),
            id="ipv6-and-a-password",
        ),
    ],
)
def test_a_line(line, expected):
    """`name = kind base_url KEY_ENV_NAME` becomes an endpoint; the key's variable may be absent."""
    name, kind, base_url, key_env = expected

    assert parse_endpoint(line, kinds=KINDS) == Endpoint(
        name=name, kind=kind, base_url=base_url, key_env=key_env
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("", f"a line has no name before an =. {FORM} {NAME_RULE}", id="empty"),
        pytest.param(
            "vllm ollama_openai http://h/v1",
            f"a line has no name before an =. {FORM} {NAME_RULE}",
            id="no-equals",
        ),
        pytest.param(
            "= ollama_openai http://h/v1", f"a line has no name before an =. {FORM} {NAME_RULE}", id="no-name"
        ),
        pytest.param(
            "my/vllm = ollama_openai http://h/v1",
            f'"my/vllm" is no name for an endpoint. {FORM} {NAME_RULE}',
            id="slash-in-the-name",
        ),
        pytest.param(
            "my vllm = ollama_openai http://h/v1",
            f'"my vllm" is no name for an endpoint. {FORM} {NAME_RULE}',
            id="blank-in-the-name",
        ),
        pytest.param(
            f"{'v' * 41} = ollama_openai http://h/v1",
            f"a line has no name before an =. {FORM} {NAME_RULE}",
            id="long-name",
        ),
        pytest.param(
            f"{SECRET} = ollama_openai http://h/v1",
            f"a line has no name before an =. {FORM} {NAME_RULE}",
            id="key-for-a-name",
        ),
        pytest.param(
            "vllm =", f"vllm: has 0 words after the =, not two or three. {FORM}", id="nothing-after"
        ),
        pytest.param(
            "vllm = ollama_openai",
            f"vllm: has 1 words after the =, not two or three. {FORM}",
            id="no-address",
        ),
        pytest.param(
            f"vllm = ollama_openai http://h/v1 KEY {SECRET}",
            f"vllm: has 4 words after the =, not two or three. {FORM}",
            id="too-many-words",
        ),
        pytest.param(
            "vllm = ollama_opnai http://h/v1",
            'vllm: there is no kind "ollama_opnai"; there are: ollama_openai, openai_responses. '
            "Did you mean ollama_openai?",
            id="unknown-kind",
        ),
        pytest.param(
            f"vllm = {SECRET} http://h/v1",
            "vllm: there is no such kind; there are: ollama_openai, openai_responses.",
            id="key-for-a-kind",
        ),
        pytest.param(
            "vllm = ollama_openai 127.0.0.1:8000",
            f"vllm: its address is no http:// or https:// URL. {URL_HINT}",
            id="no-scheme",
        ),
        pytest.param(
            "vllm = ollama_openai ftp://h/v1",
            f"vllm: its address is no http:// or https:// URL. {URL_HINT}",
            id="ftp",
        ),
        pytest.param(
            "vllm = ollama_openai http:///v1",
            f"vllm: its address is no http:// or https:// URL. {URL_HINT}",
            id="no-host",
        ),
        pytest.param(
            "vllm = ollama_openai http://h:99999/v1",
            f"vllm: its address is no http:// or https:// URL. {URL_HINT}",
            id="no-such-port",
        ),
        pytest.param(
            "vllm = ollama_openai http://[h/v1",
            f"vllm: its address is no http:// or https:// URL. {URL_HINT}",
            id="half-a-bracket",
        ),
        pytest.param(
            "vllm = ollama_openai http://h/v1\u200b",
            f"vllm: its address is no http:// or https:// URL. {URL_HINT}",
            id="invisible-character",
        ),
        pytest.param(
            f"vllm = ollama_openai http://h/v1?key={SECRET}",
            f"vllm: its address goes on after the path, with ? or #. {URL_HINT}",
            id="key-in-the-query",
        ),
        pytest.param(f"vllm = ollama_openai http://h/v1 {SECRET}", KEY_HINT, id="openai-key"),
        pytest.param(
            "vllm = ollama_openai http://h/v1 gsk_4f9a81c2d7e6", KEY_HINT, id="key-with-an-underscore"
        ),
        pytest.param("vllm = ollama_openai http://h/v1 AKIA4F9A81C2D7E64B30", KEY_HINT, id="key-in-capitals"),
        pytest.param("vllm = ollama_openai http://h/v1 $VLLM_KEY", KEY_HINT, id="dollar"),
    ],
)
def test_a_line_that_cannot_be_used(line, expected):
    """The error names the endpoint and a hint, and repeats no key."""
    with pytest.raises(TargetError) as caught:
        parse_endpoint(line, kinds=KINDS)

    assert str(caught.value) == expected


@given(
    secret=st.from_regex(r"sk-[A-Za-z0-9_-]{16,40}", fullmatch=True),
    line=st.sampled_from(
        [
            "{}",
            "{} = ollama_openai http://h/v1",
            "vllm = {} http://h/v1",
            "vllm = ollama_openai {}",
            "vllm = ollama_openai http://h/v1 {}",
            "vllm = ollama_openai http://h/v1 A {}",
            "vllm = ollama_openai ftp://u:{}@h/v1",
            "vllm = ollama_openai http://h/v1?k={}",
        ]
    ),
)
def test_a_key_is_never_repeated(secret, line):
    """Wherever a key is in a refused line, the error does not contain it."""
    with pytest.raises(TargetError) as caught:
        parse_endpoint(line.format(secret), kinds=KINDS)

    assert secret not in str(caught.value)


@given(line=st.text() | st.text().map(lambda rest: f"vllm = ollama_openai {rest}"))
def test_any_line_is_an_endpoint_or_an_error(line):
    """No line leads to anything but an endpoint or a `TargetError`."""
    try:
        endpoint = parse_endpoint(line, kinds=KINDS)
    except TargetError:
        return
    assert endpoint.base_url.lower().startswith(("http://", "https://"))
