/* Arithmetic on counted integers: schoolbook methods on 32-bit digits, least significant first. */
#include "integer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../storage/storage.h"

/* Without reference counts where a collector finds out by itself what is no longer in use; with the size that an
 * object began with where it has to go back to the list of its size. */
struct integer {
#ifndef COLLECTED
    uint32_t references;
#endif
    uint32_t length; /* the digits in use; the highest is never zero, and zero has none */
#ifdef OPTIMIZED
    uint32_t capacity; /* in digits, of which there may be more than in use */
#endif
    uint32_t digit[];
};

static struct kinds integers;

const char *const program = "cfrac";

void *allocate(size_t count, size_t size) {
    return must(calloc(count, size));
}

static integer *make(uint32_t length) {
    integer *a = kinds_take(&integers, sizeof *a + length * sizeof a->digit[0]);
#ifndef COLLECTED
    a->references = 1;
#endif
    a->length = length;
#ifdef OPTIMIZED
    a->capacity = length;
#endif
    return a;
}

static integer *trim(integer *a) {
    while (a->length && a->digit[a->length - 1] == 0) a->length--;
    return a;
}

integer *integer_retain(integer *a) {
#ifndef COLLECTED
    a->references++;
#endif
    return a;
}

void integer_release(integer *a) {
#if defined COLLECTED
    (void)a;
#elif defined OPTIMIZED
    if (a && --a->references == 0) kinds_give(&integers, a, sizeof *a + a->capacity * sizeof a->digit[0]);
#else
    if (a && --a->references == 0) free(a);
#endif
}

void integer_set(integer **place, integer *value) {
    integer *old = *place;
    *place = value;
    integer_release(old);
}

static integer *copy(const integer *a) {
    integer *result = make(a->length);
    memcpy(result->digit, a->digit, a->length * sizeof a->digit[0]);
    return result;
}

integer *integer_of(uint64_t value) {
    integer *a = make(2);
    a->digit[0] = (uint32_t)value;
    a->digit[1] = (uint32_t)(value >> 32);
    return trim(a);
}

int integer_compare(const integer *a, const integer *b) {
    if (a->length != b->length) return a->length < b->length ? -1 : 1;
    for (uint32_t i = a->length; i-- > 0;)
        if (a->digit[i] != b->digit[i]) return a->digit[i] < b->digit[i] ? -1 : 1;
    return 0;
}

bool integer_is(const integer *a, uint32_t value) {
    return value ? a->length == 1 && a->digit[0] == value : a->length == 0;
}

unsigned integer_bits(const integer *a) {
    return a->length ? 32 * a->length - (unsigned)__builtin_clz(a->digit[a->length - 1]) : 0;
}

integer *integer_add(const integer *a, const integer *b) {
    if (a->length < b->length) {
        const integer *other = a;
        a = b;
        b = other;
    }
    integer *sum = make(a->length + 1);
    uint64_t carry = 0;
    for (uint32_t i = 0; i < a->length; i++) {
        carry += (uint64_t)a->digit[i] + (i < b->length ? b->digit[i] : 0);
        sum->digit[i] = (uint32_t)carry;
        carry >>= 32;
    }
    sum->digit[a->length] = (uint32_t)carry;
    return trim(sum);
}

integer *integer_difference(const integer *a, const integer *b) {
    if (integer_compare(a, b) < 0) {
        const integer *other = a;
        a = b;
        b = other;
    }
    integer *rest = make(a->length);
    uint64_t borrow = 0;
    for (uint32_t i = 0; i < a->length; i++) {
        uint64_t digit = (uint64_t)a->digit[i] - (i < b->length ? b->digit[i] : 0) - borrow;
        rest->digit[i] = (uint32_t)digit;
        borrow = digit >> 63;
    }
    return trim(rest);
}

