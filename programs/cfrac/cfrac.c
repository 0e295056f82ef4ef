/* Factors integers by the continued fraction method (Morrison and Brillhart, "A Method of Factoring and the
 * Factorization of F7", 1975).
 *
 * The convergents A/B of the root of kN satisfy A^2 = (-1)^n Q (mod N) with Q below twice the root. Those Q that fall
 * apart over a base of small primes are collected; a subset whose product is a square gives x^2 = y^2 (mod N), and
 * gcd(x - y, N) is a factor as often as not.
 *
 * usage: cfrac NUMBER... */
#include <stdio.h>
#include <stdlib.h>

#include "../storage/storage.h"
#include "integer.h"
#include "matrix.h"

enum { SMALL = 10000, MULTIPLIERS = 60, EARLY = 6 };

/* The primes that can divide a Q: those of which kN is a square, or a multiple. */
typedef struct {
    size_t length;
    uint32_t *prime;
    unsigned patience; /* the bits that may be left of a Q after an eighth of the primes */
} base;

/* One A with A^2 = (-1)^negative * product of prime[i]^exponent[i] (mod N). */
typedef struct {
    integer *a;
    bool negative;
    uint8_t *exponent;
} relation;

static bool is_small_prime(uint32_t n) {
    if (n < 2) return false;
    for (uint32_t d = 2; d * d <= n; d++)
        if (n % d == 0) return false;
    return true;
}

static uint64_t small_power(uint64_t b, uint32_t exponent, uint32_t p) {
    uint64_t result = 1;
    for (b %= p; exponent; exponent >>= 1, b = b * b % p)
        if (exponent & 1) result = result * b % p;
    return result;
}

static base *base_for(const integer *multiple) {
    unsigned bits = integer_bits(multiple);
    base *b = allocate(1, sizeof *b);
    size_t wanted = 20 + bits * bits / 30;
    b->patience = bits / 2 - bits / EARLY;
    b->prime = allocate(wanted, sizeof *b->prime);
    for (uint32_t p = 2; b->length < wanted; p++) {
        if (!is_small_prime(p)) continue;
        uint32_t rest = integer_modulo_small(multiple, p);
        if (p == 2 || rest == 0 || small_power(rest, (p - 1) / 2, p) == 1) b->prime[b->length++] = p;
    }
    return b;
}

static void base_free(base *b) {
    give_back(b->prime);
    give_back(b);
}

/* Divides `q` by the primes of the base as often as they go; NULL when something is left over. A Q from which the
 * smaller primes took little is given up early: it would seldom fall apart, and most of the primes are still to try. */
static uint8_t *exponents(const base *b, integer *q) {
    uint8_t *exponent = NULL;
    integer *left = integer_retain(q);
    for (size_t i = 0; i < b->length && !integer_is(left, 1); i++) {
        if (i == b->length / 8 && integer_bits(left) > b->patience) break;
        while (integer_modulo_small(left, b->prime[i]) == 0) {
            uint32_t rest;
            integer_set(&left, integer_divide_small(left, b->prime[i], &rest));
            if (!exponent) exponent = allocate(b->length, 1);
            exponent[i]++;
        }
    }
    bool smooth = integer_is(left, 1);
    integer_release(left);
    if (!smooth) {
        give_back(exponent);
        return NULL;
    }
    return exponent ? exponent : allocate(b->length, 1);
}

/* Expands the root of `multiple` = kN until there are enough relations, or the period ends. Returns their number. */
static size_t expand(const integer *n, const integer *multiple, const base *b, relation *found, size_t wanted) {
    size_t count = 0;
    integer *root = integer_root(multiple, 2);
    integer *p = integer_of(0), *q = integer_of(1), *partial = integer_retain(root);
    integer *before = integer_of(1), *a = integer_modulo(root, n);
    for (bool negative = true; count < wanted; negative = !negative) {
        /* P' = partial * Q - P;  Q' = (kN - P'^2) / Q;  partial' = (root + P') / Q';  A' = partial' * A + A-before */
        integer *product = integer_multiply(partial, q);
        integer_set(&p, integer_difference(product, p));
        integer_set(&product, integer_multiply(p, p));
        integer_set(&product, integer_difference(multiple, product));
        integer_set(&q, integer_divide(product, q, NULL));
        integer_release(product);
        if (integer_is(q, 0)) break;
        uint8_t *exponent = exponents(b, q);
        if (exponent) found[count++] = (relation){integer_retain(a), negative, exponent};
        if (integer_is(q, 1)) break;
        integer *sum = integer_add(root, p);
        integer_set(&partial, integer_divide(sum, q, NULL));
        integer_set(&sum, integer_multiply(partial, a));
        integer_set(&sum, integer_add(sum, before));
        integer_release(before);
        before = a;
        a = integer_modulo(sum, n);
        integer_release(sum);
    }
    integer *all[] = {root, p, q, partial, before, a};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) integer_release(all[i]);
    return count;
}

