"""The installed Claude CLI, started by the provider `claude_code_cli`.

- how it is started, and in which folder: `command_line.py`
- the tools that it is given, and scripted exchanges with them: `tools.py`, `played_stream.py`
- what it says: `stream_json.py`, `last_line.py`, `usage.py`
"""
