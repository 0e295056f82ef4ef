/* Translates Pascal into C: a program of the kind of PTC (Detlefs, Dosser and Zorn 1994), and like that one it keeps the
 * tree of the whole source. The pieces of text that the C is put together from are short-lived.
 *
 * It takes a fair part of Jensen and Wirth's Pascal: constants, enumerations, subranges, arrays, records, pointers,
 * sets; procedures and functions with value and variable parameters; all statements but goto; write and writeln. Not:
 * routines inside routines, files, variant records, conformant arrays, procedures as parameters.
 *
 * usage: translate FILE
 *
 * The C goes to standard output. */
#include <stdio.h>

#include "translate.h"

const char *const program = "translate";

int main(int count, char **arguments) {
    if (count != 2) {
        fputs("usage: translate FILE\n", stderr);
        return 2;
    }
    lexer_open(arguments[1]);
    node *tree = parse_program();
    check_program(tree);
    emit_program(tree);
    return fflush(stdout) == 0 ? 0 : 1;
}
