"""Runs on disk: checked, joined into one, judged anew, and written again."""
