/* Searches by regular expression in a text with an index: the index of words names the lines that may match, the
 * expression is compiled and tried on them, and the lines that match are the answer. The C library's regular
 * expressions allocate while they compile and while they match. Each search is marked as in heaptoll_events.h: kinds 0
 * two words in order, 1 words with the same beginning, 2 one of three words near a comma.
 *
 * usage: search SEARCHES FILE [SEED]
 *
 * FILE is a text, a sentence a line. The checksum of all answers goes to standard output, the same in every run with the
 * same arguments. */
#include <regex.h>

#include "../../include/heaptoll_events.h"
#include "common.h"

const char *const program = "search";

/* Lines that are tried in one search, at most. */
enum { TRIED = 12, LONGEST_WORD = 40 };

struct word {
    struct word *next;
    uint32_t *lines; /* where it occurs, in order, each once */
    uint32_t count, capacity;
    uint32_t length;
    char text[];
};

static char **lines;
static size_t line_count, line_capacity;
static struct word **table;
static size_t mask;
/* All words, in the order of their first occurrence: those that occur often come early. */
static struct word **words;
static size_t word_count, word_capacity;

static struct word *word_of(const char *text, size_t length) {
    struct word **link = &table[fold(FNV_BEGIN, text, length) & mask];
    while (*link != NULL && ((*link)->length != length || memcmp((*link)->text, text, length) != 0)) {
        link = &(*link)->next;
    }
    if (*link == NULL) {
        struct word *word = must(calloc(1, sizeof *word + length + 1));
        word->length = (uint32_t)length;
        memcpy(word->text, text, length);
        *link = word;
        if (word_count == word_capacity) {
            word_capacity = word_capacity == 0 ? 1024 : word_capacity * 2;
            words = must(realloc(words, word_capacity * sizeof *words));
        }
        words[word_count++] = word;
    }
    return *link;
}

static int letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Enters the words of a line into the index, in lower case. */
static void enter(const char *line, uint32_t at) {
    while (*line != '\0') {
        char text[LONGEST_WORD];
        size_t length = 0;
        for (; letter(*line); line++) {
            if (length < LONGEST_WORD) text[length++] = (char)(*line | 0x20);
        }
        if (length > 0) {
            struct word *word = word_of(text, length);
            if (word->count == 0 || word->lines[word->count - 1] != at) {
                if (word->count == word->capacity) {
                    word->capacity = word->capacity == 0 ? 4 : word->capacity * 2;
                    word->lines = must(realloc(word->lines, word->capacity * sizeof *word->lines));
                }
                word->lines[word->count++] = at;
            }
        } else {
            line++;
        }
    }
}

static void read_text(const char *path) {
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fprintf(stderr, "search: cannot open %s: %s\n", path, strerror(errno));
        exit(2);
    }
    table = must(calloc(1 << 16, sizeof *table));
    mask = (1 << 16) - 1;
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    while ((length = getline(&line, &capacity, file)) > 0) {
        if (line[length - 1] == '\n') line[--length] = '\0';
        if (line_count == line_capacity) {
            line_capacity = line_capacity == 0 ? 1024 : line_capacity * 2;
            lines = must(realloc(lines, line_capacity * sizeof *lines));
        }
        lines[line_count] = must(malloc((size_t)length + 1));
        memcpy(lines[line_count], line, (size_t)length + 1);
        enter(line, (uint32_t)line_count++);
    }
    if (ferror(file)) {
        fprintf(stderr, "search: cannot read %s: %s\n", path, strerror(errno));
        exit(2);
    }
    free(line);
    fclose(file);
    if (word_count == 0) {
        fprintf(stderr, "search: there are no words in %s\n", path);
        exit(2);
    }
}

/* Tries the expression on lines that a word occurs in; gives the answer's checksum. */
static uint64_t search(const char *expression, int flags, const struct word *word, uint64_t first, uint64_t *matches) {
    regex_t compiled;
    int error = regcomp(&compiled, expression, REG_EXTENDED | flags);
    if (error != 0) {
        char text[128];
        regerror(error, &compiled, text, sizeof text);
        fprintf(stderr, "search: %s: %s\n", expression, text);
        exit(error == REG_ESPACE ? 1 : 3);
    }
    char **answer = NULL;
    size_t found = 0;
    uint64_t sum = FNV_BEGIN;
    for (uint32_t i = 0; i < TRIED && i < word->count; i++) {
        const char *line = lines[word->lines[(first + i) % word->count]];
        regmatch_t match[2];
        error = regexec(&compiled, line, 2, match, 0);
        if (error == REG_ESPACE) must(NULL);
        if (error != 0) continue;
        answer = must(realloc(answer, (found + 1) * sizeof *answer));
        answer[found++] = must(strdup(line));
        sum = fold_number(sum, (uint64_t)match[0].rm_so << 32 | (uint64_t)match[0].rm_eo);
    }
    for (size_t i = 0; i < found; i++) {
        sum = fold(sum, answer[i], 8);
        free(answer[i]);
    }
    free(answer);
    regfree(&compiled);
    *matches += found;
    return sum;
}

int main(int argc, char **argv) {
    if (argc < 3 || argc > 4) {
        fprintf(stderr, "usage: search SEARCHES FILE [SEED]\n");
        return 2;
    }
    uint64_t searches = number(argv[1], "SEARCHES", 1, UINT64_C(1) << 40);
    uint64_t random = argc > 3 ? number(argv[3], "SEED", 1, UINT64_MAX) : 17;
    read_text(argv[2]);

    uint64_t sum = FNV_BEGIN, of_kind[3] = { 0 }, matches = 0;
    char expression[4 * LONGEST_WORD + 64];
    for (uint64_t at = 0; at < searches; at++) {
        const struct word *word = words[skewed(&random, word_count)];
        const char *others[2] = { words[skewed(&random, word_count)]->text, words[skewed(&random, word_count)]->text };
        uint64_t coins = below(&random, 100), first = below(&random, word->count);
        uint32_t kind = coins < 40 ? 0 : coins < 75 ? 1 : 2;
        heaptoll_event_begin();
        uint64_t answer;
        switch (kind) {
        case 0:
            snprintf(expression, sizeof expression, "(^| )%s[ ,].*%.3s[a-z]*", word->text, others[0]);
            answer = search(expression, REG_ICASE, word, first, &matches);
            break;
        case 1:
            snprintf(expression, sizeof expression, "%.4s[a-z]*( [a-z]+)?", word->text);
            answer = search(expression, 0, word, first, &matches);
            break;
        default:
            snprintf(expression, sizeof expression, "(%s|%s|%s)[a-z ]*,", word->text, others[0], others[1]);
            answer = search(expression, 0, word, first, &matches);
            break;
        }
        heaptoll_event_end(kind);
        sum = fold_number(sum, answer);
        of_kind[kind]++;
    }
    printf("%zu lines, %zu words, %llu + %llu + %llu searches, %llu matches, checksum %016llx\n", line_count, word_count,
           (unsigned long long)of_kind[0], (unsigned long long)of_kind[1], (unsigned long long)of_kind[2],
           (unsigned long long)matches, (unsigned long long)sum);
    return fflush(stdout) == 0 ? 0 : 1;
}
