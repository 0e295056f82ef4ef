/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What was asked for on the command line.
 */
#ifndef HT_OPTIONS_H
#define HT_OPTIONS_H

#include "core.h"

typedef struct {
   const HChar *ring_dir; /* --ring-dir: where rings are made; NULL: nothing is told */
   Int consumer;          /* --consumer: process that reads them; 0: nobody looks whether it lives */
   Bool references;       /* --references: tell every data reference */
   Bool pointers;         /* --pointers: and stores of pointers into the heap */
   Bool pin;              /* --pin: the same randomness and the same clock in every run */
   UInt sites;            /* --sites: frames of a call site; 0: none */
} HtOptions;

extern HtOptions ht_options;

#endif
