/* ---- The malloc family. ---- */

#define EXPORT __attribute__((visibility("default")))
#define likely(condition) __builtin_expect(!!(condition), 1)
#define unlikely(condition) __builtin_expect(!!(condition), 0)

/* Larger alignments leave much between blocks: such blocks have mappings of their own. */
enum { LARGEST_ALIGN_BYTES = 64 << 10 };

/* What is in front of a block with a mapping of its own. */
struct mapping {
    byte *start;
    size_t bytes;
};

static inline struct mapping *mapping_of(void *block) { return (struct mapping *)block - 1; }

static void *no_memory(void) {
    errno = ENOMEM;
    return NULL;
}

static void *map_block(size_t bytes, size_t align) {
    size_t length = round_up(bytes + sizeof(struct mapping) + (align > 16 ? align : 0), PAGE);
    byte *start = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return no_memory();
    byte *block = (byte *)round_up((uintptr_t)start + sizeof(struct mapping), align);
    *mapping_of(block) = (struct mapping){start, length};
    return block;
}

static inline size_t offset_of(void *block) { return (uintptr_t)block - (uintptr_t)region; }

/* A block of the general heap; of its own mapping where it is large, or the region is full. */
static void *general_block(size_t bytes, size_t align, bool *is_zero) {
    *is_zero = true;
    byte *block = NULL;
    if (bytes < MAP_FROM_BYTES && align <= LARGEST_ALIGN_BYTES) {
        size_t length = round_up(bytes + 8, 16);
        lock();
        if (start_heap()) {
            byte *fresh = untouched;
            block = take(length < MIN_LENGTH ? MIN_LENGTH : length, align);
            *is_zero = block >= fresh;
        }
        unlock();
        if (block)
            return block;
        *is_zero = true;
    }
    return map_block(bytes, align);
}

static __attribute__((noinline)) void *slow_malloc(size_t bytes, bool *is_zero) {
    if (bytes > PTRDIFF_MAX - (size_t)PAGE)
        return no_memory();
    unsigned class = bytes <= LARGEST_CLASS_BYTES ? class_of[(bytes + 15) / 16] : 0;
    *is_zero = false;
    int error = errno;
    void *block = class ? refill(class) : NULL;
    if (!block)
        block = general_block(bytes, 16, is_zero);
    if (block)
        errno = error;
    return block;
}

static __attribute__((noinline)) void *malloc_without_block(size_t bytes) {
    bool is_zero;
    return slow_malloc(bytes, &is_zero);
}

/* The first block of this size's list; null when there is none. */
static inline __attribute__((always_inline)) void *listed(size_t bytes) {
    if (unlikely(bytes > LARGEST_CLASS_BYTES))
        return NULL;
    unsigned class = class_of[(bytes + 15) / 16];
    void **block = lists[class];
    if (likely(block))
        lists[class] = *block;
    return block;
}

EXPORT void *malloc(size_t bytes) {
    void *block = listed(bytes);
    return likely(block) ? block : malloc_without_block(bytes);
}

static __attribute__((noinline)) void free_mapping(void *block) {
    if (!block)
        return;
    int error = errno;
    struct mapping *mapping = mapping_of(block);
    munmap(mapping->start, mapping->bytes);
    errno = error;
}

static __attribute__((noinline)) void free_general(void) {
    byte *block = (byte *)lists[0];
    lists[0] = NULL;
    allowance[0] = 0;
    lock();
    give(block);
    unlock();
}

static __attribute__((noinline)) void slow_free(unsigned class) {
    int error = errno;
    if (class)
        shorten(class);
    else
        free_general();
    errno = error;
}

EXPORT void free(void *block) {
    size_t offset = offset_of(block);
    if (unlikely(offset >= region_bytes)) {
        free_mapping(block);
        return;
    }
    unsigned class = region[offset / UNIT];
    *(void **)block = lists[class];
    lists[class] = block;
    if (unlikely(--allowance[class] < 0))
        slow_free(class);
}

EXPORT void *calloc(size_t count, size_t each) {
    size_t bytes;
    if (unlikely(__builtin_mul_overflow(count, each, &bytes)))
        return no_memory();
    void *block = listed(bytes);
    bool is_zero = false;
    if (unlikely(!block)) {
        block = slow_malloc(bytes, &is_zero);
        if (!block)
            return NULL;
    }
    return is_zero ? block : memset(block, 0, bytes);
}

