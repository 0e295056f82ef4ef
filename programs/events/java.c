/* java.c: marks the requests of a program in Java (programs/originals/lucene/Requests.java). The first two arguments are
 * JNI's environment and class, which are not used; so no header of a JDK is needed. */
#include <stdint.h>

#include "../../include/heaptoll_events.h"

void Java_Requests_begin(void *environment, void *class) {
    (void)environment;
    (void)class;
    heaptoll_event_begin();
}

void Java_Requests_end(void *environment, void *class, int32_t kind) {
    (void)environment;
    (void)class;
    heaptoll_event_end((uint32_t)kind);
}
