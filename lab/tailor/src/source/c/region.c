/* ---- Memory from the system: one reserved region, mapped from its beginning as the heap grows. The region begins with
 * a table of one byte a unit: the size class whose blocks lie there, 0 in the general heap. ---- */

typedef unsigned char byte;

enum { TABLE_STEP_BYTES = 64 << 10 };

static byte *region;          /* the region, and its table of units; null before the first call */
static size_t region_bytes;   /* its length; blocks elsewhere have mappings of their own */
static size_t table_end;      /* bytes of the table that are mapped */
static byte *heap;            /* the heap, behind the table */
static byte *heap_end;        /* the end of what is mapped of it */
static byte *untouched;       /* from here on no byte was ever written: it is zero */

static inline size_t round_up(size_t value, size_t to) { return (value + to - 1) & ~(to - 1); }

/* Reserves the region, a smaller one where the system refuses: at most half of what the process may map. */
static bool reserve_region(void) {
    struct rlimit limit;
    size_t bytes = REGION_BYTES;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        while (bytes > limit.rlim_cur / 2)
            bytes /= 2;
    void *found = MAP_FAILED;
    while (bytes >= MIN_REGION_BYTES) {
        found = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (found != MAP_FAILED)
            break;
        bytes /= 2;
    }
    if (found == MAP_FAILED)
        return false;
    region = found;
    heap = heap_end = untouched = region + round_up(bytes / UNIT, PAGE);
    __atomic_store_n(&region_bytes, bytes, __ATOMIC_RELEASE);
    return true;
}

static bool make_writable(byte *from, byte *to) { return mprotect(from, to - from, PROT_READ | PROT_WRITE) == 0; }

/* Maps the heap up to `end` at least. */
static bool grow_heap(byte *end) {
    if (end > region + region_bytes)
        return false;
    size_t step = (size_t)(heap_end - heap) / 8;
    byte *to = region + round_up((end - region) + (step < GROWTH_BYTES ? GROWTH_BYTES : step), GROWTH_BYTES);
    if (to > region + region_bytes)
        to = region + region_bytes;
    size_t table = round_up((to - region) / UNIT + 1, TABLE_STEP_BYTES);
    if (table > table_end) {
        if (!make_writable(region + table_end, region + table))
            return false;
        table_end = table;
    }
    if (!make_writable(heap_end, to)) {
        to = region + round_up(end - region, PAGE);
        if (!make_writable(heap_end, to))
            return false;
    }
    heap_end = to;
    return true;
}
