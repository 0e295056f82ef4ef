/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The words that the tracer writes: the format and its numbers. They are a contract between two programs, this tool and
 * its consumer, which shares no line of code with it; a number that is changed here must be changed there.
 *
 * A word whose highest bit is clear is a reference: address in bits 0 to 47, bytes in bits 48 to 57, bit 62 set for a
 * store. A word whose highest bit is set is an event: kind in bits 56 to 62, payload in bits 0 to 55, then as many
 * words as the kind has. No word that is written is 0.
 */
#ifndef HT_WORDS_H
#define HT_WORDS_H

#define HT_EVENT (1ULL << 63)
#define HT_STORE (1ULL << 62)
#define HT_SIZE_SHIFT 48
#define HT_SIZE_MAX 1023
#define HT_ADDRESS ((1ULL << 48) - 1)
#define HT_KIND_SHIFT 56
#define HT_PAYLOAD ((1ULL << 56) - 1)

/* The bits above the address in a reference of `size` bytes. */
#define HT_REFERENCE(size, store) (((ULong)(size) << HT_SIZE_SHIFT) | ((store) ? HT_STORE : 0))
/* The word of an event. */
#define HT_WORD(kind, payload) (HT_EVENT | ((ULong)(kind) << HT_KIND_SHIFT) | ((ULong)(payload) & HT_PAYLOAD))

/* I: instructions of the thread that runs; M: its loads in the lower, its stores in the upper 32 bits, both wrapping. */
enum {
   HT_NOTHING = 0,          /* a guarded reference that was not made */
   HT_THREAD = 1,           /* payload: the thread that runs now */
   HT_ENTER = 2,            /* payload: routine + 256 x family; I, M, three arguments */
   HT_LEAVE = 3,            /* payload: routine + 256 x family + 65536 x (1 + another family that it called, or 0); I, M, the
                               block it returned */
   HT_ABANDON = 4,          /* payload: routine; I, M */
   HT_SIGNAL = 5,           /* payload: signal; I, M */
   HT_SIGNAL_END = 6,       /* I, M */
   HT_ANNOUNCED = 7,        /* payload: heaptoll_event_kind; I, M, value */
   HT_MAP = 8,              /* payload: protection + 8 x origin; address, length */
   HT_UNMAP = 9,            /* address, length */
   HT_PROTECT = 10,         /* payload: protection; address, length */
   HT_KERNEL_LOAD = 11,     /* payload: bytes; address */
   HT_KERNEL_STORE = 12,    /* payload: bytes; address */
   HT_REFUSED = 13,         /* payload: errno + 4096 x system call */
   HT_SITE = 14,            /* payload: call site of the next HT_ENTER */
   HT_SITE_DEFINITION = 15, /* payload: frames + 256 x site; return addresses, innermost first */
   HT_TEXT = 16,            /* payload: bytes + 2^32 x HT_TEXT_...; a word, the bytes padded with zeroes */
   HT_POINTER = 17,         /* payload: the pointer that the last store wrote + 2^48 x the aligned word of those it
                               wrote to, from 0 */
   HT_TICK = 18,            /* I, M */
   HT_THREAD_START = 19,    /* payload: the new thread; the thread that started it, HT_BY_MANAGER */
   HT_THREAD_END = 20,      /* payload: the thread that ended; I, M */
   HT_FORK = 21,            /* payload: number of the child */
   HT_EXEC = 22,            /* I, M */
   HT_END = 23,             /* payload: status; I, M */
   HT_SKIP = 24,            /* padding: as many words as the payload states */
   HT_MAIN = 25,            /* the program's main begins; I, M */
   HT_WORD_AT = 26,         /* payload: the pointer in a word that the kernel wrote; the word's address */
   HT_ROOTS = 27,           /* payload: 1: a root point begins, 0: it ends */
   HT_ROOT = 28,            /* payload: a word that may be a pointer + 2^48 x HT_ROOT_... */
   HT_REQUEST = 29,         /* payload: 1: a request begins, 0: it ends */
   HT_EXIT = 30,            /* exit begins */
   HT_WAITED = 31           /* payload: ns that the clock of --pin passed in a wait that its timeout ended */
};

/* Flag of the thread that started another: code of the manager did, also outside of its routines. */
#define HT_BY_MANAGER (1ULL << 32)

/* Kinds of HT_TEXT; in brackets the word that precedes the bytes. */
enum {
   HT_TEXT_FRAME = 1,         /* name of a frame (its address); one for each inlined function, innermost first */
   HT_TEXT_OBJECT = 2,        /* object file that was loaded (address of its text) */
   HT_TEXT_WARNING = 3,       /* a message for the user (0) */
   HT_TEXT_ROUTINE_OBJECT = 4, /* object that contains a routine (routine + 256 x family) */
   HT_TEXT_FRAME_OBJECT = 5,  /* address in the object in hexadecimal, a blank, the object that contains a frame (its address) */
   HT_TEXT_FUNCTION = 6,      /* object, zero byte, symbol of a function; either may be empty (its instructions) */
   HT_TEXT_INLINED = 7,       /* object in which a function that only routines call was called from elsewhere (256 x family) */
   HT_TEXT_CALLER = 8         /* as HT_TEXT_FUNCTION, of a caller of the standard library (instructions of that for it) */
};

/* Where an HT_ROOT lies. */
enum { HT_ROOT_REGISTER = 0, HT_ROOT_STACK = 1, HT_ROOT_STATIC = 2, HT_ROOT_MAPPING = 3 };

/* Protection bits and origins of an HT_MAP. */
enum { HT_READ = 1, HT_WRITE = 2, HT_EXECUTE = 4 };
enum {
   HT_ORIGIN_START = 0,
   HT_ORIGIN_MMAP = 1,
   HT_ORIGIN_BRK = 2,
   HT_ORIGIN_MREMAP = 3,
   HT_ORIGIN_STACK = 4
};

/* Routines of the malloc family. */
enum {
   HT_MALLOC = 1,
   HT_FREE = 2, /* and cfree */
   HT_CALLOC = 3,
   HT_REALLOC = 4,
   HT_REALLOCARRAY = 5,
   HT_MEMALIGN = 6,
   HT_POSIX_MEMALIGN = 7,
   HT_ALIGNED_ALLOC = 8,
   HT_VALLOC = 9, /* and pvalloc */
   HT_USABLE_SIZE = 10,
   HT_NEW = 11, /* every operator new without an alignment */
   HT_NEW_ALIGNED = 12,
   HT_DELETE = 13, /* every operator delete */
   HT_ROUTINES = 14
};

#endif
