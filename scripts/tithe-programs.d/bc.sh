#!/bin/bash
# Pi to a thousand places, and large powers.
echo 'scale=1500; 4*a(1); scale=0; 7^20000 % 10^50; for (i = 1; i < 400; i++) x = x * i + 1; x' | bc -lq
