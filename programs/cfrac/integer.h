/* Non-negative integers of any size: immutable, counted, each a heap object of its own.
 *
 * An operation borrows its operands and returns a new object with one reference, which the caller owes a release. This
 * is how symbolic-algebra libraries of the eighties held numbers, and what makes the factoriser a program that lives
 * from its memory manager. */
#ifndef INTEGER_H
#define INTEGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct integer integer;

integer *integer_retain(integer *a);
void integer_release(integer *a);
/* Puts `value` in place of what `*place` held, which is released. */
void integer_set(integer **place, integer *value);

integer *integer_of(uint64_t value);
/* NULL when the text is not a decimal number. */
integer *integer_read(const char *text);
/* The caller frees the text. */
char *integer_text(const integer *a);

int integer_compare(const integer *a, const integer *b);
bool integer_is(const integer *a, uint32_t value);
unsigned integer_bits(const integer *a);

integer *integer_add(const integer *a, const integer *b);
/* The absolute value of the difference. */
integer *integer_difference(const integer *a, const integer *b);
integer *integer_multiply(const integer *a, const integer *b);
/* Returns the quotient; the remainder goes to `*remainder` where that is not NULL. */
integer *integer_divide(const integer *a, const integer *b, integer **remainder);
integer *integer_divide_small(const integer *a, uint32_t b, uint32_t *remainder);
uint32_t integer_modulo_small(const integer *a, uint32_t b);
integer *integer_modulo(const integer *a, const integer *b);
integer *integer_multiply_modulo(const integer *a, const integer *b, const integer *modulus);
integer *integer_power_modulo(const integer *base, const integer *exponent, const integer *modulus);
/* The largest integer whose power of `degree` is not above `a`. */
integer *integer_root(const integer *a, uint32_t degree);
integer *integer_gcd(const integer *a, const integer *b);
bool integer_is_prime(const integer *a);

/* Memory of anything else the program needs; ends the program when there is none. */
void *allocate(size_t count, size_t size);

#endif
