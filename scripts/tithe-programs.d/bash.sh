#!/bin/bash
# Arrays, string operations, subshells, pipes, here-documents, traps; hundreds of forks.
set -e
declare -A counts
while read -r -a line; do
    for word in "${line[@]}"; do counts[$word]=$((${counts[$word]:-0} + 1)); done
done < <(head -n "$LINES_READ" "$INPUTS/text")
for word in "${!counts[@]}"; do echo "${counts[$word]} $word"; done | sort -k1,1nr -k2 | head -n 50
list=()
for ((i = 0; i < 5000; i++)); do list+=("element $i ${list[i / 2]:0:20}"); done
echo "${#list[@]} ${list[4999]} ${list[*]:100:5}"
text=${list[*]}
echo "${#text} ${text//element/part}" | cksum
for ((i = 0; i < 200; i++)); do
    value=$(cat <<END
$((i * i)) ${list[i]}
END
    )
    (trap 'echo "left $value"' EXIT; [[ $value =~ ^([0-9]+)\ (.*)$ ]] && echo "${BASH_REMATCH[2]}")
done
trap 'echo "signal $signals"; signals=$((signals + 1))' USR1
signals=0
for ((i = 0; i < 20; i++)); do kill -USR1 $$; done
coproc { cat; }
exec 7<&"${COPROC[0]}" 8>&"${COPROC[1]}"
for ((i = 0; i < 40; i++)); do echo "$i $text" | head -c 500 >&8; echo >&8; read -r answer <&7; echo "${#answer}"; done
