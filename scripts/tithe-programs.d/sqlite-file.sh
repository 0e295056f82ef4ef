#!/bin/bash
# A database in a file, with a journal, indices, a full-text index, views, triggers and a check of all its pages.
sqlite3 -batch -init /dev/null file.db <"$INPUTS/script.sql"
