/* heaptoll_events.h: how a program marks its requests, so that heaptoll can report how long each took and how near it
 * was to a collection of the memory manager.
 *
 *     heaptoll_event_begin();
 *     answer(request);
 *     heaptoll_event_end(kind);
 *
 * There is nothing to link with. When the program runs under heaptoll's events layer, the two calls record the time:
 * both together take less than 30 ns. Otherwise they are a load, a test and no call: about 1 ns.
 *
 * A thread has at most one request at a time: requests are not nested, but each thread has its own. `kind` is the
 * program's own numbering of its sorts of requests. A request that is begun and never ended is not recorded; an end
 * without a beginning does nothing; a second beginning takes the place of the first. A request that is begun before
 * fork ends in the parent. A signal handler that marks a request takes the place of the one that it interrupts.
 *
 * C11 or later (or C99 with GNU's extensions), and C++11 or later; position-independent or not; static programs have no
 * layers, and there the calls do nothing. Distributed under MIT or Apache-2.0.
 */
#ifndef HEAPTOLL_EVENTS_H
#define HEAPTOLL_EVENTS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The layer's exports. They are looked up by the dynamic linker and are null where there is no layer.
 *
 * A weak reference suffices, with one exception: a program that is not position-independent has the address
 * written into its code when it is linked, as null, for good. So on x86-64 the address is always read from the global
 * offset table, which the dynamic linker fills in. */
typedef void (*heaptoll_event_begin_function)(void);
typedef void (*heaptoll_event_end_function)(uint32_t kind);

#if defined(__x86_64__) && defined(__LP64__) && defined(__ELF__) && defined(__GNUC__)

#define HEAPTOLL_EVENT_FUNCTION(name, function) \
    __asm__(".weak " name "\n\tmovq " name "@GOTPCREL(%%rip), %0" : "=r"(function))

static inline void heaptoll_event_begin(void) {
    heaptoll_event_begin_function begin;
    HEAPTOLL_EVENT_FUNCTION("heaptoll_event_begin_v1", begin);
    if (__builtin_expect(begin != 0, 0)) begin();
}

static inline void heaptoll_event_end(uint32_t kind) {
    heaptoll_event_end_function end;
    HEAPTOLL_EVENT_FUNCTION("heaptoll_event_end_v1", end);
    if (__builtin_expect(end != 0, 0)) end(kind);
}

#else

/* heaptoll runs on x86-64; elsewhere the calls only have to compile. */
static inline void heaptoll_event_begin(void) { }
static inline void heaptoll_event_end(uint32_t kind) { (void)kind; }

#endif

#ifdef __cplusplus
}
#endif

#endif
