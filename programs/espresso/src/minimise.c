/*
 * The driver's side of espresso: one minimisation, terms in as bytes and the minimal cover out as characters.
 *
 * It is C so that it can use espresso's own macros and structures, which are no stable interface. What it allocates, it
 * allocates by espresso's functions, so by malloc.
 */

#include <stddef.h>

#include "espresso.h"
#include "thread_local_accessors.h"

/* Called for each term of the cover: inputs as `0`, `1` and `-`, then outputs as `0` and `1`. */
typedef void heaptoll_take(void *context, const unsigned char *term);

/* Most bits of a cube: its header counts words in ten bits. */
int heaptoll_most_bits(void)
{
    return 0x3ff * BPI;
}

/*
 * Minimises an ON-set of `count` terms, each `inputs` bytes of 0, 1 or 2 (either) and `outputs` bytes of 0 or 1, and
 * calls `take` for each term of the result. Answers espresso's complaint, or NULL when all went well.
 */
const char *heaptoll_minimise(int inputs, int outputs, int count, const unsigned char *terms, heaptoll_take *take,
                              void *context)
{
    cube.num_binary_vars = inputs;
    cube.num_vars = inputs + 1;
    cube.part_size = ALLOC(int, cube.num_vars);
    if (cube.part_size == NULL)
        return "out of memory";
    cube.part_size[inputs] = outputs;
    cube_setup();

    /* What upstream's `main` chooses when no option is given. */
    remove_essential = TRUE;
    force_irredundant = TRUE;
    unwrap_onset = TRUE;

    pcover on = sf_new(count, cube.size);
    for (int i = 0; i < count; i++) {
        pcube term = set_clear(cube.temp[0], cube.size);
        for (int input = 0; input < inputs; input++, terms++) {
            if (*terms != 1)
                set_insert(term, 2 * input);
            if (*terms != 0)
                set_insert(term, 2 * input + 1);
        }
        for (int output = 0; output < outputs; output++, terms++)
            if (*terms != 0)
                set_insert(term, cube.first_part[cube.output] + output);
        on = sf_addset(on, term);
    }

    const char *problem = NULL;
    pcover either = sf_new(0, cube.size);
    pcover off = guarded_complement(cube2list(on, either), &problem);
    if (off == NULL)
        return problem != NULL ? problem : "out of memory";
    on = guarded_espresso(on, either, off, &problem);
    if (on == NULL)
        return problem != NULL ? problem : "out of memory";

    unsigned char *text = ALLOC(unsigned char, inputs + outputs);
    if (text == NULL)
        return "out of memory";
    pset last, term;
    foreach_set(on, last, term) {
        for (int input = 0; input < inputs; input++)
            text[input] = (unsigned char)"?01-"[GETINPUT(term, input)];
        for (int output = 0; output < outputs; output++)
            text[inputs + output] = GETOUTPUT(term, output) ? '1' : '0';
        take(context, text);
    }

    free(text);
    sf_free(on);
    sf_free(off);
    sf_free(either);
    sf_cleanup();
    setdown_cube();
    free(cube.part_size);
    cube.part_size = NULL;
    return NULL;
}
