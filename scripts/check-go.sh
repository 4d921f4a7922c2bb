#!/usr/bin/env bash
# Usage: scripts/check-go.sh
# Ends with one clear line when there is no Go, or one older than go.mod asks
# for: the compiler's own messages about that are many and speak of other things.
set -euo pipefail
cd "$(dirname "$0")/.."

wanted=$(awk '$1 == "go" { print $2; exit }' go.mod)

if ! command -v go >/dev/null; then
	echo "seqproxy needs Go $wanted or newer, and there is no go in PATH: https://go.dev/dl/" >&2
	exit 1
fi

# older A B: is version A older than B? sort -V is not on every macOS.
older() {
	local IFS=.
	# shellcheck disable=SC2206 # split at the dots
	local a=($1) b=($2) i x y
	for i in 0 1 2; do
		x=${a[i]:-0} y=${b[i]:-0}
		if [ "$x" -ne "$y" ]; then
			[ "$x" -lt "$y" ]
			return
		fi
	done
	return 1
}

# Asked in / so that go.mod does not come into it: "go1.26.1", "go1.27rc1" or
# "devel ...", which is taken for new enough.
local_go=$(cd / && GOTOOLCHAIN=local go env GOVERSION)
version=$(sed -n 's/^go\([0-9][0-9.]*[0-9]\).*/\1/p' <<<"$local_go")
if [ -z "$version" ] || ! older "$version" "$wanted"; then
	exit 0
fi
# Go 1.21 and newer can fetch a newer toolchain by themselves, unless told not to.
if ! older "$version" 1.21 && go version >/dev/null 2>&1; then
	exit 0
fi
echo "seqproxy needs Go $wanted or newer, this is $local_go ($(command -v go)): https://go.dev/dl/" >&2
exit 1
