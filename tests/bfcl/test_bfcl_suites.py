"""The script of the how-to converts BFCL's cases: small ones of our own, and all of the installed package."""

import json

import pytest

from pytest_openclaw.judging.judge import judge
from pytest_openclaw.suites.load import load_suite
from pytest_openclaw.values.replies import Reply
from pytest_openclaw.values.tool_calls import ToolCall
from tests.bfcl.agreement import REGISTRY, load_converter, load_prompts
from tests.conftest import require_bfcl

pytestmark = pytest.mark.newest

CONVERTER = load_converter()
CASES = {
    "simple_python": 400, "simple_java": 100, "simple_javascript": 50,
    "multiple": 200, "parallel": 200, "parallel_multiple": 200,
    "live_simple": 256, "live_multiple": 1051, "live_parallel": 16, "live_parallel_multiple": 24,
    "irrelevance": 240, "live_irrelevance": 884, "live_relevance": 16,
}  # fmt: skip
SKIPPED = "live_simple_106-63-0 live_simple_112-68-0 live_multiple_862-181-3 live_multiple_964-207-0"

PROPERTIES = {
    "city": {"type": "string"},
    "nights": {"type": "integer"},
    "price": {"type": "float"},
    "class": {"type": "string", "enum": ["single", "double"]},
    "wants": {"type": "array", "items": {"type": "string"}, "enum": ["bath", "view"]},
    "card": {"type": "dict", "properties": {"last": {"type": "integer"}, "name": {"type": "string"}}},
    "rooms": {"type": "array", "items": {"type": "dict", "properties": {"beds": {"type": "integer"}}}},
    "at": {"type": "tuple", "items": {"type": "float"}},
    "note": {"type": "any"},
}


def tool_of(name, properties, *required):
    described = {key: {"description": "A value.", **value} for key, value in properties.items()}
    parameters = {"type": "dict", "required": [*required], "properties": described}
    return {"name": name, "description": "Do it.", "parameters": parameters}


BOOK = tool_of("hotel.book", PROPERTIES, "city")
ANSWER = {
    "hotel.book": {
        "city": ["Rome, Italy", "Roma"],
        "nights": [2, ""],
        "price": [80.0, ""],
        "wants": [["bath"], ["bath", "view"], ""],
        "card": [{"last": [42], "name": ["Ann", ""]}, ""],
        "rooms": [[{"beds": [1, 2]}], ""],
        "at": [[41.9, 12.5], ""],
        "note": ["quiet", ""],
        "class": [""],
    }
}


def prompts_of(tmp_path, category, answer, *, tools=(BOOK,), messages=None):
    talk = messages or [{"role": "user", "content": "Book a room in Rome."}]
    entry = {"id": "case_0", "question": [talk], "function": json.loads(json.dumps(tools))}
    path = tmp_path / "prompts_case.json"
    path.write_text(json.dumps([CONVERTER.prompt_of(category, entry, answer)]), "utf-8")
    (prompt,) = load_suite(path, name=path.name, registry=REGISTRY).prompts
    return prompt


def passes(prompt, *calls):
    made = tuple(ToolCall(name=name, arguments=json.dumps(arguments)) for name, arguments in calls)
    return judge(prompt, Reply(tool_calls=made, finish_reason="tool_calls")).verdict.passed


