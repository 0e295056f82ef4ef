#!/bin/bash
# Packs a tree, compresses and expands it with two threads each way.
set -e
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$INPUTS" -cf tree.tar tree
xz -T2 --block-size=512KiB -6 -k tree.tar
zstd -q -T2 -12 -B1MiB tree.tar -o tree.tar.zst
gzip -nk tree.tar
bzip2 -k tree.tar
sha256sum tree.tar.*
xz -T2 -dc tree.tar.xz | tar -tvf - | sha256sum
zstd -q -dc tree.tar.zst | cmp - tree.tar
mkdir out && tar -C out -xf tree.tar.gz && (cd out && find . -type f | sort | xargs sha256sum)
