#!/bin/bash
# Clones without sharing objects, packs again with two threads, checks every object.
set -e
git clone -q --no-local "file://$INPUTS/repository.git" clone
cd clone
git -c pack.threads=2 -c gc.autoDetach=false gc -q --aggressive --prune=now
git fsck --full --strict
git rev-list --all --objects | sort
