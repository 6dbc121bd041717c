"""BFCL's own checker, from `bfcl-eval` without its dependencies, which dummies replace."""

import os
import sys
import tempfile
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from importlib.util import spec_from_loader
from types import ModuleType, SimpleNamespace
from unittest.mock import patch

VERSION = "2026.3.23"
NOT_NEEDED = {
    "dotenv", "filelock", "openai", "overrides", "pandas", "requests", "tenacity", "tqdm",
    "tree_sitter", "tree_sitter_java", "tree_sitter_javascript",
}  # fmt: skip
MODEL = "any"
LANGUAGES = {"simple_java": "JAVA", "simple_javascript": "JAVASCRIPT"}
HANDLERS = {
    "python": ("api_inference.openai_completion", "OpenAICompletionsHandler"),
    "qwen": ("local_inference.qwen_fc", "QwenFCHandler"),
    "llama": ("local_inference.llama_3_1", "LlamaHandler_3_1"),
}
"""For each dialect of calls written as text, the handler that decodes it."""


class Anything:
    """A dummy: may be called, subclassed and used as a decorator, and has every attribute."""

    def __new__(cls, *args, **_):
        return args[0] if len(args) == 1 and callable(args[0]) else super().__new__(cls)

    def __call__(self, *args, **_):
        return Anything(*args)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()


class DummyModule(ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything


class Dummies:
    """Finds a dummy for each package that is not needed."""

    def find_spec(self, name, *_):
        return spec_from_loader(name, self, is_package=True) if _is_not_needed(name) else None

    def create_module(self, spec):
        return DummyModule(spec.name)

    def exec_module(self, module):
        pass


def check(category, entry, answer, reply):
    runner, formats, languages = _bfcl()
    handler = SimpleNamespace(decode_ast=_decoder(reply.dialect))
    written = reply.text
    if reply.dialect == "wire":
        written = [{name: arguments} for name, arguments in reply.calls] or reply.text
    if answer is None:
        found = runner._evaluate_single_relevance_entry(handler, entry["id"], written, entry, MODEL, category)
    else:
        language = LANGUAGES.get(category, "PYTHON")
        kinds = languages[language], formats[language]
        case = entry["id"], written, answer, entry
        found = runner._evaluate_single_ast_entry(handler, *case, MODEL, category, *kinds)
    return bool(found["valid"])


@cache
def _decoder(dialect):
    with _dummies():
        module, name = HANDLERS["python" if dialect == "wire" else dialect]
        handler = getattr(import_module(f"bfcl_eval.model_handler.{module}"), name)
    # Only what `decode_ast` reads is set: a handler as a whole would need its client.
    self = SimpleNamespace(
        is_fc_model=dialect == "wire", _extract_tool_calls=getattr(handler, "_extract_tool_calls", None)
    )
    return partial(handler.decode_ast, self)


@cache
def _bfcl():
    with _dummies():
        runner = import_module("bfcl_eval.eval_checker.eval_runner")
        enums = import_module("bfcl_eval.constants.enums")
    return runner, enums.ReturnFormat, enums.Language


@contextmanager
def _dummies():
    """Put the dummies in place, and remove them for everything else."""
    clients = ModuleType("bfcl_eval.constants.model_config")
    vars(clients)["MODEL_CONFIG_MAPPING"] = {MODEL: SimpleNamespace(underscore_to_dot=True)}
    before = {name: sys.modules.pop(name) for name in [*sys.modules] if _is_not_needed(name)}
    finder = Dummies()
    sys.meta_path.insert(0, finder)  # type: ignore[arg-type]
    sys.modules.setdefault(clients.__name__, clients)
    try:
        with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, BFCL_PROJECT_ROOT=folder):
            yield  # the import makes folders for results there
    finally:
        sys.meta_path.remove(finder)  # type: ignore[arg-type]
        for name in [name for name in sys.modules if _is_not_needed(name)]:
            del sys.modules[name]
        sys.modules.update(before)


def _is_not_needed(name):
    return name.partition(".")[0] in NOT_NEEDED
