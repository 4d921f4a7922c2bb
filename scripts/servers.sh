#!/usr/bin/env bash
# Usage: scripts/servers.sh
# Unpacks MySQL 9 and MariaDB 11.8 for the tests into .servers/mysql-9 and
# .servers/mariadb-11.8 (or under SERVERS_DIR): servers, command-line clients and
# plugins, with the libraries that they need. Nothing is installed: no root, none
# of the system's packages, and `rm -r .servers` undoes it. What is there already
# is left as it is.
#
# Both come from Debian's unstable distribution, which has a newer one than the
# system's own, by way of the mirror that the system takes its packages from, or
# of DEBIAN_MIRROR where the system is another one. Packages are verified by apt
# with the keys of debian-archive-keyring.
#
# Exit status: 0 all are there; 3 one cannot be had on this machine or now (no
# apt, no mirror, no network); 1 something went wrong with what was fetched.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly cannot=3
servers=${SERVERS_DIR:-.servers}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
export LC_ALL=C

# wanted lists the servers: directory, name, the server program, packages whose
# libraries are needed too, and packages that are only unpacked (MariaDB's plugins
# are in the package of the service, which depends on half of a system).
wanted() {
	echo "mysql-9|MySQL 9|mysqld|mysql-server-core mysql-client-core mysql-client|"
	echo "mariadb-11.8|MariaDB 11.8|mariadbd|mariadb-server-core mariadb-client-core mariadb-client|mariadb-server galera-4"
}

# fields LINE: its parts between the bars into dir, name, program, packages, extra.
fields() {
	IFS='|' read -r dir name program packages extra <<<"$1"
}

# version DIRECTORY PROGRAM: "9.7.4", or an error if it does not run.
version() {
	"$servers/$1/bin/$2" --no-defaults --version 2>/dev/null | sed -n 's/.*Ver \([0-9.]*\).*/\1/p' | grep .
}

give_up() {
	echo "$*" >&2
	exit "$cannot"
}

# What is there and runs stays. What does not run (another machine's libc or
# processor: a copied directory) is made again.
missing=()
while read -r line; do
	fields "$line"
	if v=$(version "$dir" "$program"); then
		echo "$name: $v in $servers/$dir"
	else
		missing+=("$line")
	fi
