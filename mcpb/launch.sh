#!/bin/sh
# Starts the program for this machine. A bundle is made for every system at once, and its format knows systems but no
# processors; some clients unpack it without modes, so the program may have lost its own.
set -eu
here=$(dirname "$0")
case $(uname -s) in
  Linux) os=linux ;;
  Darwin) os=darwin ;;
  *) echo "perstack-base: this bundle has no program for $(uname -s)" >&2; exit 1 ;;
esac
case $(uname -m) in
  x86_64 | amd64) arch=amd64 ;;
  arm64 | aarch64) arch=arm64 ;;
  *) echo "perstack-base: this bundle has no program for $(uname -m)" >&2; exit 1 ;;
esac
program=$here/perstack-base-$os-$arch
[ -x "$program" ] || chmod +x "$program"
exec "$program" "$@"
