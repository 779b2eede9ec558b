#!/bin/sh
# A summary of a text file: summarize.sh FILE
[ -f "$1" ] || { echo "summarize.sh: no file $1" >&2; exit 2; }
echo "name: $(basename "$1")"
echo "lines: $(wc -l < "$1" | tr -d ' ')"
echo "words: $(wc -w < "$1" | tr -d ' ')"
echo "bytes: $(wc -c < "$1" | tr -d ' ')"
echo "begins:"
head -n 3 "$1"
