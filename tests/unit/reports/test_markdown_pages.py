"""`comment.md` and `summary.md`: layout and size, and that foreign text stays text on GitHub."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import cmarkgfm
import pytest
from cmarkgfm.cmark import Options
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.parts.baseline.comparison import Obstacle, compare_records
from pytest_openclaw.parts.gates import GateSettings
from pytest_openclaw.reports.facts import HEADERS
from pytest_openclaw.reports.pages import LONGEST_COMMENT as LONGEST
from pytest_openclaw.reports.pages import MARKER, code, render_comment, render_markdown
from pytest_openclaw.values.requests import Target
from tests.unit.reports.summaries import fault, measured, missed, record, summary_of

pytestmark = pytest.mark.newest

GITHUBS_LIMIT = 65_536
OWN_TAGS = {
    "h3", "p", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "strong", "code", "details", "summary", "br",
}  # fmt: skip
HOSTILE = [
    pytest.param("@octocat please", id="mention"),
    pytest.param("closes #1, fixes octo/repo#2 and GH-3", id="issues"),
    pytest.param("</code></td></table><script>alert(1)</script><img src=x onerror=alert(1)>", id="html"),
    pytest.param("a | b || c \\| d", id="bars"),
    pytest.param("` `` ``` ~~~ *x* _y_ **z** ~~s~~ [a](http://b.c) ![i](http://b.c/x.png)", id="markup"),
    pytest.param("https://evil.example/x www.evil.example ftp://evil.example", id="addresses"),
    pytest.param("one\n\n# two\n\n- three\n</details>\n<!-- pytest-openclaw -->", id="lines"),
    pytest.param("<!-- never closed", id="comment"),
]


class _Html(HTMLParser):
    """Tags, attributes and the text outside `<code>`."""

    def __init__(self):
        super().__init__()
        self.tags = []
        self.attributes = []
        self.comments = []
        self.prose = ""
        self._depth = 0

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        self._depth += tag == "code"

    def handle_endtag(self, tag):
        self._depth -= tag == "code"

    def handle_comment(self, data):
        self.comments.append(data)

    def handle_data(self, data):
        if not self._depth:
            self.prose += data


def _shown(page):
    html = _Html()
    html.feed(cmarkgfm.github_flavored_markdown_to_html(page, Options.CMARK_OPT_UNSAFE))
    html.close()
    return html


def _everywhere(text):
    """A run with a foreign text in every possible place."""
    target = Target(provider="lab", model=text, thinking_level="low")
    other = Target(provider="lab", model=f"{text}2")
    rows = [
        missed(target, prompt_id=text, prompt_name=text, violation=text, effective_model=text),
        missed(target, prompt_id=f"{text}9", known_failure=text, objective_pass=True, violation=None),
        fault(target, prompt_id="P3", fault_message=text),
        fault(other, prompt_id="P3", fault_message=text),
    ]
    changed = {("s", f"{text}9"): Obstacle("prompt_changed", text)}
    by_target = measured(rows).rows_of
    pairs = [(target, target)]
    comparison = compare_records(by_target, by_target, pairs, changed, baseline=text, notes=[text])
    gates = GateSettings.of(min_pass_rate=0.5, fail_on="regression")
    summary = summary_of(rows, gates=gates, comparison=comparison)
    return replace(summary, run_id=text, unmatched_gates=[text])


@pytest.mark.parametrize("text", HOSTILE)
def test_foreign_text_stays_text(text):
    """GitHub's parser finds only our tags, and links nothing outside of code."""
    page = render_comment(_everywhere(text))
    plain = _shown(render_comment(_everywhere("word")))

    shown = _shown(page)

    own = [tag for tag in shown.tags if tag not in {"a", "code"}]
    assert set(own) <= OWN_TAGS
    assert own == [tag for tag in plain.tags if tag not in {"a", "code"}]
    assert all(
        name == "align" or (name == "href" and str(value).startswith("mailto:"))
        for name, value in shown.attributes
    )
    assert not re.search(r"(?<!\w)@[a-z]|#[0-9]|GH-[0-9]|://|www\.", shown.prose)
    assert shown.comments == [" pytest-openclaw "]
    assert page.count(MARKER) == 1


@given(text=st.text(max_size=300))
def test_code_shows_what_it_was_given(text):
    """For any text there is one element without a line end, and the reader sees the text on one line."""
    spelled = code(text)
    table = _shown(f"| a | b |\n| --- | --- |\n| {spelled} | end |\n")

    assert "\n" not in spelled
    assert [tag for tag in table.tags if tag in {"tr", "td", "th"}] == ["tr", "th", "th", "tr", "td", "td"]
    assert set(table.tags) <= {"table", "thead", "tbody", "tr", "td", "th", "code", "a"}
    assert table.prose.split() == (["a", "b", "end"] if "code" in table.tags else ["a", "b", "–", "end"])


@pytest.mark.parametrize(
    ("n_targets", "n_prompts", "text"),
    [
        pytest.param(2, 2000, "too long: |" * 60, id="prompts"),
        pytest.param(60, 20, "\u4e2d\u0301\u0302\u0303<|@" * 100, id="wide-and-hostile"),
    ],
)
def test_it_is_never_too_large(n_targets, n_prompts, text):
    """This holds for a run of any size; omitted parts are counted, and every fold is closed."""
    targets = [Target(provider="lab", model=f"{n}{text}") for n in range(n_targets)]
    rows = [
        missed(target, prompt_id=f"P{n}", violation=f"{n} {text}")
        for target in targets
        for n in range(n_prompts)
    ]

    page = render_comment(summary_of(rows, gates=GateSettings.of(min_pass_rate=0.9, max_p95_ms=1.0)))

    assert len(page.encode()) <= LONGEST < GITHUBS_LIMIT
    assert re.search(r"… and \d+ more, in summary\.md", page)
    assert page.count("<details>") == page.count("</details>")
    assert "gates failed" in page
    assert set(_shown(page).tags) - {"a"} <= OWN_TAGS


ROUGH = "a|b `c` *d* <img src=x> [e](f) #g\n| h |"


def _tables(page):
    lines = (line for line in page.splitlines() if line.startswith("|"))
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_sections_without_lines_are_left_out():
    """A run without problems has no empty headings, and one without replies no times."""
    asked = record(suite="prompts_native.toml")
    page, silent = render_markdown(summary_of([asked])), render_markdown(summary_of([fault()]))

    titles = [re.findall("^## (.*)", text, re.MULTILINE) for text in (page, silent)]
    assert titles == [["Why", "How long it took"], ["Findings", "Why"]]
    assert "USD" not in page


def test_foreign_texts_stay_texts():
    """Models, prompt names, violations and messages can neither break the tables nor be marked up."""
    texts = {"prompt_name": ROUGH, "violation": ROUGH, "effective_model": ROUGH + "!"}
    rows = [missed(Target(provider="p", model=ROUGH), **texts), fault(fault_message=ROUGH)]

    page = render_markdown(summary_of(rows, gates=GateSettings.of(min_pass_rate=1)))

    assert "<img" not in page
    assert not re.search(r"(?<!\\)\]\(", page)
    assert _tables(page)[0] == [head for head in HEADERS[:-1] if head not in ("USD", "tools")]
    assert len({len(row) for row in _tables(page)[:4]}) == 1