/* The factor that a set of relations whose product is a square gives; NULL when it is a trivial one. */
static integer *factor_of(const integer *n, const base *b, const relation *found, size_t count, const matrix *m,
                          size_t row) {
    integer *x = integer_of(1), *y = integer_of(1);
    uint32_t *sum = allocate(b->length, sizeof *sum);
    for (size_t i = 0; i < count; i++) {
        if (!matrix_has(m, row, i)) continue;
        integer_set(&x, integer_multiply_modulo(x, found[i].a, n));
        for (size_t j = 0; j < b->length; j++) sum[j] += found[i].exponent[j];
    }
    for (size_t j = 0; j < b->length; j++) {
        if (!sum[j]) continue;
        integer *prime = integer_of(b->prime[j]), *half = integer_of(sum[j] / 2);
        integer *power = integer_power_modulo(prime, half, n);
        integer_set(&y, integer_multiply_modulo(y, power, n));
        integer_release(prime);
        integer_release(half);
        integer_release(power);
    }
    give_back(sum);
    integer *difference = integer_difference(x, y);
    integer *factor = integer_gcd(difference, n);
    integer_release(difference);
    integer_release(x);
    integer_release(y);
    if (integer_is(factor, 1) || integer_compare(factor, n) == 0) integer_set(&factor, NULL);
    return factor;
}

static integer *split_with(const integer *n, uint32_t multiplier) {
    integer *k = integer_of(multiplier), *multiple = integer_multiply(n, k), *factor = NULL;
    base *b = base_for(multiple);
    size_t wanted = b->length + 11; /* ten more than columns: each dependency fails one time in two */
    relation *found = allocate(wanted, sizeof *found);
    size_t count = expand(n, multiple, b, found, wanted);
    matrix *m = matrix_new(count, b->length + 1);
    for (size_t i = 0; i < count; i++) {
        if (found[i].negative) matrix_flip(m, i, b->length);
        for (size_t j = 0; j < b->length; j++)
            if (found[i].exponent[j] & 1) matrix_flip(m, i, j);
    }
    matrix_eliminate(m);
    for (size_t row = 0; row < count && !factor; row++)
        if (matrix_is_zero(m, row)) factor = factor_of(n, b, found, count, m, row);
    matrix_free(m);
    for (size_t i = 0; i < count; i++) {
        integer_release(found[i].a);
        give_back(found[i].exponent);
    }
    give_back(found);
    base_free(b);
    integer_release(multiple);
    integer_release(k);
    return factor;
}

/* The root of a perfect power, which the method cannot split: all its square roots of a square are trivial ones. */
static integer *power_root(const integer *n) {
    for (uint32_t degree = 2; degree <= integer_bits(n) / 13; degree++) { /* a factor above SMALL has 14 bits */
        if (!is_small_prime(degree)) continue;
        integer *root = integer_root(n, degree), *product = integer_of(1);
        for (uint32_t i = 0; i < degree; i++) integer_set(&product, integer_multiply(product, root));
        bool exact = integer_compare(product, n) == 0;
        integer_release(product);
        if (exact) return root;
        integer_release(root);
    }
    return NULL;
}

/* A proper factor of a composite number without small primes; NULL when no multiplier gives one. */
static integer *split(const integer *n) {
    integer *root = power_root(n);
    if (root) return root;
    for (uint32_t k = 1; k <= MULTIPLIERS; k++) {
        if (k % 4 == 0 || k % 9 == 0 || k % 25 == 0 || k % 49 == 0) continue;
        integer *factor = split_with(n, k);
        if (factor) return factor;
    }
    return NULL;
}

static void print(const integer *factor) {
    char *text = integer_text(factor);
    printf(" %s", text);
    give_back(text);
}

/* Prints the prime factors of `n`, which has no small ones; a factor that cannot be split is marked. */
static bool print_factors(const integer *n) {
    if (integer_is_prime(n)) {
        print(n);
        return true;
    }
    integer *first = split(n);
    if (!first) {
        printf(" composite");
        print(n);
        return false;
    }
    integer *second = integer_divide(n, first, NULL);
    if (integer_compare(first, second) > 0) {
        integer *other = first;
        first = second;
        second = other;
    }
    bool complete = print_factors(first);
    complete = print_factors(second) && complete;
    integer_release(first);
    integer_release(second);
    return complete;
}

static bool factorise(integer *n) {
    bool complete = true;
    print(n);
    printf(" =");
    integer *left = integer_retain(n);
    for (uint32_t p = 2; p < SMALL && integer_bits(left) > 1; p++) {
        if (!is_small_prime(p)) continue;
        while (integer_modulo_small(left, p) == 0) {
            uint32_t rest;
            printf(" %u", p);
            integer_set(&left, integer_divide_small(left, p, &rest));
        }
    }
    if (integer_bits(left) > 1) complete = print_factors(left);
    integer_release(left);
    putchar('\n');
    return complete;
}

int main(int count, char **arguments) {
    if (count < 2) {
        fputs("usage: cfrac NUMBER...\n", stderr);
        return 2;
    }
    bool complete = true;
    for (int i = 1; i < count; i++) {
        integer *n = integer_read(arguments[i]);
        if (!n || integer_bits(n) < 2) {
            fprintf(stderr, "cfrac: `%s` is no decimal number above 1\n", arguments[i]);
            return 2;
        }
        complete = factorise(n) && complete;
        integer_release(n);
    }
    return complete ? 0 : 1;
}
