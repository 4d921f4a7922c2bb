#!/usr/bin/env bash
# Usage: FUZZTIME=60s scripts/fuzz.sh [pattern]
# Runs every fuzz target (or those whose name matches the pattern), one after
# the other, for FUZZTIME each. A finding is kept in the package's testdata/fuzz
# and is from then on a test case.
set -euo pipefail
cd "$(dirname "$0")/.."

pattern=${1:-.}
fuzztime=${FUZZTIME:-60s}

# Lines of "import path, target". The packages are read, not compiled, so that
# a target is found wherever it is.
targets() {
	local package dir file
	# shellcheck disable=SC2016 # the template's own dollar signs
	"${GO:-go}" list -f '{{$p := .}}{{range .TestGoFiles}}{{$p.ImportPath}} {{$p.Dir}} {{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$p.ImportPath}} {{$p.Dir}} {{.}}{{"\n"}}{{end}}' ./... |
		while read -r package dir file; do
			if [ -n "$file" ]; then
				sed -n "s|^func \(Fuzz[A-Za-z0-9_]*\)(.*|$package \1|p" "$dir/$file"
			fi
		done
}

found=$(targets | grep -E -- "$pattern" || true)
if [ -z "$found" ]; then
	echo "no fuzz target matches $pattern" >&2
	exit 1
fi
while read -r package target; do
	echo "== $package $target for $fuzztime"
	"${GO:-go}" test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" "$package" </dev/null
done <<<"$found"
