"""Mistakes in a call itself: in its name, its arguments, its JSON."""

from tests.openclaw.agreement.cases import DONE, READ, call, edit, own_case, read, write
from tests.openclaw.model_server import Said

CUT_OFF = [("read", '{"path": "a.t')]


def mistaken_calls():
    yield from _names()
    yield from _arguments()
    yield from _json()


def _names():
    yield own_case(
        "names-forgiven",
        "another case, blanks, namespaces, counters",
        [call("READ", path="a.txt"), call(" read ", path="a.txt")],
        [call("functions.read", path="a.txt"), call("tools/ls")],
        [call("read:0", path="a.txt"), call("functions.ls:1")],
        [call("read_1", path="a.txt"), call("read2", path="a.txt")],
        [call("default_api.read", path="a.txt"), call("mcp.read", path="a.txt")],
        DONE,
    )
    yield own_case(
        "names-alike",
        "look-alikes of offered names",
        [call("read-file", path="a.txt"), call("list"), call("apply-patch", input="x")],
        [call("Write_File", path="n.txt", content="x"), call("str_replace", path="a.txt")],
        [call("re ad", path="a.txt"), call("rеad", path="a.txt")],
        [call("tool.write.read", path="a.txt"), call('read"', path="a.txt")],
        DONE,
    )


def _arguments():
    yield own_case(
        "arguments-aliases",
        "other names of arguments: file_path, filename, file, text",
        [call("read", file_path="a.txt"), call("read", filename="a.txt")],
        [call("read", file="a.txt"), call("write", file_path="n.txt", content="x")],
        [call("write", path="n.txt", text="x"), call("ls", dir="deep")],
        [call("edit", file_path="a.txt", edits=[{"oldText": "one", "newText": "1"}])],
        DONE,
    )
    yield own_case(
        "arguments-numbers",
        "numbers as texts, texts as numbers, true for 1",
        [read("a.txt", offset="2"), read("a.txt", limit="1")],
        [read("a.txt", offset=2.0), read("a.txt", offset=1.5)],
        [read("a.txt", offset="two"), read(5)],
        [write("n.txt", 42), write("t.txt", True)],
        [read("a.txt", limit=True), read("a.txt", offset=0)],
        [read("a.txt", offset=-1), read("a.txt", limit=-1)],
        DONE,
    )
    yield own_case(
        "arguments-types",
        "an object or a list instead of a text, null, a text instead of a list",
        [write("n.txt", {"a": 1}), write("l.txt", ["a", "b"])],
        [read(["a.txt"]), read(None)],
        [read("a.txt", offset=None, limit=None), call("ls", path=None)],
        [call("edit", path="a.txt", edits='[{"oldText": "one", "newText": "1"}]')],
        [call("edit", path="a.txt", edits={"oldText": "two", "newText": "2"})],
        [call("edit", path="a.txt", oldText="three", newText="3")],
        [call("edit", path="a.txt", edits="three"), edit("a.txt")],
        DONE,
    )


def _json():
    for name, about, written in (
        ("broken", "arguments that are cut off", '{"path": "a.t'),
        ("empty", "arguments that are empty", ""),
        ("list", "arguments that are a list", '["a.txt"]'),
        ("twice", "the arguments twice in a row", '{"path": "a.txt"}{"path": "a.txt"}'),
        ("fence", "arguments in a fence", '```json\n{"path": "a.txt"}\n```'),
        ("blank", "arguments with blanks around", ' \n{"path": "a.txt"}\n '),
    ):
        yield own_case(f"json-{name}", about, [("read", written)], DONE, tools=("read", "ls"))
    yield own_case("json-again", "a call, then arguments that are cut off again and again", [READ], CUT_OFF)
    yield own_case(
        "json-corrected",
        "a call, arguments that are cut off next to words, then a right call",
        [READ],
        Said(text="Let me look.", calls=(("write", '{"path": "n.t'),)),
        [write("n.txt", "x")],
        DONE,
    )
    before = (
        ("write", "a file written", [write("n.txt", "x")]),
        ("refused", "a refused call", [call("read")]),
        ("refused-write", "a refused write", [call("write", path="n.txt")]),
        ("unknown", "an unknown tool", [call("open", path="a.txt")]),
        ("words", "words next to a call", Said(text="Let me look.", calls=(READ,))),
        ("error", "a call that failed", [read("no.txt")]),
    )
    for name, about, first in before:
        whole = f"{about}, then arguments that are cut off, then a right call"
        yield own_case(f"json-after-{name}", whole, first, CUT_OFF, [READ], DONE)
    yield own_case(
        "json-one-of-two",
        "two calls in a turn, the arguments of one are not JSON",
        [write("n.txt", "x"), ("read", '{"path": ')],
        DONE,
    )
    yield own_case(
        "one-of-three-wrong",
        "three calls in a turn, one of them refused",
        [write("n.txt", "x"), call("read"), READ],
        [call("nothing"), write("m.txt", "y")],
        DONE,
    )
