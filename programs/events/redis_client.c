/* A client of a redis server that waits for each answer before its next request, so that the time of a request is its
 * latency. The load is the same in every run with the same arguments. Each request is marked as in heaptoll_events.h:
 * kinds 0 GET, 1 SET, 2 LPUSH, 3 LRANGE, 4 RPOP, 5 DEL.
 *
 * usage: redis-client SOCKET REQUESTS KEYS BYTES [SEED]
 *
 * SOCKET is the server's Unix socket, BYTES the size of the largest value. First every second key is set, in a pipeline,
 * which is not timed.
 *
 * To standard output goes a line with the checksum of all answers (which depends on the server's state too: it must be
 * empty at first), then a line for each kind: name, requests, requests a second, and latencies in us. */
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "../../include/heaptoll_events.h"
#include "common.h"

const char *const program = "redis-client";

enum { KINDS = 6, LISTS = 64, MOST_BYTES = 1 << 20, PIPELINED = 100 };

static const char *const names[KINDS] = { "GET", "SET", "LPUSH", "LRANGE", "RPOP", "DEL" };

static int server;
static unsigned char in[1 << 16];
static size_t in_used, in_read;
static uint64_t sum = FNV_BEGIN, answer_bytes;

static void fail(const char *what) {
    fprintf(stderr, "redis-client: %s: %s\n", what, errno != 0 ? strerror(errno) : "the server closed the connection");
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void send_all(const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t sent = send(server, bytes, length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) fail("cannot send");
        bytes += sent;
        length -= (size_t)sent;
    }
}

static int next_byte(void) {
    while (in_read == in_used) {
        errno = 0;
        ssize_t got = recv(server, in, sizeof in, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) fail("cannot receive");
        in_read = 0;
        in_used = (size_t)got;
    }
    answer_bytes++;
    return in[in_read++];
}

/* Reads a line up to CR LF; returns its length. */
static size_t line(char *text, size_t capacity) {
    size_t length = 0;
    for (int byte = next_byte(); byte != '\r'; byte = next_byte()) {
        if (length + 1 < capacity) text[length++] = (char)byte;
    }
    next_byte();
    text[length] = '\0';
    return length;
}

/* Reads one answer (redis protocol, version 2) and folds it into the checksum. */
static void answer(void) {
    char text[256];
    size_t length = line(text, sizeof text);
    sum = fold(sum, text, length);
    if (text[0] == '-') {
        fprintf(stderr, "redis-client: the server replied %s\n", text + 1);
        exit(1);
    }
    if (text[0] == '$') {
        long long bytes = atoll(text + 1);
        for (long long i = 0; i < bytes; i++) {
            int byte = next_byte();
            if (i < 16) sum = fold_number(sum, (uint64_t)byte);
        }
        if (bytes >= 0) {
            next_byte();
            next_byte();
        }
    } else if (text[0] == '*') {
        for (long long left = atoll(text + 1); left > 0; left--) answer();
    }
}

/* A command under construction. */
static char *out;
static size_t out_used;

static void word(const char *bytes, size_t length) {
    out_used += (size_t)sprintf(out + out_used, "$%zu\r\n", length);
    memcpy(out + out_used, bytes, length);
    out_used += length;
    memcpy(out + out_used, "\r\n", 2);
    out_used += 2;
}

static void command(int words, const char *name) {
    out_used += (size_t)sprintf(out + out_used, "*%d\r\n", words);
    word(name, strlen(name));
}

static void key_word(const char *kind, uint64_t key) {
    char text[48];
    word(text, (size_t)snprintf(text, sizeof text, "%s:%012llu", kind, (unsigned long long)key));
}

static void value_word(char *value, uint64_t most, uint64_t *random) {
    size_t bytes = (size_t)(1 + below(random, most));
    snprintf(value, 20, "%016llx", (unsigned long long)next_random(random));
    value[16] = 'x';
    word(value, bytes);
}

