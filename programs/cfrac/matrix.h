/* Vectors over the field of two elements, and the search for those that cancel. */
#ifndef MATRIX_H
#define MATRIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct matrix matrix;

matrix *matrix_new(size_t rows, size_t columns);
void matrix_free(matrix *m);
void matrix_flip(matrix *m, size_t row, size_t column);
/* Eliminates; afterwards each row that is zero stands for a set of original rows whose sum is zero. */
void matrix_eliminate(matrix *m);
bool matrix_is_zero(const matrix *m, size_t row);
/* Whether the original row `member` is in the sum that `row` has become. */
bool matrix_has(const matrix *m, size_t row, size_t member);

#endif
