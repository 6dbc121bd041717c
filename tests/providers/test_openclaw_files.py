"""The place of OpenClaw's config, and the copy of it: which files are included, what stays unchanged."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import json5
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.providers.openclaw.config_files import config_path, copy_config, empty_config
from tests.searching import examples

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="paths are those of POSIX")

# --- where ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("there", "environ", "found"),
    [
        pytest.param([], {}, ".openclaw/openclaw.json", id="nothing-there"),
        pytest.param([".openclaw/openclaw.json"], {}, ".openclaw/openclaw.json", id="its-own-place"),
        pytest.param([".clawdbot/clawdbot.json"], {}, ".clawdbot/clawdbot.json", id="an-old-place"),
        pytest.param(
            [".openclaw/clawdbot.json", ".openclaw/openclaw.json"], {}, ".openclaw/openclaw.json", id="new-before-old"
        ),
        pytest.param(["a.json"], {"OPENCLAW_CONFIG_PATH": "~/a.json"}, "a.json", id="config-path"),
        pytest.param([], {"OPENCLAW_CONFIG_PATH": " {home}/b.json "}, "b.json", id="config-path-not-there"),
        pytest.param(
            ["s/openclaw.json", ".openclaw/openclaw.json"], {"OPENCLAW_STATE_DIR": "~/s"}, "s/openclaw.json", id="state"
        ),
        pytest.param(
            [".openclaw/openclaw.json"], {"OPENCLAW_STATE_DIR": "{home}/s"}, "s/openclaw.json", id="an-empty-state"
        ),
        pytest.param(
            ["h/.openclaw/openclaw.json"], {"OPENCLAW_HOME": "~/h"}, "h/.openclaw/openclaw.json", id="openclaw-home"
        ),
        pytest.param(
            ["a.json", "s/openclaw.json"], {"OPENCLAW_CONFIG_PATH": "~/a.json", "OPENCLAW_STATE_DIR": "~/s"}, "a.json",
            id="config-path-before-state",
        ),
    ],
)  # fmt: skip
def test_the_config_is_where_openclaw_looks(
    tmp_path: Path, there: list[str], environ: dict[str, str], found: str
) -> None:
    """Its environment variables come first, then its folders in the user's home."""
    for name in there:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    variables = {name: value.format(home=tmp_path) for name, value in environ.items()}

    assert config_path({"HOME": str(tmp_path), **variables}) == tmp_path / found


# --- the copy -------------------------------------------------------------------------------------


def _lay_out(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8", newline="")
    return root / "openclaw.json"


def _texts(folder: Path) -> dict[str, str]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes().decode() for path in files}


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"openclaw.json": "// mine\r\n{a: 'ü', /* \"$include\": 'x' */}\n"}, id="alone"),
        pytest.param({"openclaw.json": '{a: {$include: "./a.json"}}', "a.json": "{}"}, id="bare-key"),
        pytest.param({"openclaw.json": '{"$include": \'d/a.json\'}', "d/a.json": "{}"}, id="root-and-folder"),
        pytest.param(
            {"openclaw.json": '{"$include": /* two */ ["a.json", \'b.json\',], c: 1}', "a.json": "{}", "b.json": "1"},
            id="list",
        ),
        pytest.param(
            {"openclaw.json": '{$include: "d/a.json"}', "d/a.json": '{$include: "../b.json"}', "b.json": "{}"},
            id="nested-relative-to-the-including-file",
        ),
        pytest.param({"openclaw.json": '{$include: "a.json"}', "a.json": '{$include: "openclaw.json"}'}, id="in-a-ring"),
        pytest.param({"openclaw.json": '{$include: "\\u0061\\x2ejson"}', "a.json": "{}"}, id="escapes"),
        pytest.param({"openclaw.json": '{a: {"$include"'}, id="cut-off"),
        pytest.param({"openclaw.json": '{$include: "none.json"}'}, id="a-missing-one"),
    ],
)  # fmt: skip
def test_what_a_config_includes_is_copied(tmp_path: Path, files: dict[str, str]) -> None:
    """The copy has all files in the same folder structure, byte for byte, and nothing else."""
    source = _lay_out(tmp_path / "own", {**files})
    (source.parent / "sessions").mkdir()
    (source.parent / "sessions/other.json").write_text("{}")

    copied = copy_config(source, tmp_path / "copy", {})

    assert _texts(tmp_path / "copy") == files
    assert copied.path == tmp_path / "copy/openclaw.json"
    assert oct(copied.path.stat().st_mode & 0o777) == "0o600"


def test_a_word_in_another_place_includes_nothing(tmp_path: Path) -> None:
    """Only the key `$include` does, not a value or a text of that name."""
    text = '{a: "$include", b: ["$include", "x.json"], c: {"$includes": "x.json"}, "d $include": "x.json"}'
    source = _lay_out(tmp_path / "own", {"openclaw.json": text, "x.json": "{}"})

    copy_config(source, tmp_path / "copy", {})

    assert _texts(tmp_path / "copy") == {"openclaw.json": text}


def test_an_absolute_path_leads_to_its_copy(tmp_path: Path) -> None:
    """Otherwise OpenClaw would write the patch into the user's own file."""
    own = tmp_path / "own"
    source = _lay_out(own, {"openclaw.json": f"{{a: {{$include: '{own}/d/a.json'}}}}", "d/a.json": "{}"})

    copy_config(source, tmp_path / "copy", {})

    assert _texts(tmp_path / "copy") == {
        "openclaw.json": f'{{a: {{$include: "{tmp_path}/copy/d/a.json"}}}}',
        "d/a.json": "{}",
    }


