#!/usr/bin/env bash
# Prints added lines of a git diff that deserve a second look, as FILE:LINE: RULE: TEXT.
#   risky-lines.sh [BASE]    BASE defaults to HEAD
# Exit code: 0 none, 1 some, 2 no such commit.
set -euo pipefail

base=${1:-HEAD}
git rev-parse --verify --quiet "$base^{commit}" >/dev/null || {
	echo "risky-lines: no such commit: $base" >&2
	exit 2
}

git diff --unified=0 --no-color --no-ext-diff --no-prefix "$base" -- | awk '
	function report(rule) {
		printf "%s:%d: %s: %s\n", file, line, rule, text
		found = 1
	}
	/^\+\+\+ / { file = substr($0, 5); next }
	/^@@ / {
		match($0, /\+[0-9]+/)
		line = substr($0, RSTART + 1, RLENGTH - 1) - 1
		next
	}
	/^\+/ {
		line++
		text = substr($0, 2)
		sub(/^[ \t]+/, "", text)
		lower = tolower(text)
		if (text ~ /^(<<<<<<<|>>>>>>>)/) report("merge-marker")
		if (lower ~ /(password|passwd|secret|token|api_?key)[a-z_]*["\047]?[ \t]*(:=|[=:])[ \t]*["\047][^"\047]+["\047]/) report("secret")
		if (text ~ /(TODO|FIXME|XXX)/) report("unfinished")
		if (lower ~ /verify[ \t]*=[ \t]*false|insecureskipverify[ \t]*:[ \t]*true/) report("no-tls-check")
		if (text ~ /(^|[^A-Za-z_.])eval[ \t]*\(/ || text ~ /shell[ \t]*=[ \t]*True/) report("code-from-text")
	}
	END { exit found }
'
