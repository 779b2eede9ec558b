#!/usr/bin/env bash
# Prints the changed files of a git diff, largest first, and the totals.
#   diff-stats.sh [BASE]     BASE defaults to HEAD
set -euo pipefail

base=${1:-HEAD}
git rev-parse --verify --quiet "$base^{commit}" >/dev/null || {
	echo "diff-stats: no such commit: $base" >&2
	exit 2
}

git diff --numstat "$base" -- | awk -F '\t' '
	$1 == "-" { print 0 "\t" $3 " (binary)"; files++; next }
	{ print $1 + $2 "\t+" $1 " -" $2 "\t" $3; added += $1; removed += $2; files++ }
	END { printf "total\t%d files, +%d -%d\n", files, added, removed }
' | sort -t "$(printf '\t')" -k1,1nr
