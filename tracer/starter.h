/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The owner of a new thread: the program, or its memory manager outside of a call.
 */
#ifndef HT_STARTER_H
#define HT_STARTER_H

#include "core.h"

/* Whether the thread that `parent` is about to start is the manager's own. */
Bool ht_starter_is_manager(ThreadId parent);

#endif
