/* Shared by the parts of the translator: names, the tree, types and symbols. */
#ifndef TRANSLATE_H
#define TRANSLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct name name;
typedef struct node node;
typedef struct symbol symbol;
typedef struct type type;

/* A word of the source, in lower case. There is one for each spelling. */
struct name {
    name *next;
    symbol *symbol; /* what it means in the innermost scope */
    uint32_t hash;
    int keyword; /* a token, or 0 */
    bool taken;  /* means something in C */
    char text[];
};

enum token {
    T_END, T_NAME, T_INTEGER, T_REAL, T_STRING,
    T_PLUS, T_MINUS, T_STAR, T_SLASH, T_EQUAL, T_NOT_EQUAL, T_LESS, T_AT_MOST, T_GREATER, T_AT_LEAST,
    T_OPEN, T_CLOSE, T_OPEN_BRACKET, T_CLOSE_BRACKET, T_ASSIGN, T_COLON, T_SEMICOLON, T_COMMA, T_DOT, T_DOTS, T_CARET,
    T_AND, T_ARRAY, T_BEGIN, T_CASE, T_CONST, T_DIV, T_DO, T_DOWNTO, T_ELSE, T_END_WORD, T_FOR, T_FUNCTION, T_IF, T_IN,
    T_MOD, T_NIL, T_NOT, T_OF, T_OR, T_PROCEDURE, T_PROGRAM, T_RECORD, T_REPEAT, T_SET, T_THEN, T_TO, T_TYPE, T_UNTIL,
    T_VAR, T_WHILE, T_WITH,
};

enum node_kind {
    /* declarations */
    N_PROGRAM, N_CONST, N_TYPE, N_VAR, N_ROUTINE, N_BLOCK,
    /* types */
    N_NAMED, N_ENUMERATION, N_SUBRANGE, N_ARRAY, N_RECORD, N_POINTER, N_SET,
    /* statements */
    N_EMPTY, N_COMPOUND, N_ASSIGN, N_CALL, N_IF, N_WHILE, N_REPEAT, N_FOR, N_CASE, N_ARM, N_WITH, N_WRITE, N_ITEM,
    /* expressions */
    N_INTEGER, N_REAL, N_STRING, N_NIL, N_NAME, N_INDEX, N_FIELD, N_POINTED, N_UNARY, N_BINARY, N_INVOKE, N_ELEMENTS,
    N_RANGE,
};

struct node {
    node *next; /* in a list */
    node *left, *right, *third, *body;
    name *name;
    char *text; /* of a string or a real number */
    type *type;
    symbol *symbol;
    long value; /* a number, an operator, or a flag */
    uint16_t kind;
    int line;
};

enum type_kind { INTEGER, REAL, BOOLEAN, CHARACTER, STRING, ENUMERATION, ARRAY, RECORD, POINTER, NIL, SET };

struct type {
    enum type_kind kind;
    type *base;      /* of elements, or what is pointed to */
    type *index;     /* of an array */
    long low, high;  /* of what can be counted */
    symbol *members; /* of a record or an enumeration */
    const char *tag; /* in C */
    bool written;
};

enum symbol_kind { CONSTANT, TYPE, VARIABLE, FIELD, ROUTINE, BUILTIN };

struct symbol {
    symbol *next;   /* in its scope, record or list */
    symbol *hidden; /* what the name means outside of the scope */
    name *name;
    type *type; /* NULL for a procedure */
    symbol *parameters;
    const char *through; /* the pointer to the record that a field is taken from, under `with` */
    long value;
    unsigned level; /* of its scope, which has a number of its own */
    enum symbol_kind kind;
    bool by_reference;
};

extern const char *path;
extern int line;

/* Reports an error in the source, and ends the program with status 2. */
_Noreturn void refuse(int at, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* lexer.c */
extern enum token token;
extern name *token_name;
extern long token_value;
extern char *token_text; /* the function that takes it sets it to NULL */
void lexer_open(const char *file);
void advance(void);
name *name_of(const char *text, size_t length);
const char *token_spelling(enum token t);

/* parser.c */
node *parse_program(void);

/* check.c: gives names their meaning and expressions their type. */
extern type *integer_type, *real_type, *boolean_type, *character_type;
enum builtin { B_ABS, B_CHR, B_DISPOSE, B_EXIT, B_NEW, B_ODD, B_ORD, B_PRED, B_ROUND, B_SQR, B_SUCC, B_TRUNC };
void check_program(node *program);
/* The value of a constant expression that has been checked; false when it is none. */
bool constant_value(const node *n, long *value);

/* emit.c */
void emit_program(const node *program);

#endif
