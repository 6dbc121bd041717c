"""Summary → text."""
