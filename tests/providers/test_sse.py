"""Server-sent events: the standard's rules, and what is read beyond it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_openclaw.providers.stream import Event, EventReader
from tests.providers.servers.misbehaving import pieces


def read(*chunks: bytes) -> list[Event]:
    """All events of these chunks, including the one without its blank line."""
    stream = EventReader()
    events = [event for chunk in chunks for event in stream.feed(chunk)]
    return [*events, *stream.close()]


@pytest.mark.parametrize(
    ("data", "events"),
    [
        pytest.param(b"data: a\n\ndata: b\n\n", ["a", "b"], id="lf"),
        pytest.param(b"data: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"], id="crlf"),
        pytest.param(b"data: a\ndata: b\n\n", ["a\nb"], id="several-data-lines"),
        pytest.param(b"data:a\n\n", ["a"], id="no-blank-after-colon"),
        pytest.param(b"data:  a\n\n", [" a"], id="one-blank-belongs-to-the-field"),
        pytest.param(b": ping\n\n: ping\ndata: a\n\n", ["a"], id="comments"),
        pytest.param(b"id: 1\nretry: 9\ndata: a\nother: x\n\n", ["a"], id="other-fields"),
        pytest.param(b"event: x\n\ndata: a\n\n", ["a"], id="an-event-without-data-is-none"),
        pytest.param(b"data:\n\ndata\n\n", [], id="empty-data"),
        pytest.param(b"data: a\ndata:\n\n", ["a\n"], id="empty-second-line"),
        pytest.param(b"\xef\xbb\xbfdata: a\n\n", ["a"], id="byte-order-mark"),
        pytest.param(b"data: \xef\xbb\xbfa\n\n", ["\ufeffa"], id="byte-order-mark-inside-is-text"),
        pytest.param("data: Grüße 🦞\n\n".encode(), ["Grüße 🦞"], id="utf-8"),
        pytest.param(b"data: a\xffb\n\n", ["a\ufffdb"], id="broken-bytes"),
        pytest.param(
            "data: a\u2028b\x0bc\x85d\n\n".encode(), ["a\u2028b\x0bc\x85d"], id="only-cr-and-lf-end-lines"
        ),
        pytest.param(b"\n\n\ndata: a\n\n\n\n", ["a"], id="blank-lines"),
        pytest.param(b"data: a\n\ndata: [DONE]", ["a", "[DONE]"], id="cut-before-its-line-end"),
        pytest.param(b"data: a\n\ndata: b\n", ["a", "b"], id="cut-before-its-blank-line"),
        pytest.param(b'{"error": 1}\n\n', ['{"error": 1}'], id="bare-json"),
        pytest.param(b"", [], id="nothing"),
    ],
)
def test_data_of_events(data, events):
    """Lines end at LF or CRLF; data lines are joined; comments and events without data are none."""
    assert [event.data for event in read(data)] == events


@pytest.mark.parametrize(
    ("data", "event"),
    [
        pytest.param(b"event: x\ndata: a\n\n", Event("x", "a"), id="named"),
        pytest.param(b"data: a\n\n", Event("message", "a"), id="unnamed"),
    ],
)
def test_types_of_events(data, event):
    """An event is a message unless it is named."""
    assert read(data) == [event]


def test_a_type_lasts_for_one_event():
    """The name of one event does not apply to the next one."""
    assert read(b"event: x\ndata: a\n\ndata: b\n\n") == [Event("x", "a"), Event("message", "b")]


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n"], ids=["lf", "crlf"])
def test_an_event_is_given_with_its_last_byte(end):
    """No event waits for bytes after it, which would delay the first token."""
    assert EventReader().feed(b"data: a" + end) == [Event("message", "a")]


_LINES = st.sampled_from(["data: é🦞", "data: b", "data:", "event: x", ": c", '{"a": 1}', ""])
_ENDS = st.sampled_from(["\n", "\r\n"])


@settings(deadline=None)
@given(
    lines=st.lists(st.tuples(_LINES, _ENDS), max_size=12),
    rest=st.sampled_from(["", "data: é"]),
    cuts=st.lists(st.integers(0, 120)),
)
def test_chunked_reads_like_whole(lines, rest, cuts):
    """Wherever the bytes are cut, inside a character or between CR and LF, the events are the same."""
    data = ("".join(line + end for line, end in lines) + rest).encode()

    assert read(*pieces(data, cuts)) == read(data)
