#!/bin/bash
# Two workers with a pool of threads, compression and directory lists, requested by curl through a socket.
set -e
mkdir -p logs temp
cat >nginx.conf <<END
daemon off; worker_processes 2; pid $PWD/pid; error_log $PWD/logs/error.log warn; user root;
thread_pool default threads=2 max_queue=1000;
events { worker_connections 200; }
http {
    access_log $PWD/logs/access.log; client_body_temp_path $PWD/temp/b; proxy_temp_path $PWD/temp/p;
    fastcgi_temp_path $PWD/temp/f; uwsgi_temp_path $PWD/temp/u; scgi_temp_path $PWD/temp/s;
    types { text/plain txt; } default_type text/plain; aio threads; sendfile off; output_buffers 2 64k;
    gzip on; gzip_min_length 100; gzip_types text/plain;
    server { listen unix:$PWD/socket; root $INPUTS/tree; autoindex on; etag off; }
}
END
nginx -p "$PWD" -c "$PWD/nginx.conf" &
server=$!
tries=0
until curl -sf --unix-socket "$PWD/socket" http://x/part00/file0000.txt >/dev/null; do
    tries=$((tries + 1))
    [ "$tries" -lt 200 ] || { cat logs/error.log; exit 1; }
    sleep 0.05
done
(cd "$INPUTS/tree" && find . -name '*.txt') | sort | sed 's|^\./|url = "http://x/|; s|$|"|' >urls
for round in 1 2 3 4 5; do
    curl -sS --compressed --unix-socket "$PWD/socket" -K urls | sha256sum
    curl -sS --unix-socket "$PWD/socket" -K urls | sha256sum
    [ "$round" -ne 3 ] || kill -HUP "$server"
done
kill -QUIT "$server"
wait "$server"
