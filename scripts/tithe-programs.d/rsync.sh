#!/bin/bash
# Copies a tree, changes it, copies the differences, checks by checksums.
set -e
rsync -a --no-times "$INPUTS/tree/" copy/
find copy -name '*3.txt' | sort | while read -r file; do echo changed >>"$file"; done
rsync -ac --no-times --no-whole-file --delete -i "$INPUTS/tree/" copy/
diff -r "$INPUTS/tree" copy
