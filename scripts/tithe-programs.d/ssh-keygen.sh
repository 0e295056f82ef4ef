#!/bin/bash
# Signatures by a key made beforehand (those of Ed25519 are the same every time), fingerprints and conversions.
set -e
cp "$INPUTS/key" "$INPUTS/key.pub" .
chmod 600 key
echo "tester $(cat key.pub)" >allowed
for number in 1 2 3 4 5 6 7 8; do
    echo "message $number" >message
    rm -f message.sig
    ssh-keygen -q -Y sign -f key -n file message 2>/dev/null
    cat message.sig
    ssh-keygen -Y verify -f allowed -I tester -n file -s message.sig <message
done
ssh-keygen -lv -f key.pub
ssh-keygen -e -m RFC4716 -f key.pub
ssh-keygen -y -f key
