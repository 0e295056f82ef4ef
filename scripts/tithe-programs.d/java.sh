#!/bin/bash
# The compiler, then a program with threads, both on a small heap: the machine's own collector moves objects.
set -e
cp "$CASES/Churn.java" .
javac -J-Xmx256m -d . Churn.java
java -Xmx128m -cp . Churn
