#!/bin/bash
# A manual page of a thousand pages' length, set for a terminal.
set -e
for number in 1 2 3 4 5 6 7 8; do awk -v n="$number" 'BEGIN { print ".TH TEST 1\n.SH NAME" } { print ".TP\n.BI \\-" $1 " " $2 "\n" $3, $4, $5, "\\fB" $6 "\\fP" n "." } NR % 50 == 0 { print ".SH " $1 }' "$INPUTS/short"; done |
    groff -man -Tutf8
