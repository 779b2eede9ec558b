#!/usr/bin/env python3
"""Fill a template with JSON data and print the result.

    fill.py TEMPLATE DATA.json

{{name}} stands for a value. The lines between {{#name}} and {{/name}} are left out
when the list `name` is empty; within them a line that begins with {{*}} is repeated
for each item, whose own names come first. A name that is nowhere is an error.
"""

import json
import re
import sys

NAME = re.compile(r"\{\{(\w+)\}\}")


def fill_line(line, scopes):
    def value(match):
        for scope in scopes:
            if match[1] in scope:
                return str(scope[match[1]])
        raise KeyError(match[1])

    return NAME.sub(value, line)


def fill(template, data):
    out, section = [], None
    for line in template.splitlines(keepends=True):
        mark = re.fullmatch(r"\{\{([#/])(\w+)\}\}\s*", line)
        if mark and mark[1] == "#":
            section = data[mark[2]]
        elif mark:
            section = None
        elif section is None:
            out.append(fill_line(line, [data]))
        elif section and line.startswith("{{*}}"):
            out.extend(fill_line(line[len("{{*}}"):], [item, data]) for item in section)
        elif section:
            out.append(fill_line(line, [data]))
    return "".join(out)


def main(args):
    if len(args) != 2:
        sys.exit("usage: fill.py TEMPLATE DATA.json")
    with open(args[0], encoding="utf-8") as f:
        template = f.read()
    with open(args[1], encoding="utf-8") as f:
        data = json.load(f)
    try:
        sys.stdout.write(fill(template, data))
    except KeyError as missing:
        sys.exit(f"the data lacks {missing}")


if __name__ == "__main__":
    main(sys.argv[1:])
