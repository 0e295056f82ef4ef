#!/bin/bash
# Vim without a screen: edits and sorts a text, and works on lists and dictionaries in a script of its own.
set -e
head -n 3000 "$INPUTS/text" >text
vim -N -u NONE -i NONE -n -es -S "$CASES/vim.vim" text
cat text
