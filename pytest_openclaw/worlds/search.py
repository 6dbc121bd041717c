"""The search tools of a world: memory notes, which are files of the workspace, and pages of the web.

Both are found by their words, and the same way every time.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from typing import TYPE_CHECKING, Any

from pytest_openclaw.openclaw.paths import place_of
from pytest_openclaw.worlds.external import wrap_external, wrap_part
from pytest_openclaw.worlds.shortening import LEAST_FETCHED_UNITS, MOST_FETCHED_UNITS, units
from pytest_openclaw.worlds.workspace import ToolError, named_place, pretty, text_of, whole_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_openclaw.worlds.workspace import Workspace

MOST_SNIPPETS = 20
SNIPPET_CHARS = 700
PAGE_CHARS = 10_000
_FETCHED, _SEARCHED = "Web Fetch", "Web Search"
_PROVIDER = "ollama"
# Each world has this moment, and a network of this speed.
_FETCHED_AT, _TOOK_MS = "2026-11-21T12:00:00.000Z", 120
_NOTES = ("MEMORY.md", "USER.md")
MOST_WORDS = 32
_WORD = re.compile(r"[^\W_]+")
_COMMON = frozenset({
    "a", "about", "an", "and", "any", "are", "at", "be", "by", "did", "do", "does", "for", "from",
    "had", "has", "have", "how", "i", "in", "is", "it", "me", "my", "of", "on", "or", "our", "that",
    "the", "their", "there", "this", "to", "was", "we", "were", "what", "when", "where", "which",
    "who", "why", "with", "you", "your",
})  # fmt: skip
_STEM_CHARS = 4


class Memory:
    """The notes of a world: those that a suite names, `MEMORY.md`, `USER.md` and those in `memory/`."""

    def __init__(self, workspace: Workspace, notes: Mapping[str, str]) -> None:
        self._workspace = workspace
        self._named = frozenset(place_of(note) for note in notes)

    def search(self, arguments: Mapping[str, Any]) -> str:
        """Return the paragraphs that share words with the query, the best first."""
        query = text_of(arguments, "query")
        paragraphs: dict[str, str] = {}
        lines: dict[str, tuple[str, int, int]] = {}
        for place, text in self._notes().items():
            for first, last, paragraph in _paragraphs(text):
                key = f"{place}#{first}"
                paragraphs[key], lines[key] = paragraph, (place, first, last)
        least = arguments.get("minScore")
        least = least if isinstance(least, int | float) and not isinstance(least, bool) else 0.0
        most = min(MOST_SNIPPETS, whole_of(arguments, "maxResults", 6))
        found = [
            {
                "path": lines[key][0],
                "startLine": lines[key][1],
                "endLine": lines[key][2],
                "score": score,
                "snippet": paragraphs[key][:SNIPPET_CHARS],
                "source": "memory",
                "citation": f"{lines[key][0]}#L{lines[key][1]}-L{lines[key][2]}",
            }
            for key, score in rank(query, paragraphs)
            if score >= least
        ]
        return pretty({"results": found[:most]})

    def get(self, arguments: Mapping[str, Any]) -> str:
        """Return lines of one note."""
        path = text_of(arguments, "path")
        place = named_place(path)
        text = self._notes().get(place)
        if text is None and not is_note(place):
            refused = {"status": "error", "code": "MEMORY_PATH_NOT_ALLOWED"}
            why = "path is not an allowed Markdown memory file"
            return pretty({"path": path, "text": "", **refused, "error": why})
        if text is None:
            return pretty({"status": "not_found", "text": "", "path": path})
        first = whole_of(arguments, "from", 1)
        lines = text.rstrip("\n").split("\n")[first - 1 :][: whole_of(arguments, "lines", 2000)]
        shown = "\n".join(lines)[:PAGE_CHARS]
        return pretty({"status": "ok", "text": shown, "path": place, "from": first, "lines": len(lines)})

    def _notes(self) -> dict[str, str]:
        return {
            place: text
            for place, text in self._workspace.files.items()
            if place in self._named or is_note(place)
        }


def is_note(place: str) -> bool:
    """Whether OpenClaw takes a file for a note because of its name alone."""
    return place in _NOTES or (place.startswith("memory/") and place.endswith(".md"))


def _paragraphs(text: str) -> list[tuple[int, int, str]]:
    """First line, last line and text of what blank lines part."""
    found: list[tuple[int, int, str]] = []
    current: list[str] = []
    for number, line in enumerate([*text.split("\n"), ""], 1):
        if line.strip():
            current.append(line)
        elif current:
            found.append((number - len(current), number - 1, "\n".join(current)))
            current = []
    return found


class Web:
    """The pages of a world; there are no others. Results have OpenClaw's keys, and their prose is wrapped."""

    def __init__(self, workspace: Workspace, pages: Mapping[str, str]) -> None:
        self._workspace = workspace
        self._pages = pages
        self._fetched: set[tuple[str, str, int]] = set()

    def search(self, arguments: Mapping[str, Any]) -> str:
        """Return the pages that share words with the query."""
        query = _text_of(arguments, "query")
        found = rank(query, {url: f"{url}\n{text}" for url, text in self._pages.items()})
        shown = found[: min(10, whole_of(arguments, "count", 5))]
        results = [
            {
                "title": wrap_external(_title(self._pages[url]), _SEARCHED),
                "url": url,
                "snippet": wrap_external(self._pages[url][:SNIPPET_CHARS].strip(), _SEARCHED),
                "siteName": wrap_external(_host(url), _SEARCHED),
            }
            for url, _ in shown
        ]
        return pretty(
            {
                "kind": "results",
                "provider": _PROVIDER,
                "query": query,
                "count": len(results),
                "tookMs": _TOOK_MS,
                "results": results,
                "externalContent": _stamp("web_search") | {"provider": _PROVIDER},
            }
        )

    def fetch(self, arguments: Mapping[str, Any]) -> str:
        """Return the text of a page, of a long one its beginning and the path of a file with all of it."""
        url = _text_of(arguments, "url")
        if not url.strip().lower().startswith(("http://", "https://")):
            raise _failed("Invalid URL: must be http or https")
        wanted = _plain(url)
        text = next((text for one, text in self._pages.items() if _plain(one) == wanted), None)
        if text is None:
            detail = wrap_external("Not Found", _FETCHED, with_notice=True)
            raise _failed(f"Web fetch failed (404): {detail}")
        wanted_units = whole_of(arguments, "maxChars", MOST_FETCHED_UNITS, least=LEAST_FETCHED_UNITS)
        most = min(MOST_FETCHED_UNITS, wanted_units)
        mode = "text" if arguments.get("extractMode") == "text" else "markdown"
        shown, is_cut = wrap_part(text, _FETCHED, most)
        spill: Mapping[str, Any] = {}
        if is_cut:
            spill = self._spill(text)
            shown = _with_footer(text, shown, spill["path"], most)
        is_known = (wanted, mode, most) in self._fetched
        self._fetched.add((wanted, mode, most))
        return pretty(
            {
                "url": url,
                "finalUrl": url,
                "contentType": "text/plain",
                "status": 200,
                "extractMode": mode,
                "extractor": "raw",
                "externalContent": _stamp("web_fetch"),
                "truncated": is_cut,
                "length": units(shown),
                "rawLength": units(text),
                **({"spill": spill} if spill else {}),
                "fetchedAt": _FETCHED_AT,
                "tookMs": _TOOK_MS,
                "text": shown,
                **({"cached": True} if is_known else {}),
            }
        )

    def _spill(self, text: str) -> Mapping[str, Any]:
        """Write a page, wrapped, into a file beside the workspace; its name is random in OpenClaw."""
        place = f"/tmp/openclaw-web-fetch-{hashlib.sha256(text.encode()).hexdigest()[:16]}.log"  # noqa: S108
        self._workspace.spill(place, wrap_external(text, _FETCHED, with_notice=True))
        return {"path": place, "chars": units(text)}


