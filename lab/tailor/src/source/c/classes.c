/* ---- Classes: blocks of one size without words in front, cut from chunks. A chunk is a block of the general heap that
 * begins with a unit; the table of units has its class, by which free finds it. ---- */

/* What is left of a class's newest chunk, and batches of free blocks that threads gave up. A batch is a chain of blocks
 * whose first links the next batch in its second word. */
static struct class {
    byte *fresh, *end, *populated;
    void **batches;
} classes[CLASSES];

static bool new_chunk(unsigned class) {
    size_t bytes = chunk_units[class] * UNIT;
    byte *chunk = take(bytes, UNIT);
    if (!chunk)
        return false;
    memset(region + (chunk - region) / UNIT, class, chunk_units[class]);
    classes[class].fresh = chunk;
    classes[class].populated = (byte *)round_up((uintptr_t)chunk, PAGE);
    classes[class].end = chunk + bytes - 8;
    return true;
}

/* Has the system map several pages at once, of classes whose blocks will certainly fill them. */
static void populate(unsigned class) {
    struct class *of = &classes[class];
    byte *end = of->populated + populate_pages[class] * PAGE;
    byte *last = (byte *)round_up((uintptr_t)of->end, PAGE);
    if (end > last)
        end = last;
    if (end > of->populated)
        madvise(of->populated, end - of->populated, MADV_POPULATE_WRITE);
    of->populated = end;
}

/* A chain of fresh blocks, those that begin in one page, so that no page is touched before it is needed. */
static void **cut_page(unsigned class) {
    size_t size = block_bytes[class];
    struct class *of = &classes[class];
    if ((size_t)(of->end - of->fresh) < size && !new_chunk(class))
        return NULL;
    if (populate_pages[class] && of->fresh + size > of->populated)
        populate(class);
    byte *first = of->fresh, *last = first, *page_end = (byte *)round_up((uintptr_t)first + 1, PAGE);
    while (last + 2 * size <= page_end && last + 2 * size <= of->end) {
        *(void **)last = last + size;
        last += size;
    }
    *(void **)last = NULL;
    of->fresh = last + size;
    return (void **)first;
}

/* A chain of free blocks of a class; null when the system refuses. */
static void **batch_of(unsigned class) {
    void **batch = classes[class].batches;
    if (!batch)
        return cut_page(class);
    classes[class].batches = batch[1];
    return batch;
}

static void give_batch(unsigned class, void **batch) {
    batch[1] = classes[class].batches;
    classes[class].batches = batch;
}
