"""What a run writes, its own commands read: every file, with any values that its type allows."""

import json
import tempfile
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import inspect

from pytest_openclaw.conclusions.summary import Summary, to_json
from pytest_openclaw.runs import directory as files
from pytest_openclaw.runs.directory import RunDirectory
from pytest_openclaw.runs.reading import load_config, load_inventory, load_surface, read_rows
from pytest_openclaw.runs.summaries import stored_summary
from pytest_openclaw.util.typed import LARGEST, converted
from pytest_openclaw.values.parts import whole
from pytest_openclaw.values.rows import Record, to_row
from pytest_openclaw.values.run_files import (
    DEEPEST_FACTS,
    MOST_FACTS_BYTES,
    ConfigFile,
    InventoryFile,
    facts_of,
    server_facts,
)
from pytest_openclaw.values.settings import CONFIG_VERSION
from pytest_openclaw.values.tool_calls import Surface

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-LARGEST, LARGEST)
    | st.floats(-LARGEST, LARGEST)
    | st.text(max_size=8)
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


def values(info):
    match info:
        case inspect.UnionType():
            return st.one_of(*map(values, info.types))
        case inspect.LiteralType():
            return st.sampled_from(info.values)
        case inspect.NoneType():
            return st.none()
        case inspect.BoolType():
            return st.booleans()
        case inspect.IntType():
            return st.integers(
                -LARGEST if info.ge is None else info.ge, LARGEST if info.le is None else info.le
            )
        case inspect.FloatType():
            low = info.gt if info.ge is None else info.ge
            excluded = info.ge is None and info.gt is not None
            return st.floats(-LARGEST if low is None else low, info.le or LARGEST, exclude_min=excluded)
        case inspect.StrType():
            return st.text(max_size=8) if info.pattern is None else st.text("ab", min_size=1, max_size=3)
        case inspect.ListType() | inspect.VarTupleType() | inspect.FrozenSetType():
            return st.lists(values(info.item_type), max_size=2)
        case inspect.DictType():
            return st.dictionaries(values(info.key_type), values(info.value_type), max_size=2)
        case inspect.TypedDictType() | inspect.DataclassType():
            fields = {field.encode_name: field for field in info.fields if field.encode_name != "extra"}
            return st.fixed_dictionaries(
                {name: values(one.type) for name, one in fields.items() if one.required},
                optional={name: values(one.type) for name, one in fields.items() if not one.required},
            )
    return JSON


def fits(value, kind):
    try:
        converted(value, kind)
    except ValueError:
        return False
    return True


def of_type(kind):
    return st.deferred(lambda: values(inspect.type_info(kind))).filter(lambda value: fits(value, kind))


FILES = {
    files.CONFIG: (
        of_type(whole(ConfigFile)).map(lambda one: {**one, "schema_version": CONFIG_VERSION}),
        load_config,
    ),
    files.INVENTORY: (of_type(InventoryFile), load_inventory),
    files.SURFACE: (
        of_type(Surface).map(lambda one: asdict(converted(one, Surface))),
        lambda path: asdict(load_surface(path)),
    ),
    files.SUMMARY: (
        of_type(whole(Summary)).map(lambda one: to_json(converted(one, whole(Summary)))),
        lambda path: to_json(stored_summary(path)),
    ),
}


@pytest.mark.parametrize("name", FILES)
@settings(deadline=None)
@given(data=st.data())
def test_a_whole_file_is_read_as_it_was_written(name, data):
    """Its type is the definition of both."""
    values_of_type, load = FILES[name]
    value = data.draw(values_of_type)

    with tempfile.TemporaryDirectory() as folder, RunDirectory.new(Path(folder), "r", exactly=True) as run:
        run.write_json(name, value)
        assert load(run.path) == value


@settings(deadline=None)
@given(row=of_type(Record).map(lambda one: converted(one, Record)))
def test_a_row_is_read_as_it_was_written(row):
    """All values that a record may have are in its line; labels of unknown parts stay there, too."""
    with tempfile.TemporaryDirectory() as folder, RunDirectory.new(Path(folder), "r", exactly=True) as run:
        run.append(to_row(row))
        assert [to_row(record) for _, record in read_rows(run.path / files.RESULTS)] == [to_row(row)]


ANYTHING = st.recursive(
    LEAVES | st.integers() | st.floats() | st.text(st.characters(), max_size=3) | st.binary(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(
    facts=st.dictionaries(
        st.sampled_from(["server", "digest", "context_length", "template_shows_tools", "left_out", "x"])
        | st.text(max_size=3),
        ANYTHING,
    )
)
def test_whatever_a_server_says_can_be_stored(facts):
    """A fact is stored, or named as left out; the file with it can be read."""
    kept = server_facts(facts)
    with tempfile.TemporaryDirectory() as folder, RunDirectory.new(Path(folder), "r", exactly=True) as run:
        run.write_json(files.INVENTORY, {"run_id": "r", "targets": {"lab/m": {"server": kept}}})
        assert load_inventory(run.path)["targets"]["lab/m"]["server"] == kept

    assert len(facts.keys() - kept.keys()) <= len(kept.get("left_out", ()))


def nested(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        pytest.param("\ud83d", "\ufffd", id="half-a-surrogate-pair"),
        pytest.param({"\udfff": ["\ud800"]}, {"\ufffd": ["\ufffd"]}, id="half-pairs-below"),
        pytest.param(nested(DEEPEST_FACTS), nested(DEEPEST_FACTS), id="as-deep-as-allowed"),
        pytest.param(nested(DEEPEST_FACTS + 1), None, id="deeper"),
        pytest.param(nested(900), None, id="much-deeper"),
        pytest.param("x" * (MOST_FACTS_BYTES - 23), "x" * (MOST_FACTS_BYTES - 23), id="as-long-as-allowed"),
        pytest.param("x" * (MOST_FACTS_BYTES - 10), None, id="longer"),
        pytest.param(LARGEST, LARGEST, id="large-number"),
        pytest.param(-(10**400), None, id="number-of-400-digits"),
        pytest.param(float("nan"), None, id="nan"),
        pytest.param(b"x", None, id="not-json"),
        pytest.param({1: "x"}, None, id="key-that-is-not-a-text"),
    ],
)
def test_facts_have_limits(value, kept):
    """Valid text, 64 KiB in all, 20 levels, numbers up to 2**53; the rest is named."""
    found = facts_of({"fact": value, "next": 1})

    assert found == ({"next": 1, "left_out": ["fact"]} if kept is None else {"fact": kept, "next": 1})
    assert json.loads(json.dumps(found)) == found


def test_names_of_facts_have_limits():
    """They are valid, too, and take room: many small facts are left out, and long names."""
    found = facts_of({"\udfff": 1, "k" * MOST_FACTS_BYTES: 1, **{str(n): n for n in range(20_000)}})

    assert "\ufffd" in found
    assert len(json.dumps(found, ensure_ascii=False).encode()) < MOST_FACTS_BYTES * 1.5


def test_facts_have_known_types():
    """A context of text would make the inventory unreadable; so it is left out."""
    said = {"context_length": "8k", "template_shows_tools": 1, "server": "vllm", "digest": None}

    assert server_facts(said) == {
        "server": "vllm",
        "digest": None,
        "left_out": ["context_length", "template_shows_tools"],
    }
