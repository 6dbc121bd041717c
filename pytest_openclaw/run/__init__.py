"""One run: asking the targets, recording what they said, and the directory it is kept in."""
