/* Gaussian elimination over the field of two elements, each row carrying the history of what was added to it. */
#include "matrix.h"

#include <stdlib.h>

#include "../storage/storage.h"
#include "integer.h"

struct matrix {
    size_t rows, columns, words; /* words: of a row, history included */
    uint64_t **row;
};

static size_t words_for(size_t bits) { return (bits + 63) / 64; }

matrix *matrix_new(size_t rows, size_t columns) {
    matrix *m = allocate(1, sizeof *m);
    m->rows = rows;
    m->columns = columns;
    m->words = words_for(columns) + words_for(rows);
    m->row = allocate(rows, sizeof *m->row);
    for (size_t i = 0; i < rows; i++) {
        m->row[i] = allocate(m->words, sizeof **m->row);
        m->row[i][words_for(columns) + i / 64] |= UINT64_C(1) << i % 64;
    }
    return m;
}

void matrix_free(matrix *m) {
    for (size_t i = 0; i < m->rows; i++) give_back(m->row[i]);
    give_back(m->row);
    give_back(m);
}

void matrix_flip(matrix *m, size_t row, size_t column) { m->row[row][column / 64] ^= UINT64_C(1) << column % 64; }

static bool bit(const matrix *m, size_t row, size_t column) { return m->row[row][column / 64] >> column % 64 & 1; }

void matrix_eliminate(matrix *m) {
    size_t done = 0;
    for (size_t column = 0; column < m->columns && done < m->rows; column++) {
        size_t pivot = done;
        while (pivot < m->rows && !bit(m, pivot, column)) pivot++;
        if (pivot == m->rows) continue;
        uint64_t *found = m->row[pivot];
        m->row[pivot] = m->row[done];
        m->row[done++] = found;
        for (size_t i = done; i < m->rows; i++)
            if (bit(m, i, column))
                for (size_t word = 0; word < m->words; word++) m->row[i][word] ^= found[word];
    }
}

bool matrix_is_zero(const matrix *m, size_t row) {
    for (size_t word = 0; word < words_for(m->columns); word++)
        if (m->row[row][word]) return false;
    return true;
}

bool matrix_has(const matrix *m, size_t row, size_t member) {
    return m->row[row][words_for(m->columns) + member / 64] >> member % 64 & 1;
}
