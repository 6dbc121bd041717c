"""The built-in validators, and one of them from the keys of a suite."""

from pytest_openclaw.judging.registry import BUILTIN, build_validator

REGISTRY = {validator.type: validator for validator in BUILTIN}


def build(kind, **keys):
    return build_validator({"type": kind, **keys}, REGISTRY)
