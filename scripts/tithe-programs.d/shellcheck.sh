#!/bin/bash
# A Haskell program: its heap is its own; blocks of malloc are for its foreign calls.
for file in "$CASES"/*.sh; do shellcheck -s bash -f json "$file"; done
exit 0
