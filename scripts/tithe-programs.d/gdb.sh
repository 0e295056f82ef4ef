#!/bin/bash
# Reads the symbols of a program with debugging information, stops in it, prints its stack, and uses its Python.
set -e
gcc -g -O0 -o debugged "$CASES/debugged.c"
gdb -nx --batch -ex 'info functions' -ex 'info types' -ex 'break leaf' -ex run -ex backtrace -ex 'info locals' \
    -ex 'python print(sum(len(str(i)) for i in range(200000)))' -ex 'disassemble main' -ex continue ./debugged
