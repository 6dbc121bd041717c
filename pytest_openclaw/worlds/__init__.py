"""Worlds of scripted exchanges: their files, tools and shell. Nothing in them is real."""
