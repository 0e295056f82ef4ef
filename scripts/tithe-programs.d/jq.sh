#!/bin/bash
# Groups, sorts and rewrites a table.
set -e
awk '{ printf "{\"id\":%d,\"name\":\"%s\",\"tags\":[\"%s\",\"%s\"],\"value\":%d}\n", NR, $1, $2, $3, $NF }' "$INPUTS/text" |
    jq -c -s 'group_by(.name) | map({name: .[0].name, n: length, sum: (map(.value) | add), tags: (map(.tags[]) | unique)})'
