#!/bin/bash
# The awk that Debian has as a standard.
mawk '{ for (i = 1; i < NF; i++) { n[$i]++; s[$i] = substr(s[$i] "," NR, 1, 60) } t[NR % 1000] = t[NR % 1000] $NF }
END { for (w in n) print w, n[w], s[w] | "sort"; close("sort"); for (i = 0; i < 1000; i++) { gsub(/[05]/, "-", t[i]); print length(t[i]), t[i] } }' "$INPUTS/text"