@pytest.mark.parametrize(
    ("arguments", "passed"),
    [
        pytest.param({"city": "Roma"}, True, id="another-value"),
        pytest.param({"city": "rome italy"}, True, id="case-and-signs"),
        pytest.param({"nights": 2}, False, id="required-missing"),
        pytest.param({"city": "Roma", "nights": 3}, False, id="optional-and-wrong"),
        pytest.param({"city": "Roma", "wants": ["bath", "view"]}, True, id="list"),
        pytest.param({"city": "Roma", "wants": ["view", "bath"]}, False, id="list-in-another-order"),
        pytest.param({"city": "Roma", "wants": ["pool"]}, False, id="enum-of-items"),
        pytest.param({"city": "Roma", "card": {"last": 42}}, True, id="object"),
        pytest.param({"city": "Roma", "card": {"last": 42, "name": "ANN"}}, True, id="optional-key"),
        pytest.param({"city": "Roma", "card": {"name": "Ann"}}, False, id="key-missing"),
        pytest.param({"city": "Roma", "rooms": [{"beds": 2}]}, True, id="list-of-objects"),
        pytest.param({"city": "Roma", "at": [41.9, 12.5]}, True, id="tuple"),
        pytest.param({"city": "Roma", "note": "quiet"}, True, id="any"),
        pytest.param({"city": "Roma", "class": "single"}, False, id="must-be-absent"),
        pytest.param({"city": "Roma", "surplus": 1}, False, id="no-others"),
    ],
)
def test_arguments_that_match_the_answer(tmp_path, arguments, passed):
    """Alternatives, optional arguments and nested values come from the answer, at every depth."""
    prompt = prompts_of(tmp_path, "simple_python", [ANSWER])

    assert passes(prompt, ("hotel_book", arguments)) is passed
    assert not passes(prompt, ("hotel_book", arguments), ("hotel_book", arguments))


def test_parallel_calls_come_in_any_order(tmp_path):
    """Every call is needed once, in any order."""
    answer = [{"hotel.book": {"city": [city]}} for city in ("Rome", "Oslo")]
    prompt = prompts_of(tmp_path, "parallel", answer)
    rome, oslo = (("hotel_book", {"city": city}) for city in ("Rome", "Oslo"))

    replies = ([rome, oslo], [oslo, rome], [rome, rome], [rome])
    assert [passes(prompt, *made) for made in replies] == [True, True, False, False]


@pytest.mark.parametrize(
    ("category", "reply", "passed"),
    [
        pytest.param("irrelevance", Reply(text="There is no such tool."), True, id="nothing-due"),
        pytest.param("irrelevance", [("hotel_book", {"city": "Rome"})], False, id="called-needlessly"),
        pytest.param("live_relevance", [("hotel_book", {"city": "Rome"})], True, id="any-call"),
        pytest.param("live_relevance", [("hotel_book", {})], False, id="refused"),
        pytest.param("live_relevance", Reply(text="No."), False, id="no-call"),
    ],
)
def test_no_call_and_any_call(tmp_path, category, reply, passed):
    """Where no call is right none may be made; where any is, OpenClaw must execute it."""
    prompt = prompts_of(tmp_path, category, None)

    found = passes(prompt, *reply) if isinstance(reply, list) else judge(prompt, reply).verdict.passed
    assert found is passed


@pytest.mark.parametrize(
    ("category", "kind", "value", "written", "passed"),
    [
        pytest.param("simple_java", "integer", 3, "3", True, id="integer"),
        pytest.param("simple_java", "long", 42, "42L", True, id="long"),
        pytest.param("simple_java", "long", 42, "42", False, id="no-long"),
        pytest.param("simple_java", "String", "Cafe", '"cafe"', True, id="text"),
        pytest.param("simple_java", "Array", ["-v", "-p"], 'new String[]{"-v", "-p"}', True, id="array"),
        pytest.param("simple_java", "Array", ["-v", "-p"], 'new String[]{"-p", "-v"}', False, id="another-order"),
        pytest.param("simple_java", "ArrayList", [1, 2], "new ArrayList<Integer>(Arrays.asList(1, 2))", True, id="list"),
        pytest.param("simple_java", "HashMap", {"a": [1], "b": ["x"]}, 'new HashMap<String, Object>() {{ put("b", "x"); put("a", 1); }}', True, id="map"),
        pytest.param("simple_java", "HashMap", {"a": [1], "b": ["x"]}, 'new HashMap<>() {{ put("a", 1); }}', False, id="entry-missing"),
        pytest.param("simple_javascript", "float", 4.0, "4.0", True, id="number"),
        pytest.param("simple_javascript", "array", ["a", "b"], "['a','b']", True, id="js-array"),
        pytest.param("simple_javascript", "dict", {"a": [1], "b": [["x"]]}, '{b: ["x"], "a": 1}', True, id="js-object"),
        pytest.param("simple_javascript", "dict", {"a": [1]}, "{a: 2}", False, id="js-wrong"),
    ],
)  # fmt: skip
def test_values_as_code(tmp_path, category, kind, value, written, passed):
    """In the categories of other languages a value is code, in a text."""
    tool = tool_of("f", {"v": {"type": kind, "items": {"type": "String"}}}, "v")
    prompt = prompts_of(tmp_path, category, [{"f": {"v": [value]}}], tools=[tool])

    assert prompt.tools[0].parameters["properties"]["v"]["type"] == "string"
    assert passes(prompt, ("f", {"v": written})) is passed


