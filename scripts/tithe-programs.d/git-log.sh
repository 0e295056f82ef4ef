#!/bin/bash
# Every patch of a history, with renames detected; then blame, grep and a merge.
set -e
git clone -q "file://$INPUTS/repository.git" clone
cd clone
git log -p -M -C --stat --graph --all
for number in 1 2 3 4 5 6; do git blame -s "src/file$number.txt"; done
git -c grep.threads=2 grep -n -E 'changed [0-9]*7 '
git -c user.name=t -c user.email=t@example.org merge -q -X ours -m merge origin/side
git diff --word-diff HEAD~20
