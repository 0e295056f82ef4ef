/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Signal handlers of the client, as frames of a thread.
 */
#ifndef HT_SIGNAL_H
#define HT_SIGNAL_H

#include "thread.h"

void ht_signal_register(void);
/* Client code is about to run: handlers that were set up are entered now. */
void ht_signal_begins(ThreadId tid, HtThread *thread);

#endif
