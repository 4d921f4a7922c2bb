#!/usr/bin/env bash
# Usage: scripts/deps.sh [server] [client] [cc] [haproxy] [tools] [python] [php]
#                        [perl] [ruby] [java] [node] [django] [activerecord]
#                        [sqlalchemy] [hibernate] [sysbench] [mydumper] [galera]
#                        [faketime]
# Makes sure that the programs named are there: a MariaDB or MySQL server, its
# command-line client, a C compiler (the race detector needs one) and HAProxy; and
# what the tests with real clients run: mariadb-dump and its relatives, sysbench, mydumper,
# for each language the interpreter with its MySQL drivers, and object-relational
# mappers (those of Node.js come by npm, from test/clients/testdata/node); and the
# library of Galera, for clusters of the system's own MariaDB, and libfaketime, by
# which servers of the torture have clocks that jump.
#
# What is missing is installed when this runs as root on Debian or Ubuntu, and
# said before; otherwise the one command to type is printed and the exit status
# is 1. The server comes as mariadb-server-core: the program without the service
# that mariadb-server would start on port 3306.
set -euo pipefail

# Where servers are that PATH does not lead to; Go's internal/mysqld knows more.
PATH="$PATH:/usr/sbin:/usr/libexec:/usr/local/sbin:/opt/homebrew/opt/mariadb/bin:/usr/local/opt/mariadb/bin"

# any NAME...: is one of the programs there?
any() {
	local name
	for name; do
		if command -v "$name" >/dev/null; then
			return
		fi
	done
	return 1
}

quiet() {
	"$@" >/dev/null 2>&1
}

have() {
	case $1 in
	server) any mariadbd mysqld ;;
	client) any mariadb mysql ;;
	cc) any "${CC:-cc}" gcc clang ;;
	haproxy | sysbench | mydumper) any "$1" ;;
	tools) any mariadb-dump && any mariadb-slap && any mariadb-binlog ;;
	# Debian's modules are made for Debian's Python, whichever stands first in PATH.
	python) quiet /usr/bin/python3 -c 'import pymysql, MySQLdb' ;;
	php) quiet php -r 'exit(extension_loaded("mysqli") && extension_loaded("pdo_mysql") ? 0 : 1);' ;;
	perl) quiet perl -MDBD::mysql -e 1 ;;
	ruby) quiet ruby -e 'require "mysql2"' ;;
	django) quiet /usr/bin/python3 -c 'import django' ;;
	activerecord) quiet ruby -e 'require "active_record"' ;;
	sqlalchemy) quiet /usr/bin/python3 -c 'import sqlalchemy, pytest' ;;
	galera) [ -e /usr/lib/galera/libgalera_smm.so ] || [ -e /usr/lib64/galera-4/libgalera_smm.so ] || [ -e /usr/lib64/galera/libgalera_smm.so ] ;;
	# Clocks jump on Linux only, see Go's internal/mysqld.
	faketime) [ "$(uname -s)" != Linux ] || quiet compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' || [ -e /usr/lib64/faketime/libfaketimeMT.so.1 ] ;;
	hibernate) [ -e /usr/share/java/hibernate3.jar ] ;;
	java) [ -e /usr/share/java/mariadb-java-client.jar ] && any javac ;;
	node) any node && any npm ;;
	*)
		sed -n '/^# Makes/q; s/^# Usage/usage/p; s/^#   *\[/       [/p' "$0" >&2
		exit 2
		;;
	esac
}

# package SYSTEM PROGRAM: the package that holds the program.
package() {
	case $1:$2 in
	debian:server) echo mariadb-server-core ;;
	debian:client) echo mariadb-client-core ;;
	debian:cc) echo gcc libc6-dev ;;
	fedora:server) echo mariadb-server ;;
	fedora:client) echo mariadb ;;
	fedora:cc) echo gcc ;;
	macos:server | macos:client) echo mariadb ;;
	macos:cc) echo llvm ;;
	*:haproxy) echo haproxy ;;
	debian:tools) echo mariadb-client ;;
	debian:python) echo python3 python3-pymysql python3-mysqldb ;;
	debian:php) echo php-cli php-mysql ;;
	debian:perl) echo libdbd-mysql-perl ;;
	debian:ruby) echo ruby ruby-mysql2 ;;
	debian:django) echo python3-django ;;
	debian:activerecord) echo ruby-activerecord ;;
	debian:sqlalchemy) echo python3-sqlalchemy python3-pytest ;;
	debian:hibernate) echo libhibernate3-java ;;
	debian:java) echo libmariadb-java default-jdk-headless ;;
	debian:node) echo nodejs npm ;;
	debian:galera) echo galera-4 ;;
	fedora:galera) echo galera ;;
	debian:faketime | fedora:faketime) echo libfaketime ;;
	fedora:tools) echo mariadb ;;
	fedora:python) echo python3-PyMySQL python3-mysqlclient ;;
	fedora:php) echo php-cli php-mysqlnd ;;
	fedora:perl) echo perl-DBD-MySQL ;;
	fedora:ruby) echo rubygem-mysql2 ;;
	fedora:django) echo python3-django ;;
	fedora:activerecord) echo rubygem-activerecord ;;
	fedora:sqlalchemy) echo python3-sqlalchemy python3-pytest ;;
	fedora:java) echo mariadb-java-client java-latest-openjdk-devel ;;
	fedora:node) echo nodejs-npm ;;
	macos:tools) echo mariadb ;;
	macos:php | macos:perl | macos:ruby | macos:node) echo "$2" ;;
	macos:java) echo openjdk ;;
	*:sysbench | *:mydumper) echo "$2" ;;
	esac
}

# packages SYSTEM PROGRAM...: their packages on one line, each once.
packages() {
	local system=$1 program
	shift
	for program; do
		package "$system" "$program"
	done | tr ' ' '\n' | awk '!seen[$0]++' | paste -s -d ' ' -
}

missing=()
for program; do
	have "$program" || missing+=("$program")
done
if [ ${#missing[@]} -eq 0 ]; then
	exit 0
fi

debian="apt-get install --no-install-recommends $(packages debian "${missing[@]}")"
fedora="dnf install $(packages fedora "${missing[@]}")"
macos="brew install $(packages macos "${missing[@]}")"

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
	read -r -a names <<<"$(packages debian "${missing[@]}")"
	echo "missing: ${missing[*]}; installing ${names[*]} with apt-get"
	export DEBIAN_FRONTEND=noninteractive
	apt-get -qq update </dev/null
	apt-get -qq install -y --no-install-recommends "${names[@]}" </dev/null >/dev/null
	for program in "${missing[@]}"; do
		if ! have "$program"; then
			echo "$program is still missing after: $debian" >&2
			exit 1
		fi
	done
	exit 0
fi

{
	if [ "$(uname -s)" = Darwin ]; then
		echo "missing: ${missing[*]}. Install with: $macos"
	elif command -v apt-get >/dev/null; then
		echo "missing: ${missing[*]}. Install with: sudo $debian"
	elif command -v dnf >/dev/null; then
		echo "missing: ${missing[*]}. Install with: sudo $fedora"
	else
		echo "missing: ${missing[*]}. Install with one of"
		echo "  Debian, Ubuntu: sudo $debian"
		echo "  Fedora:         sudo $fedora"
		echo "  macOS:          $macos"
	fi
} >&2
exit 1