def test_earlier_messages(tmp_path):
    """System messages are the system text; what was said before the question goes before it."""
    talk = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello."},
        {"role": "assistant", "content": "Hi."},
        {"role": "user", "content": "Book a room."},
    ]
    prompt = prompts_of(tmp_path, "irrelevance", None, messages=talk)

    assert (prompt.system, prompt.prompt, len(prompt.messages)) == ("Be brief.", "Book a room.", 2)


def test_an_answer_that_the_tool_refuses_is_marked(tmp_path):
    """Such a case is a known failure with a tag, and one without a right value is not converted."""
    prompt = prompts_of(tmp_path, "simple_python", [{"hotel.book": {"city": ["Rome"], "class": ["suite"]}}])

    assert prompt.tags == ("refused_answer",)
    assert prompt.known_failures[0].strict
    for answer, message in (
        ({"city": []}, "no value of city is right"),
        ({"city": ["Rome"], "floor": [2]}, "needs the parameter floor, which hotel_book does not have"),
    ):
        with pytest.raises(CONVERTER.NotExpressibleError, match=message):
            prompts_of(tmp_path, "simple_python", [{"hotel.book": answer}])


def test_every_case_is_converted_or_named():
    """3,637 of 3,641 cases are prompts, and 18 of them have an answer that their tool refuses."""
    require_bfcl()
    converted = {category: CONVERTER.convert(category) for category in CONVERTER.CATEGORIES}

    assert {category: len(prompts) for category, (prompts, _) in converted.items()} == CASES
    assert [case for _, skipped in converted.values() for case in skipped] == SKIPPED.split()
    tags = [one.get("tags", ()) for prompts, _ in converted.values() for one in prompts]
    assert sum("refused_answer" in one for one in tags) == 18


def test_converted_cases_are_prompts(tmp_path):
    """A sample of each category is read as a suite; nine cases have earlier messages."""
    require_bfcl()
    for category in CONVERTER.CATEGORIES:
        prompts = load_prompts(CONVERTER, category, tmp_path, every=50)
        assert {prompt.category for prompt in prompts} == {category}
    talks = [one for one in CONVERTER.convert("live_irrelevance")[0] if "messages" in one]
    path = tmp_path / "prompts_talks.json"
    path.write_text(json.dumps(talks), "utf-8")

    assert len(load_suite(path, name=path.name, registry=REGISTRY).prompts) == 9


def test_the_script_writes_suites(tmp_path, capsys):
    """It writes a file for each named category, and names the categories that it leaves out."""
    require_bfcl()
    CONVERTER.main(str(tmp_path / "bfcl"), "live_simple", "live_parallel")

    said = capsys.readouterr().out
    assert "prompts_bfcl_live_simple.json: 256 prompts, 4 with an answer that their tool refuses" in said
    assert "  live_simple_106-63-0 is not converted: no value of auto_loan_payment_start is right" in said
    suite = tmp_path / "bfcl/prompts_bfcl_live_parallel.json"
    loaded = load_suite(suite, name=suite.name, registry=REGISTRY)
    assert (len(loaded.prompts), loaded.named_only) == (16, True)
    with pytest.raises(SystemExit, match=r"There is no category simple\. Name some of simple_python, "):
        CONVERTER.main(str(tmp_path), "simple")
