"""Engines without llama.cpp: `FAKE` is ready at once and ends like the real one; each other fails in one way."""

import sys


def engine_of(code):
    return (sys.executable, "-P", "-c", code)


FAKE = engine_of("""
import json, sys
weights = json.loads(sys.argv[1])["weights"]
print("loaded", weights, file=sys.stderr, flush=True)
if weights.endswith("broken"):
    sys.exit(3)
print("READY " + json.dumps({"url": "http://127.0.0.1:9", "token": "dummy"}), flush=True)
sys.stdin.read()
""")


def never_ready(file):
    return engine_of(f"""
import os, sys, time
print(os.getpid(), file=sys.stderr, flush=True)
print(os.getpid(), file=open({str(file)!r}, "w"), flush=True)
time.sleep(600)
""")


def failing(words, status=1):
    return engine_of(f"import sys; print({words!r}, file=sys.stderr); sys.exit({status})")
