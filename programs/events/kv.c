/* Key-value requests on a hash table in memory, as a cache server has them: every entry and every value is a block of
 * its own. A request gets, puts or deletes a batch of keys that are drawn with a skew, and gathers its answer in a
 * block that it frees at its end. Each is marked as in heaptoll_events.h: kinds 0 get, 1 put, 2 delete.
 *
 * usage: kv REQUESTS KEYS [SEED]
 *
 * The checksum of all answers goes to standard output, the same in every run with the same arguments. */
#include "../../include/heaptoll_events.h"
#include "../storage/storage.h"
#include "common.h"

const char *const program = "kv";

/* Keys in a request of each kind: so many that a request takes some 10 us. */
enum { GETS = 32, PUTS = 20, DELETES = 24 };

struct entry {
    struct entry *next;
    uint64_t hash;
    unsigned char *value;
    uint32_t value_bytes;
    uint32_t key_bytes;
    char key[];
};

static struct entry **table;
static uint64_t mask, entries;

/* The common types: entries, and values as far as they are small. */
static struct kinds entry_kinds, value_kinds;

/* The text of a key. Keys that are requested often are not adjacent in the table. */
static size_t key_text(uint64_t key, char *text) {
    return (size_t)snprintf(text, 48, "user:%08llx:session:%llu",
                            (unsigned long long)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32), (unsigned long long)key);
}

static struct entry **find(const char *key, size_t length, uint64_t *hash) {
    *hash = fold(FNV_BEGIN, key, length);
    struct entry **link = &table[*hash & mask];
    while (*link != NULL
           && ((*link)->hash != *hash || (*link)->key_bytes != length || memcmp((*link)->key, key, length) != 0)) {
        link = &(*link)->next;
    }
    return link;
}

/* Mostly some dozens of bytes, now and then some hundreds or thousands. */
static uint32_t value_bytes(uint64_t *random) {
    uint64_t coins = next_random(random);
    uint32_t most = coins % 64 == 0 ? 4096 : coins % 8 == 0 ? 512 : 128;
    return (uint32_t)(16 + below(random, most - 16));
}

static void put(uint64_t number, uint64_t *random) {
    char key[48];
    size_t length = key_text(number, key);
    uint64_t hash;
    struct entry **link = find(key, length, &hash), *entry = *link;
    if (entry == NULL) {
        entry = kinds_take(&entry_kinds, sizeof *entry + length);
        *entry = (struct entry){ .hash = hash, .key_bytes = (uint32_t)length };
        memcpy(entry->key, key, length);
        *link = entry;
        entries++;
    } else {
        kinds_give(&value_kinds, entry->value, entry->value_bytes);
    }
    entry->value_bytes = value_bytes(random);
    entry->value = kinds_take(&value_kinds, entry->value_bytes);
    memset(entry->value, (int)(next_random(random) & 255), entry->value_bytes);
}

/* Gathers the values of the keys that exist; returns the answer's checksum. */
static uint64_t get(uint64_t keys, uint64_t *random) {
    size_t used = 0, capacity = 1024;
    unsigned char *answer = must(malloc(capacity));
    uint64_t sum = FNV_BEGIN;
    for (int i = 0; i < GETS; i++) {
        char key[48];
        size_t length = key_text(skewed(random, keys), key);
        uint64_t hash;
        struct entry *entry = *find(key, length, &hash);
        if (entry == NULL) {
            sum = fold_number(sum, 1);
            continue;
        }
        while (capacity - used < entry->value_bytes) answer = must(realloc(answer, capacity *= 2));
        memcpy(answer + used, entry->value, entry->value_bytes);
        used += entry->value_bytes;
        sum = fold_number(sum, (uint64_t)entry->value[0] << 32 | entry->value_bytes);
    }
    sum = fold(sum, answer, used < 64 ? used : 64);
    give_back(answer);
    return sum;
}

static uint64_t put_many(uint64_t keys, uint64_t *random) {
    for (int i = 0; i < PUTS; i++) put(skewed(random, keys), random);
    return entries;
}

/* Deletes keys from the whole range, and so as many as other requests put there. */
static uint64_t delete_many(uint64_t keys, uint64_t *random) {
    uint64_t deleted = 0;
    for (int i = 0; i < DELETES; i++) {
        char key[48];
        size_t length = key_text(skewed(random, keys), key);
        uint64_t hash;
        struct entry **link = find(key, length, &hash), *entry = *link;
        if (entry == NULL) continue;
        *link = entry->next;
        kinds_give(&value_kinds, entry->value, entry->value_bytes);
        kinds_give(&entry_kinds, entry, sizeof *entry + entry->key_bytes);
        entries--;
        deleted++;
    }
    return deleted << 32 | entries;
}

int main(int argc, char **argv) {
    if (argc < 3 || argc > 4) {
        fprintf(stderr, "usage: kv REQUESTS KEYS [SEED]\n");
        return 2;
    }
    uint64_t requests = number(argv[1], "REQUESTS", 1, UINT64_C(1) << 40);
    uint64_t keys = number(argv[2], "KEYS", 1, UINT64_C(1) << 30);
    uint64_t random = argc > 3 ? number(argv[3], "SEED", 1, UINT64_MAX) : 11;

    uint64_t buckets = 1;
    while (buckets < keys) buckets *= 2;
    mask = buckets - 1;
    /* It never grows: a request that rehashes everything would be none like the others. */
    table = must(calloc(buckets, sizeof *table));
    for (uint64_t key = 0; key < keys; key++) put(key, &random);

    uint64_t sum = FNV_BEGIN, of_kind[3] = { 0 };
    for (uint64_t request = 0; request < requests; request++) {
        uint64_t coins = below(&random, 100), answer;
        uint32_t kind = coins < 60 ? 0 : coins < 90 ? 1 : 2;
        heaptoll_event_begin();
        switch (kind) {
        case 0: answer = get(keys, &random); break;
        case 1: answer = put_many(keys, &random); break;
        default: answer = delete_many(keys, &random); break;
        }
        heaptoll_event_end(kind);
        sum = fold_number(sum, answer);
        of_kind[kind]++;
    }
    printf("%llu gets, %llu puts, %llu deletes, %llu entries, checksum %016llx\n", (unsigned long long)of_kind[0],
           (unsigned long long)of_kind[1], (unsigned long long)of_kind[2], (unsigned long long)entries,
           (unsigned long long)sum);
    return fflush(stdout) == 0 ? 0 : 1;
}
