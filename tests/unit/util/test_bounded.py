"""Patterns mean what `re` says, and end in bounded time."""

import re
import subprocess
import sys

import pytest

from pytest_openclaw.util import bounded
from pytest_openclaw.util.bounded import compile_pattern, fullmatches, searches
from pytest_openclaw.util.errors import OpenClawError


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        pytest.param("a{", "a{", id="open-brace"),
        pytest.param("(?x) a  # half a [ bracket\n b", "ab", id="verbose"),
        pytest.param("(?i)straße", "STRASSE", id="no-full-case-folding"),
        pytest.param(r"(?P<q>['\"]).*(?P=q)", "'a'", id="back-reference"),
        pytest.param("a++b", "aab", id="possessive"),
        pytest.param(r"a\Z", "a", id="end"),
    ],
)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_same_meaning_as_re(pattern, text):
    """Every pattern decides as it does in Python's `re`."""
    assert fullmatches(pattern, text) is (re.fullmatch(pattern, text) is not None)
    assert searches(pattern, text) is (re.search(pattern, text) is not None)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        pytest.param(r"\p{L}", r"bad escape \p at position 0", id="only-in-regex"),
        pytest.param("a{99999999999}", "the repetition number is too large", id="number"),
    ],
)
def test_invalid_pattern(pattern, why):
    """A pattern that `re` refuses is refused with its reason and shown."""
    with pytest.raises(ValueError, match="is not a regular expression") as caught:
        compile_pattern(pattern)

    assert str(caught.value) == (
        f'is not a regular expression ({why}): "{pattern}". Fix it, or use another validator.'
    )


@pytest.mark.parametrize("decide", [fullmatches, searches])
def test_a_runaway_pattern_is_a_fault(monkeypatch, decide):
    """A pattern without an end stops after its time, and is the harness's fault, not the model's."""
    monkeypatch.setattr(bounded, "PATTERN_TIMEOUT_S", 0.05)

    with pytest.raises(OpenClawError) as caught:
        decide("(?:x+x+)+y", "x" * 5000)

    assert str(caught.value) == (
        'the pattern "(?:x+x+)+y" cannot be decided on a reply of 5000 characters within 0.05 s.'
        " Write it without nested repeats, such as (a+)+."
    )


def test_the_end_of_a_process_waits_for_no_thread():
    """After Ctrl-C a model's endless command does not hold up the process."""
    work = "asyncio.wait_for(in_thread(lambda: time.sleep(60)), 0.1)"
    code = f"import asyncio, time\nfrom {bounded.__name__} import in_thread\nasync def main(): await {work}"

    words = [sys.executable, "-c", f"{code}\nasyncio.run(main())"]
    ended = subprocess.run(words, capture_output=True, timeout=50)

    assert ended.stderr.rstrip().endswith(b"TimeoutError")
