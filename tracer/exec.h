/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Images that replace a process's image.
 */
#ifndef HT_EXEC_H
#define HT_EXEC_H

#include "core.h"

/* Whether a system call replaces the image. */
Bool ht_is_exec(UInt number);
/* Before every system call; and after one that should have replaced the image and did not. */
void ht_exec_before(UInt number, const UWord *arguments);
void ht_exec_after(void);
/* Before every fork. */
void ht_exec_forks(ThreadId tid);

#endif
