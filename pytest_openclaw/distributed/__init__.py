"""Runs a session on xdist workers: controller, worker, messages, scheduling."""
