#!/bin/bash
# Reads the lists of all packages, and searches in them.
apt-cache dumpavail
apt-cache search '^lib.*gc'
