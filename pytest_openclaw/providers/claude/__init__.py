"""The installed Claude CLI: how it is started (`command_line.py`), and its output (`stream.py`)."""
