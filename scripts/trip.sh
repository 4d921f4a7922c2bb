#!/usr/bin/env bash
# Usage: scripts/trip.sh [-list]
# Prints how many files and functions of this module run for one command of a client.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${GO:-go}" build -cover -covermode=atomic -coverpkg=./... -buildvcs=false -o "$work/trip" ./test/trip
mkdir "$work/counters"
GOCOVERDIR=$work/counters "$work/trip" "$@"
