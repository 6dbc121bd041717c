"""Features: each module has everything of one feature, its numbers, its words and its command.

A feature can be removed with its name in `BUILTIN`: nothing outside of this folder imports one.
"""

BUILTIN = {
    "capture": ("capture-tools",),
    "comparison": ("compare",),
    "diagnosing": (),  # `--openclaw-diagnose` of a session
    "dry_run": (),  # `--openclaw-dry-run` of a session
    "export": ("export",),
    "gates": ("gate",),
    "history": ("history",),
    "merging": ("merge",),
    "pages": ("report",),  # of all runs: with `history`
    "rescoring": ("rescore",),
    "routing": ("route",),
}
"""Each feature with the commands that it adds."""
