"""Reads a local server's facts about a model, to distinguish two models that are served under one name.

Each request is small, bounded and optional: Ollama answers some, llama.cpp others, and a server may answer
none of them. A path on the server's machine is never recorded.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, Protocol

from pytest_openclaw.providers.json_values import count_in, object_in, objects_in
from pytest_openclaw.values.faults import CallFailed

if TYPE_CHECKING:
    from pytest_openclaw.providers.address import Address
    from pytest_openclaw.util.json_types import JsonObject

QUESTION_TIMEOUT_S = 2.0
_SERVERS = {"llamacpp": "llama.cpp", "vllm": "vllm", "sglang": "sglang"}
"""Who owns a model in a server's list → the server."""
# An expression or a statement of a Jinja template, or an action of Ollama's Go template.
_TEMPLATE_CODE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_TOOLS_IN_CODE = re.compile(r"(?<![\w'\"])tools\b|\.Tools\b")


class Fetch(Protocol):
    """Queries the server about itself; see `OverHttp.fetch`."""

    async def __call__(self, url: str, body: JsonObject | None = None, *, timeout_s: float) -> JsonObject:
        """Return the object in the server's answer, or raise `CallFailed`."""
        ...


async def fingerprint(fetch: Fetch, address: Address, model: str) -> JsonObject:
    """Return the server's facts under our names, without those that it does not report.

    The names are `server`, `server_version`, `digest`, `quantisation`, `parameter_size`,
    `parameter_count`, `family`, `capabilities`, `context_length`, `context_length_trained`,
    `template_sha256`, `template_shows_tools` and `parameters` (of Ollama's model file).
    """
    root = address.root_url
    models, version, show, tags, props = await ask_all(
        fetch,
        (f"{address.base_url}/models", None),
        (f"{root}/api/version", None),
        (f"{root}/api/show", {"model": model}),
        (f"{root}/api/tags", None),
        (f"{root}/props", None),
    )
    found = (
        of_models(models, model)
        | of_props(props)
        | of_version(version)
        | of_show(show)
        | of_tags(tags, model)
    )
    return _said(**found)


async def ollama_fingerprint(fetch: Fetch, root: str, model: str) -> JsonObject:
    """Return the facts of Ollama's own API; `size_bytes` and `vram_bytes` are of the loaded model."""
    version, show, tags, running = await ask_all(
        fetch,
        (f"{root}/api/version", None),
        (f"{root}/api/show", {"model": model}),
        (f"{root}/api/tags", None),
        (f"{root}/api/ps", None),
    )
    return _said(**of_version(version), **of_show(show), **of_tags(tags, model), **of_ps(running, model))


def of_models(answer: JsonObject, model: str) -> JsonObject:
    """Read `/v1/models`; llama.cpp has the model's sizes under `meta`, vLLM its context."""
    entry = next((entry for entry in objects_in(answer.get("data")) if _names(entry, model)), None)
    if entry is None:
        return {}
    meta = object_in(entry.get("meta"))
    return {
        "server": _SERVERS.get(str(entry.get("owned_by"))),
        "quantisation": meta.get("ftype"),
        "parameter_count": meta.get("n_params"),
        "context_length": meta.get("n_ctx") or count_in(entry.get("max_model_len")),
        "context_length_trained": meta.get("n_ctx_train"),
    }


def of_props(answer: JsonObject) -> JsonObject:
    """Read llama.cpp's `/props`, except for its path."""
    settings = object_in(answer.get("default_generation_settings"))
    template = answer.get("chat_template")
    supported = object_in(answer.get("chat_template_caps")).get("supports_tools")
    return _said(
        server_version=answer.get("build_info"),
        quantisation=answer.get("model_ftype"),
        context_length=settings.get("n_ctx"),
        template_sha256=_sha256(template),
        template_shows_tools=supported if isinstance(supported, bool) else shows_tools(template),
    )


def of_version(answer: JsonObject) -> JsonObject:
    """Read Ollama's `/api/version`."""
    version = answer.get("version")
    return {"server": "ollama", "server_version": version} if isinstance(version, str) else {}


def of_show(answer: JsonObject) -> JsonObject:
    """Read Ollama's `/api/show`; its `model_info` has keys such as `llama.context_length`.

    Its `capabilities` are words such as `completion`, `tools`, `thinking` and `vision`. They
    count before the template: newer models are rendered by Ollama's own code.
    """
    details = object_in(answer.get("details"))
    info = object_in(answer.get("model_info"))
    trained = [value for key, value in info.items() if key.endswith(".context_length")]
    listed = answer.get("capabilities")
    capabilities = sorted(one for one in listed if isinstance(one, str)) if isinstance(listed, list) else []
    return _said(
        quantisation=details.get("quantization_level"),
        parameter_size=details.get("parameter_size"),
        family=details.get("family"),
        capabilities=capabilities or None,
        context_length_trained=trained[0] if trained else None,
        template_sha256=_sha256(answer.get("template")),
        template_shows_tools="tools" in capabilities if capabilities else shows_tools(answer.get("template")),
        parameters=answer.get("parameters"),
    )


def of_tags(answer: JsonObject, model: str) -> JsonObject:
    """Read the digest of a model from Ollama's `/api/tags`."""
    return _said(digest=_entry(answer, model).get("digest"))


def of_ps(answer: JsonObject, model: str) -> JsonObject:
    """Read how a model is loaded from Ollama's `/api/ps`; older versions do not report the context."""
    entry = _entry(answer, model)
    return _said(
        context_length=count_in(entry.get("context_length")),
        size_bytes=count_in(entry.get("size")),
        vram_bytes=count_in(entry.get("size_vram")),
    )


async def ask_all(fetch: Fetch, *questions: tuple[str, JsonObject | None]) -> list[JsonObject]:
    """Send one request after the other, since a local server handles one at a time.

    A failed one yields {}; after a timeout no more are sent.
    """
    answers: list[JsonObject] = [{} for _ in questions]
    for number, (url, body) in enumerate(questions):
        try:
            answers[number] = await fetch(url, body, timeout_s=QUESTION_TIMEOUT_S)
        except CallFailed as failed:
            if failed.fault.failure_type == "timeout":
                break
    return answers


def shows_tools(template: Any) -> bool | None:
    """Whether a chat template refers to the offered tools; None if there is no template."""
    if not isinstance(template, str) or not template:
        return None
    return any(_TOOLS_IN_CODE.search(code) for code in _TEMPLATE_CODE.findall(template))


def _entry(answer: JsonObject, model: str) -> JsonObject:
    """Return the model's entry in one of Ollama's lists; a name without a tag means `:latest`."""
    entries = objects_in(answer.get("models"))
    for name in (model, f"{model}:latest"):
        for entry in entries:
            if name in (entry.get("name"), entry.get("model")):
                return entry
    return {}


def _names(entry: JsonObject, model: str) -> bool:
    aliases = entry.get("aliases")
    return model == entry.get("id") or (isinstance(aliases, list) and model in aliases)


def _said(**found: Any) -> JsonObject:
    """Return the known values, which may replace those of another answer."""
    return {name: value for name, value in found.items() if value not in (None, "")}


def _sha256(text: Any) -> str | None:
    return (
        hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
        if isinstance(text, str) and text
        else None
    )