static int by_size(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

static void connect_to(const char *path) {
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof address.sun_path) {
        fprintf(stderr, "redis-client: the path of a socket has less than %zu bytes: %s\n", sizeof address.sun_path, path);
        exit(2);
    }
    strcpy(address.sun_path, path);
    server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (server < 0 || connect(server, (struct sockaddr *)&address, sizeof address) != 0) fail(path);
}

int main(int argc, char **argv) {
    if (argc < 5 || argc > 6) {
        fprintf(stderr, "usage: redis-client SOCKET REQUESTS KEYS BYTES [SEED]\n");
        return 2;
    }
    uint64_t requests = number(argv[2], "REQUESTS", 1, UINT64_C(1) << 30);
    uint64_t keys = number(argv[3], "KEYS", 1, UINT64_C(1) << 30);
    uint64_t bytes = number(argv[4], "BYTES", 16, MOST_BYTES);
    uint64_t random = argc > 5 ? number(argv[5], "SEED", 1, UINT64_MAX) : 19;
    connect_to(argv[1]);
    out = must(malloc((bytes + 256) * PIPELINED));
    char *value = must(malloc(bytes + 32));
    memset(value, 'x', bytes + 32);

    for (uint64_t key = 0; key < keys;) {
        unsigned sent = 0;
        for (out_used = 0; sent < PIPELINED && key < keys; sent++, key += 2) {
            command(3, "SET");
            key_word("key", key);
            value_word(value, bytes, &random);
        }
        send_all(out, out_used);
        while (sent-- > 0) answer();
    }

    uint32_t *latencies[KINDS]; /* ns */
    uint64_t of_kind[KINDS] = { 0 };
    for (int kind = 0; kind < KINDS; kind++) latencies[kind] = must(calloc(requests, sizeof **latencies));
    uint64_t begun = now_ns();
    for (uint64_t request = 0; request < requests; request++) {
        uint64_t coins = below(&random, 100), key = skewed(&random, keys), list = below(&random, LISTS);
        uint32_t kind = coins < 40 ? 0 : coins < 70 ? 1 : coins < 80 ? 2 : coins < 85 ? 3 : coins < 95 ? 4 : 5;
        out_used = 0;
        switch (kind) {
        case 0:
        case 5:
            command(2, names[kind]);
            key_word("key", key);
            break;
        case 1:
            command(3, "SET");
            key_word("key", key);
            value_word(value, bytes, &random);
            break;
        case 2:
            command(3, "LPUSH");
            key_word("list", list);
            value_word(value, bytes, &random);
            break;
        case 3:
            command(4, "LRANGE");
            key_word("list", list);
            word("0", 1);
            word("9", 1);
            break;
        default:
            command(2, "RPOP");
            key_word("list", list);
            break;
        }
        uint64_t from = now_ns();
        heaptoll_event_begin();
        send_all(out, out_used);
        answer();
        heaptoll_event_end(kind);
        uint64_t took = now_ns() - from;
        latencies[kind][of_kind[kind]++] = took < UINT32_MAX ? (uint32_t)took : UINT32_MAX;
    }
    double seconds = (double)(now_ns() - begun) / 1e9;

    printf("%llu requests, %llu bytes of answers, checksum %016llx\n", (unsigned long long)requests,
           (unsigned long long)answer_bytes, (unsigned long long)sum);
    for (int kind = 0; kind < KINDS; kind++) {
        uint64_t count = of_kind[kind];
        if (count == 0) continue;
        qsort(latencies[kind], count, sizeof **latencies, by_size);
        printf("%s: %llu requests, %.0f requests/s, p50 %.1f us, p99 %.1f us, most %.1f us\n", names[kind],
               (unsigned long long)count, (double)count / seconds, latencies[kind][count / 2] / 1e3,
               latencies[kind][count * 99 / 100] / 1e3, latencies[kind][count - 1] / 1e3);
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
