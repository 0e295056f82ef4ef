/* holder.c: a library that is opened and closed, whose data hold the only pointers to blocks. */
static void *volatile words[64];
static __thread void *volatile thread_words[64];

void *volatile *holder_words(void) { return words; }
void *volatile *holder_thread_words(void) { return thread_words; }