def _with_footer(text: str, shown: str, path: str, most: int) -> str:
    """Return the shown part of a page and the path of its file (`spillWebFetchContent` in `web-fetch`)."""
    named = f"Full output: {path}"
    footer = f"\n\n[Showing truncated web_fetch content. {named}.]"
    if len(footer) <= most:
        return wrap_part(text, _FETCHED, most - len(footer))[0] + footer
    compact = f"[{named}]"
    return compact if len(compact) <= most else shown


def _failed(text: str) -> ToolError:
    """Return an error of a tool of the network, which is wrapped as its results are."""
    return ToolError(wrap_external(text, "API", with_notice=True))


def _text_of(arguments: Mapping[str, Any], key: str) -> str:
    try:
        return text_of(arguments, key)
    except ToolError as error:
        raise _failed(str(error)) from None


def _stamp(source: str) -> dict[str, Any]:
    return {"untrusted": True, "source": source, "wrapped": True}


def _plain(url: str) -> str:
    """An address without what makes no other page: scheme, `www.`, fragment, the last slash."""
    bare = url.strip().partition("#")[0].partition("://")[2]
    host, slash, rest = bare.partition("/")
    return f"{host.lower().removeprefix('www.')}{slash}{rest}".rstrip("/")


def _host(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].partition(":")[0]


def _title(text: str) -> str:
    return text.strip().partition("\n")[0].lstrip("# ").strip()[:120]


# --- words ----------------------------------------------------------------------------------------


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text, in lower case."""
    return frozenset(_WORD.findall(text.casefold()))


def rank(query: str, texts: Mapping[str, str]) -> list[tuple[str, float]]:
    """Return the keys of the texts that share a word with the query, the best first, with a score to 1.

    Words such as "the" do not count, unless the query has no others. A word is also found by its beginning
    of four letters or more: "deploy" in "deployment".
    """
    asked = words_of(query)
    wanted = sorted(asked - _COMMON or asked)[:MOST_WORDS]
    found = ((key, _score(wanted, words_of(text))) for key, text in texts.items())
    return sorted((pair for pair in found if pair[1] > 0), key=lambda pair: -pair[1])


def _score(wanted: list[str], words: Iterable[str]) -> float:
    known = frozenset(words)
    stems = tuple(sorted(word for word in known if len(word) >= _STEM_CHARS))
    hits = sum(word in known or _begins(word, stems) for word in wanted)
    return round(hits / len(wanted), 2) if wanted else 0.0


def _begins(word: str, stems: tuple[str, ...]) -> bool:
    """Whether the word is the beginning of one of the stems, which are sorted, or one of them is its own."""
    if len(word) < _STEM_CHARS:
        return False
    place = bisect_left(stems, word)
    follows = place < len(stems) and stems[place].startswith(word)
    return follows or word.startswith(stems)
