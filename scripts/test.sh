#!/usr/bin/env bash
# Usage: scripts/test.sh [-race] [-short] PACKAGE...
# Runs go test on packages, the long ones first and $TESTPROCS at a time (4). Most tests
# with servers wait more than they compute, so the largest packages are divided into parts,
# each of which is a process of its own. Prints what go test prints, for each package or
# part when it has ended. Ends with 1 if one failed. What one of them may take is in
# $TESTTIMEOUT. Of ./sequence only the tests in the files $SEQUENCE_FILES run, if that is set.
set -euo pipefail
cd "$(dirname "$0")/.."

flags=()
while [[ ${1:-} == -* ]]; do
	flags+=("$1")
	shift
done

# test_part PACKAGE PART PARTS FLAG...
test_part() {
	local package=$1 part=$2 parts=$3 run=() log status=0
	if [ "$parts" -gt 1 ]; then
		local files=("./${package#seqproxy/}"/*_test.go)
		[ "$package" != seqproxy/sequence ] || [ -z "${SEQUENCE_FILES:-}" ] || files=($SEQUENCE_FILES)
		run=(-run "^($(sed -n 's/^func \(\(Test\|Fuzz\)[A-Za-z0-9_]*\)(.*/\1/p' "${files[@]}" |
			awk -v part="$part" -v parts="$parts" 'NR % parts == part - 1' | paste -sd '|'))\$")
	fi
	log=$("${GO:-go}" test -p 1 -timeout "${TESTTIMEOUT:-45m}" "${@:4}" "${run[@]}" "$package" </dev/null 2>&1) || status=1
	# One at a time: a line in the middle of another's would hide which test failed.
	until mkdir "$printing" 2>/dev/null; do sleep 0.05; done
	echo "$log"
	rmdir "$printing"
	return "$status"
}
export -f test_part
export printing
printing=$(mktemp -d)/printing
trap 'rm -rf "${printing%/printing}" ${memory:+"$memory"}' EXIT

# Servers have their data in memory where there is enough: that halves what their starts cost.
# A server that is killed loses nothing that it would have on a disk. A machine that stops is
# no matter of these tests.
memory=
if [ -z "${SEQPROXY_TEST_DIR:-}" ] && [ -w /dev/shm ] &&
	[ "$(df -Pk /dev/shm | awk 'END { print $4 }')" -gt 4000000 ] &&
	[ "$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo)" -gt 8000000 ]; then
	memory=$(mktemp -d /dev/shm/seqproxy-XXXXXX)
	export SEQPROXY_TEST_DIR=$memory
fi

"${GO:-go}" list "$@" | awk '
	BEGIN {
		parts["seqproxy/proxy"] = 4; parts["seqproxy/sequence"] = 4; parts["seqproxy/cmd/seqproxy"] = 2
		first["seqproxy/test/torture"] = 1
	}
	{ n = parts[$1] ? parts[$1] : 1; for (i = 1; i <= n; i++) print (n > 1 || first[$1] ? 0 : 1), $1, i, n }' |
	sort -s -n -k 1,1 | cut -d ' ' -f 2- |
	xargs -P "${TESTPROCS:-4}" -I JOB bash -c 'set -u; test_part JOB "$@"' test "${flags[@]}"
