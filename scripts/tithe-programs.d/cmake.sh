#!/bin/bash
# A script of cmake's own language: lists, strings, regular expressions.
cmake -P "$CASES/script.cmake"
