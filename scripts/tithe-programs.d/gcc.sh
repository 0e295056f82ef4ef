#!/bin/bash
gcc -O2 -S -o - "$INPUTS/large.c"
