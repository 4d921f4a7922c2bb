#!/usr/bin/env bash
# Usage: scripts/final.sh LOG
# Ends with 0 if the output of tests in LOG shows something that a second run could hide: a data
# race, a panic, a key given twice or out of order, a failure of the torture. What shows it is the
# message of a test, never its name or that of its file.
sed -E '/^ *--- (FAIL|PASS|SKIP): /d; s/^ *[a-z0-9_]+_test\.go:[0-9]+: //' "$1" |
	grep -Eqf "$(dirname "$0")/final.grep"
