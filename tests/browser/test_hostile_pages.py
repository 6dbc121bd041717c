"""A reply is hostile input: whatever it contains, the page shows it as text and runs none of it."""

import pytest

from pytest_openclaw.util.text import printable
from tests.browser.conftest import reported
from tests.browser.hostile import TEXTS, hostile_run
from tests.unit.reports.summaries import record
from tests.unit.runs.stored_runs import store

OURS = {
    "HTML", "HEAD", "META", "TITLE", "STYLE", "BODY", "A", "HEADER", "DIV", "P", "H1", "H2", "H3", "H4", "H5", "H6", "SPAN", "B",
    "BUTTON", "DL", "DT", "DD", "NAV", "MAIN", "NOSCRIPT", "SECTION", "FORM", "LABEL", "INPUT", "SELECT", "OPTION", "DETAILS",
    "SUMMARY", "TABLE", "CAPTION", "THEAD", "TBODY", "TR", "TH", "TD", "KBD", "DIALOG", "PRE", "CODE", "SCRIPT", "TEXTAREA", "UL", "LI",
}  # fmt: skip


@pytest.fixture(scope="module")
def hostile_page(context, tmp_path_factory):
    """The page of the hostile run, with all details unfolded."""
    run = reported(hostile_run(tmp_path_factory.mktemp("hostile") / "one"))
    complaints = []
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.goto((run / "report.html").as_uri())
    page.wait_for_selector("body[data-ready]")
    page.evaluate(
        "for (const one of document.querySelectorAll('main section:not(#cells) details')) one.open = true"
    )
    yield page
    page.close()
    assert complaints == []


def _open(page, name, repeat):
    n = list(TEXTS).index(name)
    page.locator("#grid").evaluate("(grid, top) => { grid.scrollTop = top; }", n * 60)
    page.locator(f'[data-prompt="{n}"][data-target="{n}"]').click()
    panel = page.locator("#panel")
    panel.get_by_role("group", name="Repeats").locator("button").nth(repeat - 1).click()
    panel.locator("details").evaluate_all("list => { for (const one of list) one.open = true; }")
    page.wait_for_timeout(30)  # unfolded details are filled in their event
    return panel


def _check_nothing_ran(page):
    assert page.evaluate("window.pwned") is None
    assert page.evaluate("document.title").endswith(" · OpenClaw benchmark")
    assert page.evaluate("getComputedStyle(document.body).display") == "block"
    tags = set(page.evaluate("[...document.querySelectorAll('*')].map(one => one.tagName)"))
    assert tags <= OURS
    assert page.evaluate("document.querySelectorAll('script:not([type])').length") == 1
    assert page.evaluate("document.querySelectorAll('a:not([href^=\"#\"])').length") == 0
    active = "[...document.querySelectorAll('*')].flatMap(one => [...one.attributes]).map(one => one.name)"
    assert [one for one in page.evaluate(active) if one.startswith(("on", "src"))] == []


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize(
    "repeat",
    [
        pytest.param(1, id="answer", marks=pytest.mark.nightly),
        pytest.param(2, id="thinking-and-call", marks=pytest.mark.nightly),
        pytest.param(3, id="exchange"),
        pytest.param(4, id="fault", marks=pytest.mark.nightly),
    ],
)
def test_foreign_text_stays_text(hostile_page, name, repeat):
    """It is shown letter by letter, with hiding characters escaped; nothing of it is markup."""
    panel = _open(hostile_page, name, repeat)

    _check_nothing_ran(hostile_page)
    texts = panel.locator("pre").evaluate_all("list => list.map(one => one.textContent)")
    # Violation or fault, prompt, system and reply; then thinking, and each call's arguments and result.
    least = {1: 4, 2: 5, 3: 9, 4: 4}[repeat]
    if name == "json" and repeat in (2, 3):  # arguments that are JSON are shown indented
        least -= 2
    assert texts.count(printable(TEXTS[name])) >= least
    assert hostile_page.evaluate(ODD_CHARACTERS) == []


ODD_CHARACTERS = """() => {
  const found = [];
  const odd = /(?![\\n\\t])[\\p{Cc}\\p{Cf}\\p{Cs}\\p{Zl}\\p{Zp}]/u;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (node.parentNode.tagName !== 'SCRIPT' && odd.test(node.data)) found.push(node.parentNode.outerHTML.slice(0, 200));
  }
  for (const one of document.querySelectorAll('*')) for (const { name, value } of one.attributes) {
    if (name !== 'value' && odd.test(value)) found.push(one.tagName + ' ' + name);
  }
  return found;
}"""
"""Where a text or an attribute holds a control or direction character."""


def test_the_policy_lets_nothing_else_run(context, tmp_path):
    """Even markup that got into the page could run no script, load nothing and send nothing."""
    run = store(tmp_path / "one", [record(prompt_id="P1", suite="s")], prompts=[])
    page = context.new_page()
    page.goto((reported(run) / "report.html").as_uri())
    policy = page.locator("meta[http-equiv=Content-Security-Policy]").get_attribute("content") or ""

    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert all(word.startswith("'sha256-") for word in f"{rules['script-src']} {rules['style-src']}".split())
    blocked = page.evaluate(
        """async () => {
          const blocked = [];
          document.addEventListener('securitypolicyviolation', (event) => blocked.push(event.effectiveDirective));
          const script = document.createElement('script');
          script.textContent = 'window.pwned = 1';
          document.body.append(script);
          const box = document.createElement('div');
          box.innerHTML = '<img src="data:image/png;base64,x" onerror="window.pwned = 2"><style>body{display:none}</style>';
          document.body.append(box);
          await fetch('http://127.0.0.1:9/').catch(() => blocked.push('fetch failed'));
          await new Promise((go) => { setTimeout(go, 200); });
          return [...new Set(blocked)];
        }"""
    )
    assert page.evaluate("window.pwned") is None
    assert {"script-src-elem", "img-src", "style-src-elem", "connect-src", "fetch failed"} <= set(blocked)
    page.close()
