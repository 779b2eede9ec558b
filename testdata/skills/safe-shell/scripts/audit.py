#!/usr/bin/env python3
"""A hook after tool calls: adds one line to audit.jsonl in the workspace.

Reads the call as JSON on stdin and prints nothing, so the answer stays as it is.
"""

import datetime
import json
import os
import sys


def main():
    call = json.load(sys.stdin)
    line = json.dumps({
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "session": call.get("session_id"),
        "tool": call.get("tool_name"),
        "answer_characters": len(call.get("tool_output") or ""),
    })
    path = os.path.join(os.environ.get("PROJECT_DIR") or call.get("cwd") or ".", "audit.jsonl")
    # One write to a file opened for appending: lines of concurrent calls stay whole.
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(log, (line + "\n").encode())
    finally:
        os.close(log)


if __name__ == "__main__":
    main()
