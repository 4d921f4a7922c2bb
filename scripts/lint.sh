#!/usr/bin/env bash
# Usage: scripts/lint.sh
# Formatting, what scripts name, and static checks with the tools that tools/go.mod pins.
set -euo pipefail
cd "$(dirname "$0")/.."

tool() {
	"${GO:-go}" tool -modfile=tools/go.mod "$@"
}

scripts/test-matrix.sh -check

echo "gofumpt"
unformatted=$(tool gofumpt -l .)
if [ -n "$unformatted" ]; then
	printf 'not formatted (make fmt does it):\n%s\n' "$unformatted" >&2
	exit 1
fi

echo "go vet"
"${GO:-go}" vet ./...

echo "staticcheck"
tool staticcheck ./...
