/* attack.h: what the security cases share. A case commits a defect and then looks for the effect that an attacker needs:
 * two owners of one block, memory that can still be read, a pointer of the attacker's choice. It states what it found in
 * one line on standard output, `happened` or `prevented`, and ends with status 0; a manager that detects the defect ends
 * the process before that line, or writes a message. */
#ifndef ATTACK_H
#define ATTACK_H

#include "../check.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A block whose every byte is written. */
void *taken(size_t size);
/* free of an address that the compiler does not know. */
void given(void *block);
/* States whether the effect happened, then uses the heap: what is detected then is detected late. */
void state(int happened, size_t size);

/* A value of the attacker's, which nothing else in the process has. */
#define MARK 0xa7
/* How many of `size` bytes, from the `from`-th on, have it. */
size_t marked(const void *block, size_t from, size_t size);

#ifdef __cplusplus
}
#endif

#endif
