"""The installed OpenClaw, started by the provider `openclaw_agent` and by `capture-tools`.

- starting it, in its own folders: `call.py`
- running a prompt or a world through its agent: `relay.py` records the model's answers and makes the reply,
  `workspace.py` plays the world
- capturing its requests to a model: `capture.py`
"""
