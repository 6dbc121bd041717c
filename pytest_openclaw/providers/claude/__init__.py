"""The installed Claude CLI, started by the provider `claude_code_cli`.

- how it is started, and in which folder: `call.py`
- the tools that it is given, and scripted exchanges with them: `tools.py`, `turns.py`
- what it says: `stream_json.py`, `faults.py`, `usage.py`
"""
