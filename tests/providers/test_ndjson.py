"""Lines of JSON: however they are cut and ended."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_openclaw.providers.ndjson import LineStream
from tests.providers.servers.misbehaving import pieces


def read(*chunks: bytes) -> list[str]:
    """All lines of these chunks, including the one without its end."""
    stream = LineStream()
    events = [event for chunk in chunks for event in stream.feed(chunk)]
    return [event.data for event in [*events, *filter(None, [stream.close()])]]


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        pytest.param(b"{}\n[]\n", ["{}", "[]"], id="lf"),
        pytest.param(b"{}\r\n[]\r\n", ["{}", "[]"], id="crlf"),
        pytest.param(b"{}\r[]\r", ["{}", "[]"], id="cr"),
        pytest.param(b"\n\n{}\n\r\n \t\n[]\n\n", ["{}", "[]"], id="blank-lines"),
        pytest.param(b"{}\n[]", ["{}", "[]"], id="the-last-line-feed-missing"),
        pytest.param(b"  {} \n", ["{}"], id="blanks-around"),
        pytest.param(b"\xef\xbb\xbf{}\n", ["{}"], id="byte-order-mark"),
        pytest.param(b"{}\n\xef\xbb\xbf[]\n", ["{}", "\ufeff[]"], id="byte-order-mark-inside-is-text"),
        pytest.param("ü🦞\n".encode(), ["ü🦞"], id="utf-8"),
        pytest.param(b"a\xffb\n", ["a\ufffdb"], id="broken-bytes"),
        pytest.param("a\u2028b\x0bc\x85d\n".encode(), ["a\u2028b\x0bc\x85d"], id="only-cr-and-lf-end-lines"),
        pytest.param(b"", [], id="nothing"),
    ],
)
def test_lines(data, lines):
    """Lines end at CR, LF or both; blank ones are none."""
    assert read(data) == lines


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["lf", "crlf", "cr"])
def test_a_line_is_given_with_its_last_byte(end):
    """No line waits for bytes after it, which would delay the first token."""
    assert [event.data for event in LineStream().feed(b"{}" + end)] == ["{}"]


def test_nothing_is_left_after_the_close():
    """The line that `close` returned is not returned again."""
    stream = LineStream()
    stream.feed(b"{}")

    assert stream.close() is not None
    assert stream.close() is None


_LINES = st.sampled_from(['{"a": "é🦞"}', "{}", " ", "", "no JSON"])
_ENDS = st.sampled_from(["\n", "\r\n", "\r"])


@settings(deadline=None)
@given(
    parts=st.lists(st.tuples(_LINES, _ENDS), max_size=12),
    rest=st.sampled_from(["", '{"é']),
    cuts=st.lists(st.integers(0, 120)),
)
def test_chunked_reads_like_whole(parts, rest, cuts):
    """Wherever the bytes are cut, inside a character or between CR and LF, the lines are the same."""
    data = ("".join(line + end for line, end in parts) + rest).encode()

    expected = [text for line in [*(line for line, _ in parts), rest] if (text := line.strip())]
    assert read(*pieces(data, cuts)) == read(data) == expected


@settings(deadline=None)
@given(data=st.binary(max_size=200))
def test_any_bytes_are_read(data):
    """No byte sequence breaks the reader, and every text it gives can be encoded."""
    for line in read(data):
        line.encode()