integer *integer_multiply(const integer *a, const integer *b) {
    integer *product = make(a->length + b->length);
    memset(product->digit, 0, product->length * sizeof product->digit[0]);
    for (uint32_t i = 0; i < a->length; i++) {
        uint64_t carry = 0;
        for (uint32_t j = 0; j < b->length; j++) {
            carry += (uint64_t)a->digit[i] * b->digit[j] + product->digit[i + j];
            product->digit[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        product->digit[i + b->length] = (uint32_t)carry;
    }
    return trim(product);
}

integer *integer_divide_small(const integer *a, uint32_t b, uint32_t *remainder) {
    integer *quotient = make(a->length);
    uint64_t rest = 0;
    for (uint32_t i = a->length; i-- > 0;) {
        rest = rest << 32 | a->digit[i];
        quotient->digit[i] = (uint32_t)(rest / b);
        rest %= b;
    }
    *remainder = (uint32_t)rest;
    return trim(quotient);
}

uint32_t integer_modulo_small(const integer *a, uint32_t b) {
    uint64_t rest = 0;
    for (uint32_t i = a->length; i-- > 0;) rest = (rest << 32 | a->digit[i]) % b;
    return (uint32_t)rest;
}

/* Shifts `count` < 32 bits to the left into one digit more. */
static integer *shifted(const integer *a, unsigned count) {
    integer *result = make(a->length + 1);
    uint32_t carry = 0;
    for (uint32_t i = 0; i < a->length; i++) {
        uint64_t wide = (uint64_t)a->digit[i] << count | carry;
        result->digit[i] = (uint32_t)wide;
        carry = (uint32_t)(wide >> 32);
    }
    result->digit[a->length] = carry;
    return result;
}

/* Long division after Knuth, The Art of Computer Programming 4.3.1 D, for a divisor of two digits and more. */
static integer *divide_long(const integer *a, const integer *b, integer **remainder) {
    unsigned shift = (unsigned)__builtin_clz(b->digit[b->length - 1]);
    integer *rest = shifted(a, shift), *divisor = shifted(b, shift);
    uint32_t n = b->length, m = a->length - n;
    integer *quotient = make(m + 1);
    uint64_t top = divisor->digit[n - 1], second = divisor->digit[n - 2];
    for (uint32_t j = m + 1; j-- > 0;) {
        uint64_t high = (uint64_t)rest->digit[j + n] << 32 | rest->digit[j + n - 1];
        uint64_t guess = high / top, left = high % top;
        while (guess >> 32 || guess * second > (left << 32 | rest->digit[j + n - 2])) {
            guess--;
            left += top;
            if (left >> 32) break;
        }
        uint64_t carry = 0, borrow = 0;
        for (uint32_t i = 0; i < n; i++) {
            carry += guess * divisor->digit[i];
            uint64_t digit = (uint64_t)rest->digit[i + j] - (uint32_t)carry - borrow;
            rest->digit[i + j] = (uint32_t)digit;
            borrow = digit >> 63;
            carry >>= 32;
        }
        uint64_t digit = (uint64_t)rest->digit[j + n] - carry - borrow;
        rest->digit[j + n] = (uint32_t)digit;
        if (digit >> 63) { /* the guess was one too high: add the divisor back */
            guess--;
            uint64_t sum = 0;
            for (uint32_t i = 0; i < n; i++) {
                sum += (uint64_t)rest->digit[i + j] + divisor->digit[i];
                rest->digit[i + j] = (uint32_t)sum;
                sum >>= 32;
            }
            rest->digit[j + n] += (uint32_t)sum;
        }
        quotient->digit[j] = (uint32_t)guess;
    }
    integer_release(divisor);
    if (remainder) {
        integer *result = make(n);
        for (uint32_t i = 0; i < n; i++) {
            uint64_t wide = (uint64_t)rest->digit[i + 1] << 32 | rest->digit[i];
            result->digit[i] = (uint32_t)(wide >> shift);
        }
        *remainder = trim(result);
    }
    integer_release(rest);
    return trim(quotient);
}

integer *integer_divide(const integer *a, const integer *b, integer **remainder) {
    if (integer_compare(a, b) < 0) {
        if (remainder) *remainder = copy(a);
        return integer_of(0);
    }
    if (b->length > 1) return divide_long(a, b, remainder);
    uint32_t rest;
    integer *quotient = integer_divide_small(a, b->digit[0], &rest);
    if (remainder) *remainder = integer_of(rest);
    return quotient;
}

integer *integer_modulo(const integer *a, const integer *b) {
    integer *rest;
    integer_release(integer_divide(a, b, &rest));
    return rest;
}

integer *integer_multiply_modulo(const integer *a, const integer *b, const integer *modulus) {
    integer *product = integer_multiply(a, b);
    integer *rest = integer_modulo(product, modulus);
    integer_release(product);
    return rest;
}

integer *integer_power_modulo(const integer *base, const integer *exponent, const integer *modulus) {
    integer *result = integer_of(1);
    for (unsigned bit = integer_bits(exponent); bit-- > 0;) {
        integer_set(&result, integer_multiply_modulo(result, result, modulus));
        if (exponent->digit[bit / 32] >> bit % 32 & 1)
            integer_set(&result, integer_multiply_modulo(result, base, modulus));
    }
    return result;
}

static integer *power(const integer *a, uint32_t exponent) {
    integer *result = integer_of(1);
    for (; exponent; exponent--) integer_set(&result, integer_multiply(result, a));
    return result;
}

/* Newton's method from above: 2^(bits/degree + 1) is no smaller than the root, and the guesses fall until they are it. */
integer *integer_root(const integer *a, uint32_t degree) {
    unsigned bit = integer_bits(a) / degree + 1;
    integer *guess = make(bit / 32 + 1), *less = integer_of(degree - 1);
    memset(guess->digit, 0, guess->length * sizeof guess->digit[0]);
    guess->digit[bit / 32] = UINT32_C(1) << bit % 32;
    for (;;) {
        integer *divisor = power(guess, degree - 1);
        integer *quotient = integer_divide(a, divisor, NULL);
        integer *sum = integer_multiply(guess, less);
        uint32_t rest;
        integer_set(&sum, integer_add(sum, quotient));
        integer_set(&sum, integer_divide_small(sum, degree, &rest));
        integer_release(divisor);
        integer_release(quotient);
        if (integer_compare(sum, guess) >= 0) {
            integer_release(sum);
            integer_release(less);
            return guess;
        }
        integer_set(&guess, sum);
    }
}

integer *integer_gcd(const integer *a, const integer *b) {
    integer *larger = copy(a), *smaller = copy(b);
    while (!integer_is(smaller, 0)) {
        integer *rest = integer_modulo(larger, smaller);
        integer_release(larger);
        larger = smaller;
        smaller = rest;
    }
    integer_release(smaller);
    return larger;
}

/* Miller and Rabin's test with the first twelve primes: exact below 3.1 * 10^23, and wrong above with a probability
 * that no input has been found for by chance. */
bool integer_is_prime(const integer *a) {
    static const uint32_t witnesses[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
    if (integer_bits(a) < 2) return false;
    for (unsigned i = 0; i < sizeof witnesses / sizeof witnesses[0]; i++) {
        if (integer_modulo_small(a, witnesses[i]) == 0) return integer_is(a, witnesses[i]);
    }
    integer *one = integer_of(1), *less = integer_difference(a, one), *odd = integer_retain(less);
    unsigned twos = 0;
    while (!(odd->digit[0] & 1)) {
        uint32_t rest;
        integer_set(&odd, integer_divide_small(odd, 2, &rest));
        twos++;
    }
    bool prime = true;
    for (unsigned i = 0; prime && i < sizeof witnesses / sizeof witnesses[0]; i++) {
        integer *witness = integer_of(witnesses[i]);
        integer *power = integer_power_modulo(witness, odd, a);
        bool passed = integer_is(power, 1) || integer_compare(power, less) == 0;
        for (unsigned square = 1; !passed && square < twos; square++) {
            integer_set(&power, integer_multiply_modulo(power, power, a));
            passed = integer_compare(power, less) == 0;
        }
        prime = passed;
        integer_release(power);
        integer_release(witness);
    }
    integer_release(one);
    integer_release(less);
    integer_release(odd);
    return prime;
}

integer *integer_read(const char *text) {
    if (!*text) return NULL;
    integer *result = integer_of(0), *ten = integer_of(10);
    for (; result && *text; text++) {
        if (*text < '0' || *text > '9') {
            integer_set(&result, NULL);
            break;
        }
        integer *digit = integer_of((uint64_t)(*text - '0'));
        integer_set(&result, integer_multiply(result, ten));
        integer_set(&result, integer_add(result, digit));
        integer_release(digit);
    }
    integer_release(ten);
    return result;
}

char *integer_text(const integer *a) {
    size_t length = (size_t)a->length * 10 + 2, at = length - 1;
    char *text = allocate(length, 1);
    integer *rest = copy(a);
    do {
        uint32_t digit;
        integer_set(&rest, integer_divide_small(rest, 10, &digit));
        text[--at] = (char)('0' + digit);
    } while (!integer_is(rest, 0));
    integer_release(rest);
    memmove(text, text + at, length - at);
    return text;
}
