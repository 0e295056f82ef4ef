/* A program with a seeded defect that a quarantine with check=on must find.
 *
 * A register of names keeps its entries in a list, and a second list of subscribers. leave() takes an entry out of the
 * first and frees it, but leaves it in the second, so that the next message is written into a freed entry. Under a
 * plain malloc this has no effect: the entry's memory has not been reused yet, and the output is right.
 *
 * usage: planted [news|twice|none]
 *   news   write to a freed entry (when nothing is given)
 *   twice  free an entry a second time, while it is held: without a quarantine the C library may end the program
 *   none   neither: the same work without the defect */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    struct entry *next;
    char name[16];
    long message; /* at offset 24 */
    char note[24];
};

static struct entry *entries;
static struct entry *subscribers[8];
static int subscriber_count;

static struct entry *enter(const char *name) {
    struct entry *entry = calloc(1, sizeof *entry);
    if (!entry) {
        fputs("planted: out of memory\n", stderr);
        exit(1);
    }
    snprintf(entry->name, sizeof entry->name, "%s", name);
    entry->next = entries;
    entries = entry;
    return entry;
}

/* Not inlined, and no tail call of its caller: its frame must be on the stack. */
__attribute__((noinline)) static int leave(const char *name) {
    for (struct entry **place = &entries; *place; place = &(*place)->next) {
        struct entry *entry = *place;
        if (strcmp(entry->name, name) == 0) {
            *place = entry->next;
            free(entry);
            return 1;
        }
    }
    return 0;
}

static void notify_subscribers(long message) {
    for (int i = 0; i < subscriber_count; i++) *(volatile long *)&subscribers[i]->message = message;
}

int main(int argc, char **argv) {
    const char *defect = argc > 1 ? argv[1] : "news";
    static const char *const names[] = {"ada", "bob", "cyd", "dot", "eve"};
    for (int i = 0; i < 5; i++) enter(names[i]);
    struct entry *cyd = entries->next->next;
    subscribers[subscriber_count++] = entries;
    if (strcmp(defect, "none") != 0) subscribers[subscriber_count++] = cyd;
    int left = leave("cyd");
    if (strcmp(defect, "news") == 0) notify_subscribers(42);
    if (strcmp(defect, "twice") == 0) free(cyd);
    int count = 0;
    for (struct entry *entry = entries; entry; entry = entry->next) count++;
    printf("%d left, %d stay\n", left, count);
    while (entries) leave(entries->name);
    return 0;
}
