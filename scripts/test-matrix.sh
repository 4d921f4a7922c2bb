#!/usr/bin/env bash
# Usage: scripts/test-matrix.sh [-check | PACKAGE...]
# With -check it only makes sure that the files are there which it names.
# Runs all tests (or those of the packages named) with the race detector on the system's
# own server. Then it runs what depends on the server on those that scripts/servers.sh
# unpacked, without the race detector: a race does not depend on the server. See depend and
# depend_in_sequence below. Packages that are named run whole on every server. Ends with one
# line per server, and with 1 if a test failed on one of them. A server that is not there is said, and is a
# failure with MATRIX=all. Where all servers and clients were tried, the tables of
# docs/compatibility-tables.md are compared with what the tests have seen; MATRIX=update
# makes them anew. With AGAIN=5 a test that failed is run five times more by itself:
# if all five pass it is UNSTEADY, which the last lines say with its name, else failed.
# What a second run could hide is never run again (scripts/final.sh).
set -euo pipefail
cd "$(dirname "$0")/.."

servers=${SERVERS_DIR:-.servers}
[ ! -d "$servers" ] || servers=$(cd "$servers" && pwd)

export SEQPROXY_MATRIX_OUT
SEQPROXY_MATRIX_OUT=$(mktemp -d)
[ "${MATRIX:-}" != update ] || export SEQPROXY_TEST_CLIENTS=all

