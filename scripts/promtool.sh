#!/usr/bin/env bash
# Usage: scripts/promtool.sh
# Puts promtool into .servers/promtool, for the test that has it look at the alerts
# and metrics; without it that part of the test is skipped. It comes from Debian's
# package of Prometheus, by way of the system's own apt. Nothing is installed, since
# the package would start a service.
#
# Exit status: 0 it is there; 3 it cannot be had on this machine or now.
set -euo pipefail
cd "$(dirname "$0")/.."

if command -v promtool >/dev/null || .servers/promtool --version >/dev/null 2>&1; then
	exit 0
fi
for tool in apt-get dpkg-deb; do
	if ! command -v $tool >/dev/null; then
		echo "promtool is taken from Debian's packages, and there is no $tool here" >&2
		exit 3
	fi
done
mkdir -p .servers
servers=$(cd .servers && pwd)
work=$(mktemp -d "$servers/promtool.XXXXXX")
trap 'rm -rf "$work"' EXIT
if ! (cd "$work" && apt-get -qq download -o APT::Sandbox::User=root prometheus && dpkg-deb -x prometheus_*.deb tree) >"$work/log" 2>&1; then
	tail -n 3 "$work/log" >&2
	echo "promtool cannot be fetched" >&2
	exit 3
fi
if ! "$work/tree/usr/bin/promtool" --version >/dev/null 2>&1; then
	echo "the promtool of the package does not run here" >&2
	exit 3
fi
mv "$work/tree/usr/bin/promtool" "$servers/promtool"
