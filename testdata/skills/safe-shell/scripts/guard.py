#!/usr/bin/env python3
"""A hook before shell commands: blocks rm with both -r and -f, however they are spelled.

Reads the call as JSON on stdin and prints a decision, or nothing to let it pass.
"""

import json
import shlex
import sys

ENDS = set(";&|()\n`")  # characters that end a command within a line


def words_of(line):
    lexer = shlex.shlex(line.replace("\n", " ; "), posix=True, punctuation_chars=";&|()`")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:  # unbalanced quotes: look at the bare words
        return line.replace("'", " ").replace('"', " ").split()


def deletes_recursively(words):
    """Whether some rm among the words has both a recursive and a force flag."""
    recursive = force = in_rm = False
    for word in words:
        if set(word) <= ENDS:
            recursive = force = in_rm = False
        elif word.rsplit("/", 1)[-1].lstrip("\\") == "rm":
            recursive, force, in_rm = False, False, True
        elif in_rm and word.startswith("-"):
            short = "" if word.startswith("--") else word[1:]
            recursive |= "r" in short or "R" in short or "--recursive".startswith(word) and len(word) > 2
            force |= "f" in short or "--force".startswith(word) and len(word) > 2
            if recursive and force:
                return True
    return False


def dangerous(line, depth=0):
    words = words_of(line)
    if deletes_recursively(words):
        return True
    # sh -c 'rm -rf x': a word that is itself a line of shell
    return depth < 5 and any(dangerous(w, depth + 1) for w in words if w != line and any(c.isspace() for c in w))


def main():
    tool_input = json.load(sys.stdin).get("tool_input") or {}
    command = tool_input.get("command", tool_input.get("script", ""))
    args = tool_input.get("args") or []
    line = command if isinstance(command, str) else shlex.join(map(str, command))
    if args:
        line += " " + (args if isinstance(args, str) else shlex.join(map(str, args)))
    if dangerous(line):
        print(json.dumps({"decision": "block", "reason": "rm -rf is not allowed here; delete named files one by one"}))


if __name__ == "__main__":
    main()
