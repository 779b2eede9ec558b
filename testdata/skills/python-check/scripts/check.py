#!/usr/bin/env python3
"""Finds mistakes in Python files that compile but bite later.

    check.py FILE...

Prints FILE:LINE: RULE: what is wrong. Exit code: 0 none, 1 some, 2 wrong use.
"""

import ast
import sys


def findings(tree):
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            for default in node.args.defaults + [d for d in node.args.kw_defaults if d]:
                if isinstance(default, (ast.List, ast.Dict, ast.Set)):
                    yield default.lineno, "mutable-default", "a mutable default is shared by all calls"
        elif isinstance(node, ast.ExceptHandler) and node.type is None:
            yield node.lineno, "bare-except", "except: also catches KeyboardInterrupt and SystemExit"
        elif isinstance(node, ast.Compare):
            for op, right in zip(node.ops, node.comparators):
                if isinstance(op, (ast.Eq, ast.NotEq)) and isinstance(right, ast.Constant) and right.value is None:
                    yield node.lineno, "compare-none", "compare with None by is or is not"
        elif isinstance(node, ast.Assert) and isinstance(node.test, ast.Tuple) and node.test.elts:
            yield node.lineno, "assert-tuple", "an assertion of a tuple is always true"


def check(path):
    try:
        with open(path, "rb") as f:
            tree = ast.parse(f.read(), path)
    except (SyntaxError, ValueError) as err:
        return [(getattr(err, "lineno", None) or 1, "syntax", str(err))]
    return sorted(findings(tree))


def main(paths):
    if not paths:
        print("usage: check.py FILE...", file=sys.stderr)
        return 2
    found = 0
    for path in paths:
        for line, rule, text in check(path):
            print(f"{path}:{line}: {rule}: {text}")
            found = 1
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
