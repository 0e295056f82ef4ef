/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Instrumentation of the client's code.
 */
#ifndef HT_INSTRUMENT_H
#define HT_INSTRUMENT_H

#include "core.h"

IRSB *ht_instrument(VgCallbackClosure *closure, IRSB *in, const VexGuestLayout *layout,
                    const VexGuestExtents *extents, const VexArchInfo *host, IRType guest_word, IRType host_word);

#endif
