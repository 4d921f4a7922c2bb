#!/usr/bin/env bash
# Usage: scripts/test-kind.sh [KIND...]
# Runs the engine's own tests with sequences of a kind of keys: of each kind that counts, or of those
# that are named. All run at the same time, as the tests mostly wait. With AGAIN=5 a test that failed
# is run five times more by itself, as scripts/test-matrix.sh does, and is named as UNSTEADY.
set -euo pipefail
cd "$(dirname "$0")/.."

kinds=("$@")
[ ${#kinds[@]} -gt 0 ] || kinds=(BIT_REVERSED "ROTATE 2 DIGITS 18" "SHARD BITS 4" "FORMAT '{n:12}'")

dir=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; rm -rf "$dir"' EXIT
"${GO:-go}" test -c -o "$dir/tests" ./sequence

# with KIND ARGUMENT... runs the tests.
with() {
	local kind=$1
	shift
	cd sequence
	SEQPROXY_TEST_KIND=$kind exec "$dir/tests" -test.short -test.timeout "${TESTTIMEOUT:-45m}" "$@" </dev/null
}

# failed LOG: the tests that failed, "Test|Test".
failed() {
	awk '/^--- FAIL: / { printf "%s%s", n++ ? "|" : "", $3 }' "$1"
}

# again KIND LOG runs by themselves, $AGAIN times, the tests that failed.
again() {
	local tests
	tests=$(failed "$2")
	[ "${AGAIN:-0}" -gt 0 ] && [ -n "$tests" ] && ! scripts/final.sh "$2" || return
	echo "== again, $AGAIN times: $tests"
	(with "$1" -test.count "$AGAIN" -test.run "^($tests)\$")
}

for i in "${!kinds[@]}"; do
	(with "${kinds[i]}") >"$dir/$i" 2>&1 &
	pids+=($!)
done
status=0
for i in "${!kinds[@]}"; do
	if wait "${pids[i]}" && ! grep -q 'no tests to run' "$dir/$i"; then
		echo "ok: tests of the engine, ${kinds[i]}"
		continue
	fi
	cat "$dir/$i"
	if again "${kinds[i]}" "$dir/$i"; then
		echo "UNSTEADY, with ${kinds[i]}: $(failed "$dir/$i")"
	else
		echo "FAILED: tests of the engine, ${kinds[i]}"
		status=1
	fi
done
exit $status
