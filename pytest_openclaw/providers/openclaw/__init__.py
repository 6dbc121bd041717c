"""The installed OpenClaw, started by the provider `openclaw_agent` and by `capture-tools`.

- starting it, in its own folders, and reading its result: `call.py`
- the world on disk, and the program in the place of a shell: `workspace.py`
- capturing its requests to a model: `capture.py`
"""
