#!/bin/bash
# Sorting with two threads and with files in between, comparing, searching.
set -e
sort --parallel=2 -S 8M -k3,3 -k11,11n "$INPUTS/text" >sorted
sha256sum <sorted
tr ' ' '\n' <"$INPUTS/text" | sort | uniq -c | sort -k1,1nr -k2 | head -n 100
diff -u "$INPUTS/text" sorted | head -n 3000 | tail -n +3 | sha256sum
grep -rEc '(ka|lo)(mi)+.*[05]$' "$INPUTS/tree" | sort
sed -E 's/(\w+) (\w+)/\2 \1/g; /ren/d' "$INPUTS/text" | sha256sum
find "$INPUTS/tree" -type f -size +1k -printf '%P %s\n' | sort
join -j 1 <(sort -k1,1 "$INPUTS/tree/part00/file0000.txt") <(sort -k1,1 "$INPUTS/tree/part01/file0001.txt") | wc -l
