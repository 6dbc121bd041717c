"""What follows from the numbers, in words: each target's recommendation, gates, and the summary of a run."""
