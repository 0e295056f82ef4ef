#!/bin/bash
# Two compilers at a time.
set -e
for number in 1 2 3 4 5 6 7 8; do sed "s/\bf\([0-9]\)/f${number}_\1/g" "$INPUTS/small.c" >"part$number.c"; done
printf 'all: lib.a\nlib.a: part1.o part2.o part3.o part4.o part5.o part6.o part7.o part8.o\n\tar rcsD $@ $^\n' >Makefile
printf '%%.o: %%.c\n\t@gcc -O1 -c -o $@ $<\n' >>Makefile
make -s -j2 lib.a
nm lib.a
