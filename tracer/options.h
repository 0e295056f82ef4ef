/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The options of the command line.
 */
#ifndef HT_OPTIONS_H
#define HT_OPTIONS_H

#include "core.h"

typedef struct {
   const HChar *ring_dir; /* --ring-dir: folder of the rings; NULL: nothing is recorded */
   const HChar *symbols;  /* --symbols: file of names of routines; NULL: those of C and C++ only */
   Int consumer;          /* --consumer: process that reads them; 0: not checked */
   Bool references;       /* --references: record every data reference */
   Bool pointers;         /* --pointers: and stores of pointers into the heap */
   Bool graph;            /* --graph: and every word that then holds one; root points */
   Int roots_every;       /* --roots-every: bytes allocated between root points; 0: chosen as the program runs */
   Bool pin;              /* --pin: the same randomness and the same clock in every run */
   Bool functions;        /* --functions: count the instructions of each function */
   const HChar *only_in;  /* --only-in: end of the path of the only object with routines; NULL: all */
   UInt shift;            /* --shift: pages by which brk begins higher and mappings end lower (brk.c) */
   UInt sites;            /* --sites: frames of a call site; 0: none */
} HtOptions;

extern HtOptions ht_options;

#endif
