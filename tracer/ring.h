/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The ring of words that a process image shares with its consumer, and how to write into it.
 *
 * All of these may be called from anywhere in the tool: helpers of translated code, callbacks of the core, wrappers of
 * system calls. Before ht_ring_open, and without a consumer, they do nothing.
 */
#ifndef HT_RING_H
#define HT_RING_H

#include "core.h"
#include "words.h"

#define HT_RING_BLOCK_WORDS 32768
#define HT_RING_BLOCKS 16
#define HT_RING_HEADER_BYTES 4096
/* Most words that may follow one event; a longer text is truncated. */
#define HT_RING_MOST 1024
/* Words that a block of translated code may write without a check of the space. */
#define HT_RING_MARGIN 256

/* Writes an event and the `n` words after it, whole, in one block. n is at most HT_RING_MOST. */
void ht_ring_event(UInt kind, ULong payload, const ULong *words, UInt n);
/* The same without recording first which thread runs: for thread.c. */
void ht_ring_put(UInt kind, ULong payload, const ULong *words, UInt n);
/* Writes a text of `length` bytes; `what` is one of HT_TEXT_..., `word` depends on it. */
void ht_ring_text(UInt what, ULong word, const HChar *text, SizeT length);
/* Reports a warning to the user, formatted like printf, once for each `format`. */
void ht_ring_warn(const HChar *format, ...) __attribute__((format(printf, 1, 2)));
/* Whether a consumer takes the words: if not, callers need not compute them. */
Bool ht_ring_is_open(void);

/* Makes and maps the ring of this process image. */
void ht_ring_open(void);
/* In a child of fork: unmaps the parent's ring, without a mark on it, and makes one of its own. */
void ht_ring_reopen(void);
/* Whether this process may make files in a folder; for the folder of the rings, also if its path does not exist
   here. */
Bool ht_ring_may_make(Int at, const HChar *folder);
Bool ht_ring_may_fork(void);
/* Marks the ring as complete for the consumer. */
void ht_ring_close(void);
/* Publishes the block and turns to the next. Called by translated code when ht_ring_next is above ht_ring_limit. */
void ht_ring_turn(void);

/* Address of the next word, and the last address from which HT_RING_MARGIN words have space. While client code runs
 * both are in the thread's registers (thread.h), otherwise here. */
typedef struct {
   ULong *next;
   ULong *limit;
} HtRingPlace;
extern HtRingPlace *ht_ring_place;
/* Client code begins to run, with the place in `registers`; or it stops: NULL. */
void ht_ring_client(HtRingPlace *registers);

#endif
