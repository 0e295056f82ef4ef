/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Switches of stacks, as coroutines make them.
 */
#ifndef HT_SWITCH_H
#define HT_SWITCH_H

#include "core.h"

/* How code computes a stack pointer. */
typedef enum {
   HT_OF_FRAME, /* from itself, or from the frame pointer */
   HT_COPIED,   /* from another register, or from the frame's own memory */
   HT_LOADED    /* from other memory */
} HtMove;

HtMove ht_switch_move(const IRSB *in, const IRExpr *value);
/* Called by translated code before such a move that is not HT_OF_FRAME. */
void ht_switch_happens(ULong from, ULong to, ULong move);

#endif
