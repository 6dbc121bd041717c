"""Target specs, and the expansion of wildcards."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_openclaw.suites.cells import expand, how_read, parse_targets
from pytest_openclaw.util.errors import TargetError
from pytest_openclaw.values.requests import THINKING_LEVELS, Target

PROVIDERS = ("ollama_openai", "openai_responses", "claude_code_cli")
EXAMPLE = "Write for example ollama_native/llama3.2:3b."


def labels(*specs, providers=("ollama_openai",), levels=(None,)):
    targets = parse_targets(specs, providers=PROVIDERS, default_providers=providers, default_levels=levels)
    return [target.label for target in targets]


@pytest.mark.parametrize(
    ("spec", "target"),
    [
        pytest.param("llama3.2:3b", ("ollama_openai", "llama3.2:3b", None), id="model"),
        pytest.param("claude_code_cli/opus", ("claude_code_cli", "opus", None), id="provider-and-model"),
        pytest.param("claude_code_cli/opus@high", ("claude_code_cli", "opus", "high"), id="all-three"),
        pytest.param("qwen3:8b@xhigh", ("ollama_openai", "qwen3:8b", "xhigh"), id="model-and-level"),
        pytest.param("openai-codex/gpt-5.3-codex", ("ollama_openai", "openai-codex/gpt-5.3-codex", None), id="slash-in-the-model"),
        pytest.param("hf.co/x/y:Q4", ("ollama_openai", "hf.co/x/y:Q4", None), id="two-slashes"),
        pytest.param("ollama_openai/hf.co/x/y:Q4", ("ollama_openai", "hf.co/x/y:Q4", None), id="provider-and-slashes" ),
        pytest.param("ollama/llama3", ("ollama_openai", "ollama/llama3", None), id="no-such-provider"),
        pytest.param("Ollama_OpenAI/x", ("ollama_openai", "Ollama_OpenAI/x", None), id="providers-have-a-case" ),
        pytest.param("m@2024-08-06", ("ollama_openai", "m@2024-08-06", None), id="version-after-at"),
        pytest.param("m@HIGH", ("ollama_openai", "m@HIGH", None), id="levels-have-a-case"),
        pytest.param("m@none", ("ollama_openai", "m@none", None), id="none-is-not-a-level"),
        pytest.param("m@low@high", ("ollama_openai", "m@low", "high"), id="the-last-level-counts"),
        pytest.param("m@high:q4", ("ollama_openai", "m@high:q4", None), id="level-not-at-the-end"),
        pytest.param("  m \t", ("ollama_openai", "m", None), id="blanks-around"),
        pytest.param("ollama_openai/*@low", ("ollama_openai", "*", "low"), id="wildcard"),
        pytest.param("ollama_openai/ollama_openai", ("ollama_openai", "ollama_openai", None), id="like-a-provider" ),
    ],
)  # fmt: skip
def test_a_spec(spec, target):
    """`[provider/]model[@thinking]` is read as provider, model and level."""
    parsed = parse_targets(
        [spec], providers=PROVIDERS, default_providers=["ollama_openai"], default_levels=[None]
    )

    assert [(one.provider, one.model, one.thinking_level) for one in parsed] == [target]


def test_lists_repeats_and_duplicates():
    """Specs come from comma lists and repeated options, in order, each once."""
    assert labels("a, b@low", "openai_responses/a,a", "b@low") == [
        "ollama_openai/a",
        "ollama_openai/b@low",
        "openai_responses/a",
    ]


def test_specs_are_crossed_with_the_defaults():
    """A spec takes every default provider and level, unless it names its own."""
    crossed = labels(
        "a",
        "claude_code_cli/b",
        "c@high",
        providers=("ollama_openai", "openai_responses"),
        levels=(None, "low"),
    )

    assert crossed == [
        "ollama_openai/a",
        "ollama_openai/a@low",
        "openai_responses/a",
        "openai_responses/a@low",
        "claude_code_cli/b",
        "claude_code_cli/b@low",
        "ollama_openai/c@high",
        "openai_responses/c@high",
    ]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param("", f'"" names no model between two commas or at an end. {EXAMPLE}', id="empty"),
        pytest.param(" ", f'" " names no model between two commas or at an end. {EXAMPLE}', id="blank"),
        pytest.param("a,,b", f'"a,,b" names no model between two commas or at an end. {EXAMPLE}', id="two-commas" ),
        pytest.param("a,", f'"a," names no model between two commas or at an end. {EXAMPLE}', id="comma-at-the-end" ),
        pytest.param("ollama_openai/", f'"ollama_openai/" names no model. {EXAMPLE}', id="no-model"),
        pytest.param("ollama_openai", f'"ollama_openai" names no model. {EXAMPLE}', id="only-a-provider"),
        pytest.param("ollama_openai/@low", f'"ollama_openai/@low" names no model. {EXAMPLE}', id="level-for-model" ),
        pytest.param(
            "ollama_opnai/llama3",
            '"ollama_opnai/llama3": "ollama_opnai" is not known. Did you mean ollama_openai? Where it belongs to the '
            "model's name, write for example ollama_native/ollama_opnai/llama3.",
            id="a-slip-in-the-provider",
        ),
        pytest.param("@low", f'"@low" names no model. {EXAMPLE}', id="only-a-level"),
        pytest.param("a b", f'"a b" holds a blank or an invisible character. {EXAMPLE}', id="blank-inside"),
        pytest.param("a @low", f'"a @low" holds a blank or an invisible character. {EXAMPLE}', id="blank-before-at" ),
        pytest.param("a\x00b", f'"a\\u0000b" holds a blank or an invisible character. {EXAMPLE}', id="nul"),
        pytest.param("a\udcffb", f'"a\\udcffb" holds a blank or an invisible character. {EXAMPLE}', id="surrogate" ),
    ],
)  # fmt: skip
def test_a_spec_that_names_no_model(spec, expected):
    """A spec must name a model in characters that can be seen."""
    with pytest.raises(TargetError) as caught:
        labels(spec)

    assert str(caught.value) == expected


@pytest.mark.parametrize(
    ("model", "meant"),
    [
        ("openai/gpt-5", "openai_responses/gpt-5"),
        ("OpenAI/gpt-5", "openai_responses/gpt-5"),
        ("anthropic/claude-opus-5", "anthropic_messages/claude-opus-5"),
        ("google/gemini-3-pro", "gemini/gemini-3-pro"),
        ("ollama/qwen3:8b", "ollama_native/qwen3:8b"),
        ("claude-cli/opus", "claude_code_cli/opus"),
        ("lba/m1", "lab/m1"),
        ("lap/org/m1", "lab/org/m1"),
        ("gemni/pro", "gemini/pro"),
        ("qwen/qwen3", None),
        ("meta-llama/Llama-4", None),
        ("hf.co/x/y:Q4", None),
        ("deepseek-ai/DeepSeek-V4", None),
        ("m1", None),
        ("openai/", None),
    ],
)
def test_another_meaning_of_a_name(model, meant):
    """A first part that OpenClaw knows, or that is nearly a provider of ours, may have been meant as one."""
    names = [*PROVIDERS, "gemini", "openai_responses", "lab"]
    target = Target(provider="ollama_native", model=model)

    read = f" The name was read as the model {model} of ollama_native. Did you mean {meant}?" if meant else ""
    assert parse_targets([model], providers=names, default_providers=["ollama_native"]) == (target,)
    assert how_read(target, names) == read


def test_a_file_is_labeled_without_its_folders():
    """Two files of one name could not be told apart."""
    assert labels("/models/qwen.gguf@low") == ["ollama_openai/qwen.gguf@low"]
    with pytest.raises(TargetError, match=r'^"b/qwen\.gguf": another of these files has the same name'):
        labels("b/qwen.gguf", "a/qwen.gguf")


def test_no_default_provider():
    """A spec without a provider needs a default one."""
    with pytest.raises(TargetError) as caught:
        labels("a", providers=())

    assert str(caught.value) == '"a": no provider is set. Write provider/a.'
    assert labels("ollama_openai/a", providers=()) == ["ollama_openai/a"]


@given(
    provider=st.sampled_from(PROVIDERS),
    model=st.from_regex(r"[A-Za-z0-9_.:/@\[\]*-]{1,12}", fullmatch=True),
    level=st.sampled_from([None, *THINKING_LEVELS]),
)
def test_a_label_parses_back_to_its_target(provider, model, level):
    """A target's label parses to the target, so that specs can be sent to workers."""
    target = Target(provider=provider, model=model, thinking_level=level)
    names_a_level = level is None and model.endswith(tuple(f"@{one}" for one in THINKING_LEVELS))

    if not names_a_level:
        assert labels(target.label) == [target.label]
        assert parse_targets([target.label], providers=PROVIDERS, default_providers=[]) == (target,)


