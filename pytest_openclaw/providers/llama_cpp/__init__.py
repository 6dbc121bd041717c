"""The embedded engine: its provider, the program of its process (`server`), and the files (`weights`)."""
