#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Makes configure and its helpers.  Needed once after a clone.
set -e
cd "$(dirname "$0")"
for tool in autoreconf automake libtoolize; do
	command -v "$tool" >/dev/null 2>&1 && continue
	echo "autogen.sh: '$tool' is missing;" \
	     "Debian: apt-get install autoconf automake libtool" >&2
	exit 1
done
mkdir -p build-aux m4
exec autoreconf --force --install "$@"