EXPORT size_t malloc_usable_size(void *block) {
    if (!block)
        return 0;
    size_t offset = offset_of(block);
    if (offset >= region_bytes) {
        struct mapping *mapping = mapping_of(block);
        return mapping->start + mapping->bytes - (byte *)block;
    }
    unsigned class = region[offset / UNIT];
    return class ? block_bytes[class] : length_of(block) - 8;
}

/* Makes a block longer or shorter where it is, or by moving its pages; null when it cannot. */
static void *resized(void *block, size_t bytes) {
    size_t offset = offset_of(block);
    if (offset >= region_bytes) {
        struct mapping *mapping = mapping_of(block);
        if (bytes < MAP_FROM_BYTES / 2 || (byte *)(mapping + 1) != mapping->start + sizeof(struct mapping))
            return NULL;
        size_t length = round_up(bytes + sizeof(struct mapping), PAGE);
        if (length == mapping->bytes)
            return block;
        byte *start = mremap(mapping->start, mapping->bytes, length, MREMAP_MAYMOVE);
        if (start == MAP_FAILED)
            return NULL;
        block = start + sizeof(struct mapping);
        *mapping_of(block) = (struct mapping){start, length};
        return block;
    }
    unsigned class = region[offset / UNIT];
    if (class)
        return bytes <= block_bytes[class] && (bytes > block_bytes[class] / 2 || class_of[(bytes + 15) / 16] == class)
                   ? block
                   : NULL;
    size_t length = round_up(bytes + 8, 16);
    if (bytes >= MAP_FROM_BYTES)
        return NULL;
    lock();
    bool done = resize(block, length < MIN_LENGTH ? MIN_LENGTH : length);
    unlock();
    return done ? block : NULL;
}

EXPORT void *realloc(void *block, size_t bytes) {
    if (!block)
        return malloc(bytes);
    if (!bytes) {
        free(block);
        return NULL;
    }
    if (bytes > PTRDIFF_MAX - (size_t)PAGE)
        return no_memory();
    int error = errno;
    void *kept = resized(block, bytes);
    errno = error;
    if (kept)
        return kept;
    void *moved = malloc(bytes);
    if (!moved)
        return NULL;
    size_t old = malloc_usable_size(block);
    memcpy(moved, block, old < bytes ? old : bytes);
    free(block);
    return moved;
}

EXPORT void *reallocarray(void *block, size_t count, size_t each) {
    size_t bytes;
    return __builtin_mul_overflow(count, each, &bytes) ? no_memory() : realloc(block, bytes);
}

EXPORT void *memalign(size_t align, size_t bytes) {
    if (!align || align & (align - 1)) {
        errno = EINVAL;
        return NULL;
    }
    if (bytes > PTRDIFF_MAX - (size_t)PAGE || align > PTRDIFF_MAX - (size_t)PAGE - bytes)
        return no_memory();
    unsigned class = bytes <= LARGEST_CLASS_BYTES ? class_of[(bytes + 15) / 16] : 0;
    /* Chunks begin with a unit. */
    if (align <= 16 || (class && align <= UNIT && block_bytes[class] % align == 0))
        return malloc(bytes);
    bool is_zero;
    int error = errno;
    void *block = general_block(bytes, align, &is_zero);
    if (block)
        errno = error;
    return block;
}

EXPORT void free_sized(void *block, size_t bytes) {
    (void)bytes;
    free(block);
}

EXPORT void free_aligned_sized(void *block, size_t align, size_t bytes) {
    (void)align, (void)bytes;
    free(block);
}

EXPORT void *aligned_alloc(size_t align, size_t bytes) { return memalign(align, bytes); }

EXPORT int posix_memalign(void **place, size_t align, size_t bytes) {
    if (!align || align & (align - 1) || align % sizeof(void *))
        return EINVAL;
    int error = errno;
    void *block = memalign(align, bytes);
    errno = error;
    if (!block)
        return ENOMEM;
    *place = block;
    return 0;
}

EXPORT void *valloc(size_t bytes) { return memalign(PAGE, bytes); }

EXPORT void *pvalloc(size_t bytes) {
    return bytes > PTRDIFF_MAX - (size_t)PAGE ? no_memory() : memalign(PAGE, round_up(bytes, PAGE));
}