def test_what_is_elsewhere_is_read_where_it_is(tmp_path: Path) -> None:
    """OpenClaw refuses it, or OPENCLAW_INCLUDE_ROOTS allows reading it; links count as elsewhere."""
    _lay_out(tmp_path / "common", {"a.json": "{}", "b.json": "{}"})
    text = '{a: {$include: "../common/a.json"}, b: {$include: "link.json"}}'
    source = _lay_out(tmp_path / "own", {"openclaw.json": text})
    (tmp_path / "own/link.json").symlink_to(tmp_path / "common/b.json")
    roots = os.pathsep.join(["~/common", " ", str(tmp_path / "other")])

    copied = copy_config(source, tmp_path / "copy", {"OPENCLAW_INCLUDE_ROOTS": roots, "HOME": str(tmp_path)})

    common = f'{{a: {{$include: "{tmp_path}/common/a.json"}}, b: {{$include: "{tmp_path}/own/link.json"}}}}'
    assert _texts(tmp_path / "copy") == {"openclaw.json": common}
    assert copied.environ == {
        "OPENCLAW_CONFIG_PATH": str(tmp_path / "copy/openclaw.json"),
        "OPENCLAW_INCLUDE_ROOTS": f"{tmp_path}/common{os.pathsep}{tmp_path}/other",
    }


@pytest.mark.parametrize("path", ["a\0b.json", "x" * 300 + ".json", "ring.json", "d"])
def test_what_can_be_no_file_is_left_to_openclaw(tmp_path: Path, path: str) -> None:
    """Its own message says best what is wrong."""
    source = _lay_out(tmp_path / "own", {"openclaw.json": json.dumps({"$include": path}), "d/a.json": "{}"})
    (tmp_path / "own/ring.json").symlink_to(tmp_path / "own/ring.json")

    copy_config(source, tmp_path / "copy", {})

    (text,) = _texts(tmp_path / "copy").values()
    assert Path(json.loads(text)["$include"]).name == path


def test_bytes_that_are_no_text_are_kept(tmp_path: Path) -> None:
    """OpenClaw decides how to treat them."""
    (tmp_path / "openclaw.json").write_bytes(b'{a: "\xff\xfe"}')

    copied = copy_config(tmp_path / "openclaw.json", tmp_path / "copy", {})

    assert copied.path.read_bytes() == b'{a: "\xff\xfe"}'


def test_an_empty_config_includes_nothing(tmp_path: Path) -> None:
    """It is an object without a key."""
    copied = empty_config(tmp_path / "copy")

    assert json5.loads(copied.path.read_text("utf-8")) == {}
    assert copied.environ == {"OPENCLAW_CONFIG_PATH": str(tmp_path / "copy/openclaw.json")}


def test_keys_are_known_by_what_they_are_called(tmp_path: Path) -> None:
    """This holds for included files too; a reference to a variable is no secret, so its name is shown."""
    files = {
        "openclaw.json": """{$include: "a.json", gateway: {auth: {mode: "token", token: 'one'}}, port: 1,
            models: {x: {"apiKey": "two", baseUrl: "http://me:six@x/v1"}}, env: {vars: {MY_KEY: "${MINE}", OTHER_TOKEN: "three"}}}""",
        "a.json": '{password: "four", headers: {Authorization: "Bearer five"}}',
    }

    copied = copy_config(_lay_out(tmp_path / "own", files), tmp_path / "copy", {})

    assert sorted(copied.secrets) == ["Bearer five", "four", "one", "six", "three", "two"]


# --- laws -----------------------------------------------------------------------------------------

_NAMES = st.sampled_from(["a.json", "d/b.json", "none.json", "x y.json", "ü.json"])
_LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=12)
_INCLUDES = st.fixed_dictionaries({"$include": _NAMES | st.lists(_NAMES, max_size=3)})
_CONFIGS = st.recursive(
    _LEAVES | _INCLUDES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


def _included(value: Any) -> set[str]:
    if isinstance(value, list):
        return set().union(*map(_included, value))
    if not isinstance(value, dict):
        return set()
    included = value.get("$include")
    own = {included} if isinstance(included, str) else {one for one in included or () if isinstance(one, str)}
    return own.union(*(_included(inner) for key, inner in value.items() if key != "$include"))


@examples(50)
@given(value=_CONFIGS, indent=st.sampled_from([None, 2]))
def test_any_config_is_copied_with_just_what_it_includes(
    tmp_path_factory: pytest.TempPathFactory, value: Any, indent: int | None
) -> None:
    """Whatever it contains, its text stays the same."""
    there = {"a.json": "{}", "d/b.json": "{}", "x y.json": "{}", "ü.json": "{}"}
    folder = tmp_path_factory.mktemp("config")
    text = json.dumps({"a": value}, indent=indent)
    source = _lay_out(folder / "own", {**there, "openclaw.json": text})

    copy_config(source, folder / "copy", {})

    expected = {name: there[name] for name in _included({"a": value}) if name in there}
    assert _texts(folder / "copy") == {**expected, "openclaw.json": text}
