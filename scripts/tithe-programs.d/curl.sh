#!/bin/bash
# Files by file://, one after another and in parallel.
set -e
find "$INPUTS/tree" -name '*.txt' | sort >names
sed 's|^|url = "file://|; s|$|"|' names >one-by-one
curl -sS -K one-by-one | sha256sum
awk '{ printf "url = \"file://%s\"\noutput = \"out%d\"\n", $0, NR }' names >parallel
curl -sS --no-progress-meter -Z --parallel-max 20 -K parallel
cat out* | sha256sum
