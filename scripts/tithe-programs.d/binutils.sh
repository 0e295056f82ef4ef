#!/bin/bash
# Assembles, links twice over, strips and takes apart.
set -e
gcc -O1 -g -c -o large.o "$INPUTS/large.c"
ld -r -o both.o large.o
ar rcsD library.a large.o
nm library.a
objdump -d -l both.o
readelf --debug-dump=info large.o
strip -o stripped.o both.o
readelf -a stripped.o
