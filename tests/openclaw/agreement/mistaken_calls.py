"""Mistakes in a call itself: in its name, its arguments, its JSON."""

from __future__ import annotations

from collections.abc import Iterator

from tests.openclaw.agreement.cases import DONE, FILES, READ, Case, call, calls, own_case
from tests.openclaw.model_server import Said


def mistaken_calls() -> Iterator[Case]:
    """Yield the cases."""
    yield from _names()
    yield from _arguments()


def _names() -> Iterator[Case]:
    yield own_case(
        "names-unknown",
        "a tool that was not offered, one that is none, then a right call",
        calls(call("exec", command="rm a.txt")),
        calls(call("read_file", path="a.txt")),
        calls(call("web_search", query="x"), call("Reed", path="a.txt")),
        calls(READ),
        DONE,
        files=FILES,
    )
    yield own_case(
        "names-forgiven",
        "another case, blanks, namespaces, counters",
        calls(call("READ", path="a.txt"), call(" read ", path="a.txt")),
        calls(call("functions.read", path="a.txt"), call("tools/ls")),
        calls(call("read:0", path="a.txt"), call("functions.ls:1")),
        calls(call("read_1", path="a.txt"), call("read2", path="a.txt")),
        calls(call("default_api.read", path="a.txt"), call("mcp.read", path="a.txt")),
        DONE,
        files=FILES,
    )
    yield own_case(
        "names-alike",
        "look-alikes of offered names",
        calls(call("read-file", path="a.txt"), call("list"), call("apply-patch", input="x")),
        calls(call("Write_File", path="n.txt", content="x"), call("str_replace", path="a.txt")),
        calls(call("re ad", path="a.txt"), call("rеad", path="a.txt")),
        calls(call("tool.write.read", path="a.txt"), call('read"', path="a.txt")),
        DONE,
        files=FILES,
    )


def _arguments() -> Iterator[Case]:
    yield own_case(
        "arguments-missing",
        "required arguments left out, then given",
        calls(call("read"), call("write", path="n.txt")),
        calls(call("edit", path="a.txt"), call("write", content="x")),
        calls(call("write", path="n.txt", content="x")),
        DONE,
        files=FILES,
    )
    yield own_case(
        "arguments-aliases",
        "other names of arguments: file_path, filename, file, text",
        calls(call("read", file_path="a.txt"), call("read", filename="a.txt")),
        calls(call("read", file="a.txt"), call("write", file_path="n.txt", content="x")),
        calls(call("write", path="n.txt", text="x"), call("ls", dir="deep")),
        calls(call("edit", file_path="a.txt", edits=[{"oldText": "one", "newText": "1"}])),
        DONE,
        files=FILES,
    )
    yield own_case(
        "arguments-further",
        "arguments that the schema does not know, beside right ones",
        calls(
            call("read", path="a.txt", encoding="utf-8"), call("write", path="n.txt", content="x", mode="w")
        ),
        calls(call("ls", path=".", recursive=True)),
        calls(call("edit", path="a.txt", edits=[{"oldText": "one", "newText": "1", "all": True}], dry=True)),
        DONE,
        files=FILES,
    )
    yield own_case(
        "arguments-numbers",
        "numbers as texts, texts as numbers, true for 1",
        calls(call("read", path="a.txt", offset="2"), call("read", path="a.txt", limit="1")),
        calls(call("read", path="a.txt", offset=2.0), call("read", path="a.txt", offset=1.5)),
        calls(call("read", path="a.txt", offset="two"), call("read", path=5)),
        calls(call("write", path="n.txt", content=42), call("write", path="t.txt", content=True)),
        calls(call("read", path="a.txt", limit=True), call("read", path="a.txt", offset=0)),
        calls(call("read", path="a.txt", offset=-1), call("read", path="a.txt", limit=-1)),
        DONE,
        files=FILES,
    )
    yield own_case(
        "arguments-types",
        "an object or a list where a text is due, null, a text where a list is due",
        calls(call("write", path="n.txt", content={"a": 1}), call("write", path="l.txt", content=["a", "b"])),
        calls(call("read", path=["a.txt"]), call("read", path=None)),
        calls(call("read", path="a.txt", offset=None, limit=None), call("ls", path=None)),
        calls(call("edit", path="a.txt", edits='[{"oldText": "one", "newText": "1"}]')),
        calls(call("edit", path="a.txt", edits={"oldText": "two", "newText": "2"})),
        calls(call("edit", path="a.txt", oldText="three", newText="3")),
        calls(call("edit", path="a.txt", edits="three"), call("edit", path="a.txt", edits=[])),
        DONE,
        files=FILES,
    )
    yield own_case(
        "arguments-optional",
        "optional arguments of read and ls: optional, cursor, after, limit",
        calls(call("read", path="no.txt", optional=True), call("read", path="a.txt", optional=False)),
        calls(call("read", path="a.txt", cursor=0), call("ls", limit=2)),
        calls(call("ls", after="b.txt"), call("ls", limit=0), call("ls", limit="1")),
        DONE,
        files=FILES,
    )
    for name, about, written in (
        ("broken", "arguments that are cut off", '{"path": "a.t'),
        ("empty", "arguments that are empty", ""),
        ("list", "arguments that are a list", '["a.txt"]'),
        ("null", "arguments that are null", "null"),
        ("comma", "arguments with a comma too many", '{"path": "a.txt",}'),
        ("twice", "the arguments twice in a row", '{"path": "a.txt"}{"path": "a.txt"}'),
        ("fence", "arguments in a fence", '```json\n{"path": "a.txt"}\n```'),
        ("blank", "arguments with blanks around", ' \n{"path": "a.txt"}\n '),
        ("newline", "a raw line break in a text", '{"path": "n.txt", "content": "a\nb"}'),
    ):
        tool = "write" if name == "newline" else "read"
        yield own_case(f"json-{name}", about, calls((tool, written)), DONE, tools=(tool, "ls"), files=FILES)
    yield own_case(
        "json-again",
        "a call, then arguments that are cut off again and again",
        calls(READ),
        calls(("read", '{"path": "a.t')),
        files=FILES,
    )
    yield own_case(
        "json-corrected",
        "a call, arguments that are cut off beside words, then a right call",
        calls(READ),
        Said(text="Let me look.", calls=(("write", '{"path": "n.t'),)),
        calls(call("write", path="n.txt", content="x")),
        DONE,
        files=FILES,
    )
    for name, about, before in (
        ("write", "a file written", calls(call("write", path="n.txt", content="x"))),
        ("refused", "a refused call", calls(call("read"))),
        ("refused-write", "a refused write", calls(call("write", path="n.txt"))),
        ("unknown", "an unknown tool", calls(call("open", path="a.txt"))),
        ("words", "words beside a call", Said(text="Let me look.", calls=(READ,))),
        ("error", "a call that failed", calls(call("read", path="no.txt"))),
    ):
        yield own_case(
            f"json-after-{name}",
            f"{about}, then arguments that are cut off, then a right call",
            before,
            calls(("read", '{"path": "a.t')),
            calls(READ),
            DONE,
            files=FILES,
        )
    yield own_case(
        "json-one-of-two",
        "two calls in a turn, the arguments of one are no JSON",
        calls(call("write", path="n.txt", content="x"), ("read", '{"path": ')),
        DONE,
        files=FILES,
    )
    yield own_case(
        "one-of-three-wrong",
        "three calls in a turn, one of them refused",
        calls(call("write", path="n.txt", content="x"), call("read"), READ),
        calls(call("nothing"), call("write", path="m.txt", content="y")),
        DONE,
        files=FILES,
    )
