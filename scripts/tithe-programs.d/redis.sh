#!/bin/bash
# Six kinds of writes with a fixed key each, then what the server holds. Random keys would differ from run to run.
set -e
redis-server --port 0 --unixsocket "$PWD/socket" --dir "$PWD" --save '' --appendonly no --daemonize no \
    --enable-debug-command yes >server.log 2>&1 &
server=$!
tries=0
until redis-cli -s "$PWD/socket" ping >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ "$tries" -lt 200 ] || { cat server.log; exit 1; }
    sleep 0.05
done
redis-benchmark -s "$PWD/socket" -q -t set,lpush,sadd,hset,zadd,lrange_100 -n "$REQUESTS" -d 64 -P 16 -c 20 >benchmark.log
awk -v n="$REQUESTS" 'BEGIN { for (i = 0; i < n; i++) printf "SET key:%d %d%s\r\nHSET hash:%d field%d %d\r\n", i, i * 7, substr("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 1, i % 50), i % 500, i, i }' |
    redis-cli -s "$PWD/socket" --pipe
redis-cli -s "$PWD/socket" eval 'local sum = 0; for i = 1, 200000 do local t = {i, tostring(i)}; sum = sum + #t[2] end; return sum' 0
redis-cli -s "$PWD/socket" dbsize
redis-cli -s "$PWD/socket" bgsave >/dev/null
redis-cli -s "$PWD/socket" debug digest
redis-cli -s "$PWD/socket" shutdown nosave || true
wait "$server"
