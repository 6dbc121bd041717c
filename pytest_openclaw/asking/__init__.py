"""Gets replies ahead of the tests, within limits and budget: asker process, retries, scripted exchanges."""
