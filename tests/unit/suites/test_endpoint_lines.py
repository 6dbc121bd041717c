"""Ini lines that describe a user's own server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.suites.cells import parse_endpoint
from pytest_openclaw.util.errors import TargetError
from pytest_openclaw.values.settings import Endpoint

KINDS = ("ollama_openai", "openai_responses")
KINDS_THERE_ARE = "its kind is unknown; known kinds: ollama_openai, openai_responses."
SECRET = "sk-proj-4f9a81c2d7e64b30"
NO_NAME = "a line has no endpoint name before its =."
NO_URL = "vllm: its address is not an http:// or https:// URL without ? and #."
NO_VARIABLE = "vllm: its last word is not the name of a variable; it may be a key."


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("vllm = ollama_openai http://127.0.0.1:8000/v1", ("vllm", "ollama_openai", "http://127.0.0.1:8000/v1", None), id="without-a-key"),
        pytest.param(
            "  open-router.ai=openai_responses\thttps://r.example/api/v1   ROUTER_API_KEY ",
            ("open-router.ai", "openai_responses", "https://r.example/api/v1", "ROUTER_API_KEY"),
            id="with-a-key-and-odd-blanks",
        ),
        pytest.param("six = ollama_openai http://user:pw@[::1]:8080", ("six", "ollama_openai", "http://user:pw@[::1]:8080", None), id="ipv6-and-a-password"),
    ],
)  # fmt: skip
def test_a_line(line, expected):
    """`name = kind base_url KEY_ENV_NAME` becomes an endpoint; the key's variable may be absent."""
    name, kind, base_url, key_env = expected

    assert parse_endpoint(line, kinds=KINDS) == Endpoint(
        name=name, kind=kind, base_url=base_url, key_env=key_env
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", NO_NAME),
        ("vllm ollama_openai http://h/v1", NO_NAME),
        ("= ollama_openai http://h/v1", NO_NAME),
        ("my/vllm = ollama_openai http://h/v1", NO_NAME),
        ("my vllm = ollama_openai http://h/v1", NO_NAME),
        (f"{'v' * 41} = ollama_openai http://h/v1", NO_NAME),
        (f"{SECRET} = ollama_openai http://h/v1", NO_NAME),
        ("vllm =", "vllm: has 0 words after the =, not two or three."),
        ("vllm = ollama_openai", "vllm: has 1 words after the =, not two or three."),
        (f"vllm = ollama_openai http://h/v1 KEY {SECRET}", "vllm: has 4 words after the =, not two or three."),
        ("vllm = ollama_opnai http://h/v1", f"vllm: {KINDS_THERE_ARE} Did you mean ollama_openai?"),
        (f"vllm = {SECRET} http://h/v1", f"vllm: {KINDS_THERE_ARE} For a server with OpenAI's chat completions write ollama_openai."),
        ("vllm = ollama_openai 127.0.0.1:8000", NO_URL),
        ("vllm = ollama_openai ftp://h/v1", NO_URL),
        ("vllm = ollama_openai http:///v1", NO_URL),
        ("vllm = ollama_openai http://h:99999/v1", NO_URL),
        ("vllm = ollama_openai http://[h/v1", NO_URL),
        ("vllm = ollama_openai http://h/v1\u200b", NO_URL),
        (f"vllm = ollama_openai http://h/v1?key={SECRET}", NO_URL),
        (f"vllm = ollama_openai http://h/v1 {SECRET}", NO_VARIABLE),
        ("vllm = ollama_openai http://h/v1 gsk_4f9a81c2d7e6", NO_VARIABLE),
        ("vllm = ollama_openai http://h/v1 AKIA4F9A81C2D7E64B30", NO_VARIABLE),
        ("vllm = ollama_openai http://h/v1 $VLLM_KEY", NO_VARIABLE),
    ],
    ids=repr,
)  # fmt: skip
def test_a_line_that_cannot_be_used(line, expected):
    """The error names the endpoint and a hint, and repeats no key."""
    with pytest.raises(TargetError) as caught:
        parse_endpoint(line, kinds=KINDS)

    assert str(caught.value).startswith(expected)


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
