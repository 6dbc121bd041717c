"""The installed OpenClaw, started by the provider `openclaw_agent` and by `capture-tools`.

- starting it, in its own folders, and reading its result: `call.py`
- capturing its requests to a model: `capture.py`
"""
