#!/bin/bash
clang-14 -O2 -S -o - "$INPUTS/large.c"
