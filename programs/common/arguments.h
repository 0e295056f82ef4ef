/* Numbers on the command line. */
#ifndef COMMON_ARGUMENTS_H
#define COMMON_ARGUMENTS_H

#include "checked.h"

/* A number from `least` to `most`; anything else ends the program with status 2. */
static inline uint64_t number(const char *text, const char *name, uint64_t least, uint64_t most) {
    char *end;
    errno = 0;
    unsigned long long value = text[0] >= '0' && text[0] <= '9' ? strtoull(text, &end, 10) : (end = (char *)text, 0);
    if (errno != 0 || end == text || *end != '\0' || value < least || value > most) {
        fprintf(stderr, "%s: %s is a number from %llu to %llu, not '%s'\n", program, name, (unsigned long long)least,
                (unsigned long long)most, text);
        exit(2);
    }
    return value;
}

#endif
