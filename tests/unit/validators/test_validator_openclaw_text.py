"""What OpenClaw shows of a title, a recap or a status line."""

from __future__ import annotations

import pytest

from pytest_openclaw.judging.openclaw_answers import OpenclawText
from pytest_openclaw.values.replies import Reply

LONG = "word " * 11 + "words"


@pytest.mark.parametrize(
    ("form", "text", "shown"),
    [
        pytest.param("title", "  Broken router ", "Broken router", id="plain"),
        pytest.param("title", "Title:  “Broken router”", "“Broken router”", id="only-straight-quotes-go"),
        pytest.param("title", 'title : "Broken `router`"', "Broken `router", id="prefix-and-quotes"),
        pytest.param("title", "```text\r\nBroken\trouter\n```", "Broken router", id="a-fence"),
        pytest.param("title", "\n\nBroken router\nIt is about wifi.", "Broken router", id="the-first-line"),
        pytest.param("title", LONG, LONG, id="sixty-characters"),
        pytest.param("recap", " All\n\n is  done. ", "All is done.", id="one-line"),
        pytest.param("recap", '"Quoted."', '"Quoted."', id="a-recap-keeps-quotes"),
        pytest.param("status", "“Reading\nmail.”", "Reading mail.", id="a-status-loses-all-quotes"),
        pytest.param("recap", "x" * 450, "x" * 450, id="the-longest-recap"),
        pytest.param("status", "x" * 280, "x" * 280, id="the-longest-status"),
    ],
)
def test_a_whole_text_passes(form: str, text: str, shown: str) -> None:
    """It is kept as OpenClaw shows it."""
    verdict = OpenclawText(form=form).check(Reply(text=text))

    assert (verdict.passed, verdict.parsed) == (True, {"text": shown})


@pytest.mark.parametrize(
    ("form", "text", "violation"),
    [
        pytest.param("title", "```\n```", "no text is left for a title", id="a-fence-alone"),
        pytest.param("title", 'Title: ""', "no text is left for a title", id="quotes-alone"),
        pytest.param("recap", "", "no text is left for a recap", id="nothing"),
        pytest.param("title", LONG + "!", "is all that OpenClaw shows", id="sixty-one"),
        pytest.param("title", f"Title: {LONG}", "is all that OpenClaw shows", id="the-prefix-counts"),
        pytest.param("title", "🦞" * 31, "is all that OpenClaw shows", id="two-units-each"),
        pytest.param("recap", "x" * 451, "is all that OpenClaw shows", id="a-long-recap"),
        pytest.param("status", "x" * 281, "is all that OpenClaw shows", id="a-long-status"),
    ],
)
def test_what_is_cut_off_or_empty_fails(form: str, text: str, violation: str) -> None:
    """The limits are those of OpenClaw 2026.9.6, in units of UTF-16."""
    verdict = OpenclawText(form=form).check(Reply(text=text))

    assert verdict.passed is False
    assert violation in str(verdict.violation)


def test_a_line_beyond_the_limit_is_never_read() -> None:
    """A long preface pushes the title out; the first line of what is left is shown."""
    verdict = OpenclawText(form="title").check(Reply(text="Sure, here it is:\n" + LONG))

    assert (verdict.passed, verdict.parsed) == (True, {"text": "Sure, here it is:"})


@pytest.mark.parametrize(
    ("text", "violation"),
    [
        pytest.param("Der ROUTER streikt", None, id="any-case"),
        pytest.param("Netz streikt", None, id="an-alternative"),
        pytest.param("Der Router ist alt", '"Der Router ist alt" has none of "streik", "defekt"', id="the-second-list"),
        pytest.param("WLAN streikt", '"WLAN streikt" has none of "router", "netz"', id="the-first-list"),
        pytest.param("Router streikt, sorry", '"Router streikt, sorry" has "Sorry"', id="never"),
    ],
)  # fmt: skip
def test_words_are_looked_for(text: str, violation: str | None) -> None:
    """One of each list, and none of `never`."""
    rule = OpenclawText(form="title", about=(("router", "netz"), ("streik", "defekt")), never=("Sorry",))

    assert rule.check(Reply(text=text)).violation == violation


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        pytest.param({"form": "headline"}, '"form" is "headline". Write one of "title", "recap", "status"', id="form"),
        pytest.param({"form": 3}, '"form" is 3. Write a text in quotes', id="no-text"),
        pytest.param({"form": "title", "about": ["a"]}, '"about" is the text "a". Write a list', id="no-lists"),
        pytest.param({"form": "title", "about": [[1]]}, '"about" holds 1. Write texts in quotes', id="no-words"),
        pytest.param({"form": "title", "never": "x"}, '"never" is the text "x". Write a list', id="never"),
    ],
)  # fmt: skip
def test_a_mistake_of_the_suite_is_an_error(keys: dict[str, object], message: str) -> None:
    """With what to write."""
    with pytest.raises(ValueError, match="validator openclaw_text") as error:
        OpenclawText(**keys)  # type: ignore[arg-type]

    assert message in str(error.value)
