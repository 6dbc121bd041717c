"""The installed OpenClaw, started by the provider `openclaw_agent`, `capture-tools` and `route --check`.

- starting it, in its own folders: `call.py`, `installed.py`
- running a prompt or a world through its agent: `relay.py` records the model's answers, `disk.py` and
  `played_shell.py` play the world, `recorded_reply.py` and `envelope.py` make the reply,
  `past.py` has the conversation before the prompt
- capturing what it sends to a model: `capture.py`, `endpoint.py`, `surface_configs.py`, `users_config.py`
- checking a patch: `patching.py`, `ruling.py`, `config_files.py`, `config_text.py`
"""
