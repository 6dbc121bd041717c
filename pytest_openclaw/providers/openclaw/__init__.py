"""The installed OpenClaw, started by the provider `openclaw_agent` and by `capture-tools`.

- starting it, in its own folders: `call.py`, `installed.py`
- running a prompt or a world through its agent: `relay.py` records the model's answers, `disk.py` and
  `played_shell.py` play the world, `recorded_reply.py` and `envelope.py` make the reply
- capturing what it sends to a model: `capture.py`, `capture_configs.py`
"""
