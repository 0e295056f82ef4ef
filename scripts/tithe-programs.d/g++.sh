#!/bin/bash
g++ -std=c++17 -O1 -S -o - "$INPUTS/heavy.cc"
