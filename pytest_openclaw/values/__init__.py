"""Defines values and their JSON: prompts, targets, replies, faults, rows, settings, protocols."""
