#!/bin/sh
# Words by how often they occur: words.sh [FILE...]
cat "$@" | tr -cs '[:alnum:]' '\n' | tr '[:upper:]' '[:lower:]' | grep . | sort | uniq -c | sort -k1,1nr -k2 | sed 's/^ *//'
