"""The installed OpenClaw, started by the provider `openclaw_agent`, `capture-tools` and `route --check`.

- how it is started, and in which folders: `call.py`, `installed.py`, `output.py`
- a prompt or a world through its agent: `relay.py` hears the model, `disk.py` and `shell.py` play the world,
  `turns.py` and `result.py` read what came
- what it sends to a model: `capture.py`, `endpoint.py`, `surfaces.py`, `users_config.py`
- whether it agrees to a patch: `patching.py`, `ruling.py`, `files.py`, `config_text.py`
"""
