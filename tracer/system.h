/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What the files about the system around the program tell each other.
 */
#ifndef HT_SYSTEM_H
#define HT_SYSTEM_H

#include "core.h"

/* brk.c: the pages from `start` became part of the client's stack. May be called in the midst of translated code, where
 * nothing can be told. */
void ht_system_stack_grown(Addr start, SizeT length);
/* sites.c, pin.c: a child of fork begins, with a stream of its own. */
void ht_sites_child(void);
void ht_pin_child(void);

#endif