# Packages whose tests start servers, and those that do the starting.
packages=("$@")
serverless=()
named=("$@")
everything=$([ ${#packages[@]} -gt 0 ] || echo yes)

# depend lists the packages whose tests run on every server, beside proxy. What they test speaks
# to a server in its own words: packets, texts, accounts, clients.
depend=(./statement ./statement/lex ./protocol ./backend ./test/clients ./internal/inspect ./internal/mysqld ./test/mysqltest)

# depend_in_sequence lists the files of sequence whose tests run on every server: how a server is
# checked, how numbers are reserved on it, groups, the tables, and what its errors mean. The rest
# is about members, caches and proxies, to which every server is the same.
depend_in_sequence=(session reserve server_error deadlock read_only rights version_lost alter blank names
	ticket_table tombstone value group group_galera group_semi group_stale ceiling_cluster take_over_rows order_replica plan_model)
for name in "${depend_in_sequence[@]}"; do
	[ -f "sequence/${name}_test.go" ] || { echo "$0: depend_in_sequence names $name, and there is no sequence/${name}_test.go" >&2 && exit 1; }
done
[ "${1:-}" != -check ] || exit 0
if [ ${#packages[@]} -eq 0 ]; then
	while read -r package kind; do
		case $kind in
		server) packages+=("$package") ;;
		*) serverless+=("$package") ;;
		esac
	done < <("${GO:-go}" list -f '{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}' ./... |
		awk '{ print $1, /test\/mysqltest/ || $1 ~ /internal\/mysqld$/ ? "server" : "none" }')
fi

log=$(mktemp)
trap 'rm -rf "$log" "$SEQPROXY_MATRIX_OUT"' EXIT
summary=
status=0

# report SERVER RESULT adds a line to the summary.
report() {
	summary+=$(printf '%-18s %s' "$1" "$2")$'\n'
}

# identify PROGRAM: "MySQL 9.7.4".
identify() {
	local text version
	text=$("$1" --no-defaults --version 2>&1) || return
	version=$(sed -n 's/.*Ver \([0-9.]*\).*/\1/p' <<<"$text")
	case $text in
	*MariaDB*) echo "MariaDB $version" ;;
	*) echo "MySQL $version" ;;
	esac
}

# run SERVER PROGRAM [depend]: the tests on the server program, or, if it is empty, on the
# one that they find themselves; with depend only those that depend on the server.
run() {
	local name program=$2 took=$SECONDS
	if ! name=$(identify "${program:-$(system_server)}"); then
		report "$1" "FAILED: it does not run: $name"
		status=1
		return
	fi
	echo "== $name"
	export SEQPROXY_TEST_SERVER=$program
	if test_server "${3:-}"; then
		report "$name" "ok, $((SECONDS - took)) s"
	elif again; then
		report "$name" "ok, $((SECONDS - took)) s, but for what is UNSTEADY:$(failures "$log" | awk '{ printf " %s %s", $1, $2 }')"
	else
		report "$name" "FAILED, $((SECONDS - took)) s:$(awk '$1 == "FAIL" && NF > 1 { printf " %s", $2 }' "$log")"
		status=1
	fi
}

# test_server [depend] runs the tests on one server, and leaves the output in $log.
test_server() {
	if [ -z "$1" ] || [ ${#named[@]} -gt 0 ]; then
		race=-race
		scripts/test.sh -race "${packages[@]}" 2>&1 | tee "$log"
		return
	fi
	race=
	SEQUENCE_FILES=$(printf 'sequence/%s_test.go ' "${depend_in_sequence[@]}") \
		scripts/test.sh ./proxy ./sequence "${depend[@]}" 2>&1 | tee "$log"
}

# go_test ARGUMENT...: go test, with the race detector if $race says so.
go_test() {
	"${GO:-go}" test ${race:+"$race"} -timeout "${TESTTIMEOUT:-45m}" "$@" </dev/null
}

# failures LOG: "package Test|Test" for each package that failed, "package" alone where no test of it says so.
failures() {
	awk '/^--- FAIL: / { tests = tests (tests == "" ? "" : "|") $3 }
		/^ok|^\?/ { tests = "" }
		$1 == "FAIL" && NF > 1 { print $2, tests; tests = "" }' "$1"
}

# again runs by themselves, $AGAIN times, the tests that failed in $log.
again() {
	[ "${AGAIN:-0}" -gt 0 ] || return
	! scripts/final.sh "$log" || return
	local package tests
	[ -n "$(failures "$log")" ] || return # what failed is not a test
	while read -r package tests; do
		[ -n "$tests" ] || return
		echo "== again, $AGAIN times: $package $tests"
		go_test -count "$AGAIN" -run "^($tests)\$" "$package" || return
	done < <(failures "$log")
}

# system_server is where internal/mysqld looks, or "none".
system_server() {
	PATH="$PATH:/usr/sbin:/usr/libexec:/usr/local/sbin:/opt/homebrew/opt/mariadb/bin:/usr/local/opt/mariadb/bin"
	command -v mariadbd || command -v mysqld || echo none
}

if [ -n "$everything" ]; then
	echo "== without a server"
	race= # two of them are too slow with it
	if SEQPROXY_MATRIX_OUT="" scripts/test.sh -race "${serverless[@]}" 2>&1 | tee "$log"; then
		report "without a server" ok
	elif SEQPROXY_MATRIX_OUT="" again; then
		report "without a server" "ok, but for what is UNSTEADY:$(failures "$log" | awk '{ printf " %s %s", $1, $2 }')"
	else
		report "without a server" FAILED
		status=1
	fi
fi
run "the system's own" "${SEQPROXY_TEST_SERVER:-}"
while read -r dir program name; do
	if [ -e "$servers/$dir" ]; then
		run "$name" "$servers/$dir/bin/$program" depend
		continue
	fi
	report "$name" "not unpacked: run make servers"
	everything=
	case ${MATRIX:-} in all | update) status=1 ;; esac
done <<-LIST
	mysql-9 mysqld MySQL 9
	mariadb-11.8 mariadbd MariaDB 11.8
LIST

if [ -n "$everything" ] && [ $status = 0 ] && { [ "${SEQPROXY_TEST_CLIENTS:-}" = all ] || [ "${CI:-}" = true ]; }; then
	update=
	[ "${MATRIX:-}" != update ] || update=-update
	if out=$("${GO:-go}" test -v -count=1 ./test/matrix -run 'TestThePage' ${update:+"$update"} 2>&1); then
		case $out in
		*"--- SKIP"*) report compatibility-tables.md "NOT COMPARED: it is about other versions" ;;
		*) report compatibility-tables.md "tells what the tests have seen" ;;
		esac
	else
		echo "$out"
		report compatibility-tables.md "FAILED: tells something else; MATRIX=update makes its tables"
		status=1
	fi
fi

printf '\n%s' "$summary"
if [ -s "$SEQPROXY_MATRIX_OUT/unsteady" ]; then
	printf '\nUNSTEADY, found once and not again:\n'
	cat "$SEQPROXY_MATRIX_OUT/unsteady"
fi
exit $status
