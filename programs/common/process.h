/* What a program reports of its own run. */
#ifndef COMMON_PROCESS_H
#define COMMON_PROCESS_H

#include <stdio.h>
#include <time.h>

/* By the monotonic clock. */
static inline double monotonic_s(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* The most memory resident so far, of this program alone, in KiB; getrusage counts what ran in the process before exec,
 * too. Negative if unknown. */
static inline long peak_rss_kib(void) {
    FILE *status = fopen("/proc/self/status", "r");
    if (!status) return -1;
    char line[128];
    long kib = -1;
    while (kib < 0 && fgets(line, sizeof line, status)) sscanf(line, "VmHWM: %ld kB", &kib);
    fclose(status);
    return kib;
}

#endif
