/* Blocks that carry a stamp, which is checked when they are freed: the first eight bytes are the block's size and number, its
 * last byte, if there are more, the number's lowest. */
#ifndef COMMON_STAMPED_H
#define COMMON_STAMPED_H

#include "checked.h"

static inline unsigned char *stamped_block(uint64_t bytes, uint64_t block_number) {
    unsigned char *block = malloc(bytes);
    if (!block) fail_with("malloc", ENOMEM);
    uint64_t stamp = bytes << 40 | (block_number & UINT64_C(0xffffffffff));
    memcpy(block, &stamp, sizeof stamp);
    if (bytes > sizeof stamp) block[bytes - 1] = (unsigned char)stamp;
    return block;
}

/* Frees a block of `smallest` to `largest` bytes, and adds its stamp to the checksum; whether its stamp is as it was. */
static inline int drop_stamped(unsigned char *block, uint64_t smallest, uint64_t largest, uint64_t *sum) {
    uint64_t stamp;
    memcpy(&stamp, block, sizeof stamp);
    uint64_t bytes = stamp >> 40;
    int whole =
        bytes >= smallest && bytes <= largest && (bytes <= sizeof stamp || block[bytes - 1] == (unsigned char)stamp);
    *sum = *sum * UINT64_C(6364136223846793005) + stamp;
    free(block);
    return whole;
}

#endif