@given(spec=st.text())
def test_any_spec_is_targets_or_an_error(spec):
    """No text leads to anything but visible targets, each once, or a `TargetError`."""
    try:
        found = labels(spec)
    except TargetError:
        return
    assert found
    assert len(set(found)) == len(found)
    assert all(label.isprintable() for label in found)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        pytest.param("*", ["qwen3:8b", "llama3.2:3b", "hf.co/x/qwen"], id="all"),
        pytest.param("qwen*", ["qwen3:8b"], id="prefix"),
        pytest.param("*qwen*", ["qwen3:8b", "hf.co/x/qwen"], id="across-slashes"),
        pytest.param("QWEN*", [], id="case-counts"),
        pytest.param("gone", ["gone"], id="a-plain-name-is-unchanged"),
    ],
)
def test_expand(model, expected):
    """A wildcard becomes the served models that match, in their order, each once, level and provider kept."""
    target = Target(provider="ollama_openai", model=model, thinking_level="low")

    found = expand(target, ["qwen3:8b", "llama3.2:3b", "qwen3:8b", "hf.co/x/qwen"])

    assert [one.model for one in found] == expected
    assert {(one.provider, one.thinking_level) for one in found} <= {("ollama_openai", "low")}


@pytest.mark.parametrize("name", ["a b", "a,b", "a\n", "q*", "m@low"])
def test_a_served_name_that_no_spec_can_hold(name):
    """A wildcard never expands to a name that a worker could not parse."""
    found = expand(Target(provider="ollama_openai", model="*"), ["fine", name])

    assert [one.model for one in found] == ["fine"]
