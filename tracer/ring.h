/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The ring of words that a process image shares with its consumer, and how to write into it.
 *
 * All of these may be called from anywhere in the tool: helpers of translated code, callbacks of the core, wrappers of
 * system calls. Before ht_ring_open, and when nobody listens, they do nothing.
 */
#ifndef HT_RING_H
#define HT_RING_H

#include "core.h"
#include "words.h"

#define HT_RING_BLOCK_WORDS 32768
#define HT_RING_BLOCKS 16
#define HT_RING_HEADER_BYTES 4096
/* Most words that may follow one event; a longer text is cut off. */
#define HT_RING_MOST 1024
/* A block of translated code may write as many words without looking whether there is room. */
#define HT_RING_MARGIN 256

/* Tells an event and the `n` words behind it, whole, in one block. n is at most HT_RING_MOST. */
void ht_ring_event(UInt kind, ULong payload, const ULong *words, UInt n);
/* The same without telling first which thread runs: for thread.c. */
void ht_ring_put(UInt kind, ULong payload, const ULong *words, UInt n);
/* Tells a text of `length` bytes; `what` is one of HT_TEXT_..., `word` what belongs to it. */
void ht_ring_text(UInt what, ULong word, const HChar *text, SizeT length);
/* Tells the user something, in the manner of printf, once for each `format`. */
void ht_ring_warn(const HChar *format, ...) __attribute__((format(printf, 1, 2)));
/* Whether somebody listens. What is expensive to find out need not be found out when not. */
Bool ht_ring_listens(void);

/* Makes and maps the ring of this process image. */
void ht_ring_open(void);
/* In a child of fork: lets go of the parent's ring, without a mark on it, and makes one of its own. */
void ht_ring_reopen(void);
/* Whether this process may make files in a folder; of the folder of the rings, also where its path means nothing. */
Bool ht_ring_may_make(Int at, const HChar *folder);
Bool ht_ring_may_fork(void);
/* Tells the consumer that nothing follows. */
void ht_ring_close(void);
/* Makes room: gives the block to the consumer. Called by translated code when ht_ring_next is above ht_ring_limit. */
void ht_ring_turn(void);

/* Where the next word goes, and the last place from which HT_RING_MARGIN words have room. While client code runs both
 * are in the thread's registers (thread.h), otherwise here. */
typedef struct {
   ULong *next;
   ULong *limit;
} HtRingPlace;
extern HtRingPlace *ht_ring_place;
/* Client code begins to run, with the place in `registers`; or it stops: NULL. */
void ht_ring_client(HtRingPlace *registers);

#endif
