"""Runs the embedded engine and its models: llama.cpp in a process of its own.

`provider` is the provider; `engine` starts, watches and ends the process, whose program is `server`;
`weights` finds the files.
"""