done < <(wanted)
if [ ${#missing[@]} -eq 0 ]; then
	exit 0
fi

[ "$(uname -s)" = Linux ] || give_up "MySQL 9 and MariaDB 11.8 can be unpacked on Linux only, this is $(uname -s)"
for tool in apt-get apt-cache dpkg-deb; do
	command -v $tool >/dev/null || give_up "MySQL 9 and MariaDB 11.8 are taken from Debian's packages, and there is no $tool here"
done
[ -r $keyring ] || give_up "MySQL 9 and MariaDB 11.8 are taken from Debian's packages, and $keyring is missing: install debian-archive-keyring"

mkdir -p "$servers"
servers=$(cd "$servers" && pwd)
work=$(mktemp -d "$servers/unpack.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

# mirrors prints the URIs to try: the system's own as apt reads them from its
# sources of either format, the one of the distribution itself first.
mirrors() {
	if [ -n "${DEBIAN_MIRROR:-}" ]; then
		echo "$DEBIAN_MIRROR"
		return
	fi
	local codename
	# shellcheck source=/dev/null
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	# shellcheck disable=SC2016 # apt's own variables
	apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
		awk -v codename="$codename" '
			$2 != "main" || $1 ~ /-security$/ { next }
			{ print ($1 == codename || $1 == "sid" || $1 == "unstable" ? 0 : 1), $3 }' |
		sort -s -k1,1 | awk '!seen[$2]++ { print $2 }'
}

# An apt that knows nothing of the system's packages and touches none of its files:
# with an empty list of installed packages everything that is needed is "missing".
mkdir -p "$work"/apt/{lists/partial,cache/archives/partial,sources} "$work/debs"
: >"$work/apt/status"
cat >"$work/apt/apt.conf" <<-CONF
	Dir::State "$work/apt";
	Dir::State::status "$work/apt/status";
	Dir::Cache "$work/apt/cache";
	Dir::Etc::sourcelist "/dev/null";
	Dir::Etc::sourceparts "$work/apt/sources";
	APT::Sandbox::User "root";
	Acquire::Languages "none";
	Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
	Acquire::Retries "2";
	Acquire::http::Timeout "20";
	Acquire::https::Timeout "20";
	#clear APT::Update::Pre-Invoke;
	#clear APT::Update::Post-Invoke;
	#clear APT::Update::Post-Invoke-Success;
CONF
apt() {
	local program=$1
	shift
	"$program" -c "$work/apt/apt.conf" "$@" </dev/null
}

# find_mirror updates the lists from the first mirror that has the distribution.
find_mirror() {
	local uri tried=
	for uri in $(mirrors); do
		cat >"$work/apt/sources/unstable.sources" <<-SOURCES
			Types: deb
			URIs: $uri
			Suites: sid
			Components: main
			Signed-By: $keyring
		SOURCES
		if apt apt-get -q update --error-on=any >"$work/update.log" 2>&1; then
			return
		fi
		tried=yes
	done
	if [ -z "$tried" ]; then
		give_up "MySQL 9 and MariaDB 11.8 are taken from Debian's packages, and the system's sources name no mirror; set DEBIAN_MIRROR to the URI of one"
	fi
	grep '^[EW]:' "$work/update.log" | head -n 4 >&2 || true
	give_up "MySQL 9 and MariaDB 11.8 cannot be fetched: none of the system's mirrors answers with Debian's unstable distribution; DEBIAN_MIRROR may name one"
}

# closure PACKAGE...: these and the libraries that they need, whatever numbers are
# in their names today. The rest of what they depend on (Perl, scripts of the
# service) is of no use here.
closure() {
	printf '%s\n' "$@"
	apt apt-cache depends --recurse --important "$@" | grep -E '^lib' | grep -vE '^libperl|-perl$|:' | sort -u
}

# wrap FILE: puts a script in bin in the place of a program, which moves to
# libexec. It runs the program on the libraries that came with it, as the system's
# own may be older, in the same process: its id is the program's.
wrap() {
	local name=${1##*/}
	mv "$1" "libexec/$name"
	cat >"bin/$name" <<-WRAPPER
		#!/bin/sh
		# $name on the libraries that it was unpacked with, by scripts/servers.sh
		self=\$(readlink -f "\$0")
		root=\${self%/bin/*}
		exec "\$root/$loader" --library-path "\$root/$libraries" "\$root/libexec/$name" "\$@"
	WRAPPER
	chmod 755 "bin/$name"
}

# check_libraries: every program and server must find all it needs. Plugins may
# not: those are for software that nobody wants here.
check_libraries() {
	local file lost
	for file in libexec/*; do
		lost=$("$loader" --library-path "$libraries" --list "$file" 2>&1 | grep -E 'not found|cannot open' || true)
		if [ -n "$lost" ]; then
			printf '%s: a library is in none of the packages: %s\n' "$name" "$lost" >&2
			return 1
		fi
	done
}

# arrange, in an unpacked tree: its usr becomes a base directory as both servers
# expect one, which --basedir takes.
arrange() {
	local file
	if [ -d lib ] && [ ! -L lib ]; then # before all of it moved to usr
		cp -a lib/. usr/lib/
	fi
	mv usr/* .
	mkdir -p libexec bin
	rm -rf share/doc share/man share/lintian share/perl* share/apport share/bug var etc
	libraries=$(cd / && find "$tree/lib" -name 'libc.so.6' -printf '%h\n' -quit)
	libraries=${libraries#"$tree/"}
	for file in "$libraries"/ld-linux*.so.*; do
		loader=$file
	done
	for file in bin/* sbin/*; do
		# Links keep their names, and lead to the scripts now. Scripts stay.
		if [ -L "$file" ]; then
			[ "${file%/*}" = bin ] || ln -sf "$(readlink "$file")" "bin/${file##*/}"
		elif [ "$(head -c 4 "$file" | tail -c 3)" = ELF ]; then
			wrap "$file"
		elif [ "${file%/*}" != bin ]; then
			mv "$file" bin/
		fi
	done
	rm -rf sbin usr
	ln -s bin sbin # where mariadb-install-db looks for the server
	check_libraries
}

find_mirror
for line in "${missing[@]}"; do
	fields "$line"
	echo "$name: fetching"
	tree=$work/$dir
	mkdir -p "$tree" "$work/debs/$dir"
	# shellcheck disable=SC2086 # lists of names
	names=$(closure $packages)
	# shellcheck disable=SC2086
	if ! (cd "$work/debs/$dir" && apt apt-get -q download $names $extra) >"$work/download.log" 2>&1; then
		grep '^[EW]:' "$work/download.log" | head -n 4 >&2 || true
		give_up "$name: its packages cannot be fetched"
	fi
	for deb in "$work/debs/$dir"/*.deb; do
		dpkg-deb -x "$deb" "$tree"
	done
	(cd "$tree" && arrange)
	# Complete or not there at all; somebody else's that came first is as good.
	if [ -e "$servers/$dir" ] && ! version "$dir" "$program" >/dev/null; then
		mv "$servers/$dir" "$work/old-$dir"
	fi
	mv -T "$tree" "$servers/$dir" 2>/dev/null || true
	if ! v=$(version "$dir" "$program"); then
		echo "$name: $servers/$dir/bin/$program does not run:" >&2
		"$servers/$dir/bin/$program" --no-defaults --version >&2 || true
		exit 1
	fi
	echo "$name: $v in $servers/$dir"
	case $name in
	*" ${v%%.*}" | *" ${v%.*}") ;;
	*) echo "$name: Debian's unstable distribution has $v by now, which serves in its place" ;;
	esac
done
