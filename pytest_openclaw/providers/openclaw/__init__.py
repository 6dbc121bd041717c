"""The installed OpenClaw, started by the provider `openclaw_agent`, `capture-tools` and `route --check`.

- starting it, in its own folders: `call.py`, `installed.py`, `output.py`
- running a prompt or a world through its agent: `relay.py` records the model's answers, `disk.py` and
  `shell.py` play the world, `turns.py` and `result.py` make the reply
- capturing what it sends to a model: `capture.py`, `endpoint.py`, `surfaces.py`, `users_config.py`
- checking a patch: `patching.py`, `ruling.py`, `files.py`, `config_text.py`
"""
