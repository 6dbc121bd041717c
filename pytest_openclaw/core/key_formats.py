"""Finds keys in published formats, so that unknown keys are found too.

Prefixes and lengths follow the rules for keys with a prefix of their own in
https://github.com/gitleaks/gitleaks/blob/master/config/gitleaks.toml, and
https://docs.github.com/code-security/secret-scanning/introduction/supported-secret-scanning-patterns.
Every pattern begins with a literal that is rare in ordinary text, and is bounded, so that a search is linear.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_openclaw.core.escapes import Span

# `ghp_xxxxxxxxxxxx…` and `sk-000000000000…` in a manual are no keys.
_FEWEST_CHARACTERS = 10
_AFTER_BEARER = r"(?=[\w.~+/-]{0,80}?[0-9])(?=[\w.~+/-]{0,80}?[a-z])(?P<key>[\w.~+/-]{20,4096}=*)"
_GITHUB = r"[A-Za-z0-9]{36,255}"
_AWS = r"[A-Z2-7]{16}(?<!EXAMPLE)(?![A-Za-z0-9])"
_STRIPE = r"(?:live|test|prod)_[A-Za-z0-9]{16,128}"
# The beginning of a key, and its continuation.
_KEYS = {
    # OpenAI, Anthropic, OpenRouter, DeepSeek and others; a name such as `sk-my-first-key` has no such run.
    "sk-": r"(?=[\w-]{0,80}?[A-Za-z0-9]{16})(?=[\w-]{0,80}?[0-9])[\w-]{20,255}",
    "sk_": _STRIPE,
    "rk_": _STRIPE,
    "gsk_": r"[A-Za-z0-9]{40,128}",
    "xai-": r"[A-Za-z0-9]{40,128}",
    "pplx-": r"[A-Za-z0-9]{40,128}",
    "hf_": r"[A-Za-z0-9]{34,64}",
    "AIza": r"[\w-]{35}",
    "ghp_": _GITHUB,
    "gho_": _GITHUB,
    "ghu_": _GITHUB,
    "ghs_": _GITHUB,
    "ghr_": _GITHUB,
    "github_pat_": r"\w{36,255}",
    "glpat-": r"[\w-]{20,255}(?:\.[\w.]{8,32})?",
    "xox": r"[a-z]-(?=[A-Za-z-]{0,20}[0-9])[A-Za-z0-9-]{20,255}",
    "xapp-": r"[0-9]-[A-Za-z0-9-]{20,255}",
    "hooks.slack.com/": r"(?:services|workflows|triggers)/[\w+/]{30,80}",
    "AKIA": _AWS,
    "ASIA": _AWS,
    "npm_": r"[A-Za-z0-9]{36,64}",
    "pypi-AgE": r"[\w-]{50,512}",
    "eyJ": r"[\w-]{10,4096}\.eyJ[\w-]{10,8192}\.[\w-]{10,1024}",
    "Bearer ": _AFTER_BEARER,
    "bearer ": _AFTER_BEARER,
    "-----BEGIN ": r"[A-Z ]{0,20}PRIVATE KEY(?: BLOCK)?-----[^-]{64,}(?:-----END [A-Z ]{0,40}-----)?",
}
# The literal is first, because it is searched for. An escape before it may end in a letter or digit.
_FORMATS = {
    begin: rf"{begin}(?:(?<![A-Za-z0-9-]{begin})|(?<=\\[ntrbf]{begin})|(?<=%[0-9A-F]{{2}}{begin})){rest}"
    for begin, rest in _KEYS.items()
}
_BEGINNING = re.compile("|".join(map(re.escape, _KEYS)))
# The common prefix of a kind of keys reveals nothing about a single key.
PUBLIC_PREFIX = re.compile(
    r"sk-(?:[a-z][a-z0-9]{1,9}-)*|[a-z]k_[a-z]{4}_|github_pat_[0-9]*|eyJ[\w-]+\.|pypi-AgEIcHlwaS5vcmc"
)


def keys_in(text: str) -> Iterator[Span]:
    """Yield the spans of keys in a published format."""
    if not _BEGINNING.search(text):  # of most texts, four times as fast as looking for each
        return
    for begin, pattern in _FORMATS.items():
        if begin in text:
            for found in re.finditer(pattern, text, re.ASCII):
                start, end = found.span(found.lastgroup or 0)
                if len(set(text[start:end])) >= _FEWEST_CHARACTERS:
                    yield start, end
