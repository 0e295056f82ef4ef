#!/bin/bash
# Fixed work in place of fixed time: every certificate of the system printed, digests, ciphers, key derivation, tests of
# numbers for being prime.
set -e
openssl crl2pkcs7 -nocrl -certfile /etc/ssl/certs/ca-certificates.crt | openssl pkcs7 -print_certs -text
openssl dgst -sha512 -hmac key "$INPUTS/text"
openssl enc -aes-256-cbc -pbkdf2 -iter 100000 -S 0123456789abcdef -k word -in "$INPUTS/text" | openssl dgst -sha256
openssl enc -chacha20 -K 00 -iv 00 -in "$INPUTS/text" 2>/dev/null | openssl dgst -blake2b512
for number in 170141183460469231731687303715884105727 170141183460469231731687303715884105729; do
    openssl prime "$number"
done
openssl rsa -in "$INPUTS/rsa.pem" -check -noout -text
for number in 1 2 3 4 5 6; do
    openssl dgst -sha256 -sign "$INPUTS/rsa.pem" "$INPUTS/tree/part00/file0000.txt" | openssl dgst -sha256
    echo "$number"
done
