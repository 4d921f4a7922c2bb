#!/usr/bin/env bash
# Usage: scripts/test.sh [-race] [-short] PACKAGE...
# Runs go test on packages, $TESTPROCS at a time: 6, or 4 with -race, which computes more. Most
# tests with servers wait more than they compute, so the largest packages are built once and
# divided into parts, each of which is a process of its own. Parts run first. Prints what go
# test prints, for each package or part when it has ended. Does not end with 0 if one failed. What one
# of them may take is in $TESTTIMEOUT. Of ./sequence only the tests in the files
# $SEQUENCE_FILES run, if that is set.
set -euo pipefail
cd "$(dirname "$0")/.."

export TEST_FLAGS='' RUN_FLAGS='' # of go test, and of a program that it has built
procs=6
while [[ ${1:-} == -* ]]; do
	TEST_FLAGS+=" $1"
	case $1 in
	-race) procs=4 ;;
	*) RUN_FLAGS+=" -test.${1#-}" ;;
	esac
	shift
done

# test_part PACKAGE PART PARTS
test_part() {
	local dir=./${1#seqproxy/} part=$2 parts=$3 log status=0 began=$SECONDS files names flags=$TEST_FLAGS
	# They simulate members and nodes on one thread, where nothing races, in tens of thousands of orders.
	case $1 in seqproxy/sequence/change | seqproxy/sequence/limit) flags=${flags/-race/} ;; esac
	if [ "$parts" = 1 ]; then
		log=$("${GO:-go}" test -p 1 -timeout "${TESTTIMEOUT:-45m}" $flags "$1" </dev/null 2>&1) || status=1
	else
		files=("$dir"/*_test.go)
		[ "$dir" != ./sequence ] || [ -z "${SEQUENCE_FILES:-}" ] || files=($SEQUENCE_FILES)
		names=$(sed -n 's/^func \(\(Test\|Fuzz\)[A-Za-z0-9_]*\)(.*/\1/p' "${files[@]}" |
			awk -v part="$part" -v parts="$parts" 'NR % parts == part - 1' | paste -sd '|')
		if log=$(cd "$dir" && "$work/${dir//\//_}" -test.timeout "${TESTTIMEOUT:-45m}" $RUN_FLAGS \
			-test.run "^($names)\$" </dev/null 2>&1); then
			log=$(printf 'ok  \t%s\t%ds, part %d of %d' "$1" $((SECONDS - began)) "$part" "$parts")
		else
			log+=$(printf '\nFAIL\t%s\t%ds, part %d of %d' "$1" $((SECONDS - began)) "$part" "$parts")
			status=1
		fi
	fi
	# One at a time: a line in the middle of another's would hide which test failed.
	until mkdir "$work/printing" 2>/dev/null; do sleep 0.05; done
	echo "$log"
	rmdir "$work/printing"
	return "$status"
}
export -f test_part
export work
work=$(mktemp -d)
memory=
trap 'rm -rf "$work" ${memory:+"$memory"}' EXIT

# Servers have their data in memory where there is enough: that halves what their starts cost.
# A server that is killed loses nothing that it would have on a disk. A machine that stops is
# no matter of these tests.
if [ -z "${SEQPROXY_TEST_DIR:-}" ] && [ -w /dev/shm ] &&
	[ "$(df -Pk /dev/shm | awk 'END { print $4 }')" -gt 4000000 ] &&
	[ "$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo)" -gt 8000000 ]; then
	memory=$(mktemp -d /dev/shm/seqproxy-XXXXXX)
	export SEQPROXY_TEST_DIR=$memory
fi

# not_built PACKAGE ends the run as go test tells of it.
not_built() {
	printf 'FAIL\t%s [build failed]\n' "$1"
	exit 1
}

jobs=$("${GO:-go}" list "$@" | awk '
	BEGIN {
		parts["seqproxy/proxy"] = 6; parts["seqproxy/sequence"] = 6; parts["seqproxy/cmd/seqproxy"] = 3
		early["seqproxy/sequence"] = 6 # the longest; what begins last ends last
		split("sequence/change sequence/limit test/torture test/clients internal/mysqld protocol", long)
		for (i in long) first["seqproxy/" long[i]] = 1
	}
	{ n = parts[$1] ? parts[$1] : 1; for (i = 1; i <= n; i++) print (n > 1 || first[$1] ? 0 : 1), i - early[$1], $1, i, n }' |
	sort -s -k 1,1n -k 2,2n | cut -d ' ' -f 3-)
for package in $(awk '$2 == 1 && $3 > 1 { print $1 }' <<<"$jobs"); do
	dir=./${package#seqproxy/}
	"${GO:-go}" test -c $TEST_FLAGS -o "$work/${dir//\//_}" "$package" || not_built "$package"
done
if [ -z "${SEQPROXY_TEST_PROGRAM:-}" ]; then
	export SEQPROXY_TEST_PROGRAM=$work/seqproxy
	"${GO:-go}" build -buildvcs=false -o "$SEQPROXY_TEST_PROGRAM" ./cmd/seqproxy || not_built seqproxy/cmd/seqproxy
fi
xargs -P "${TESTPROCS:-$procs}" -L 1 bash -c 'set -u; test_part "$@"' test <<<"$jobs"
