/* The source as a sequence of tokens. Names are kept in a table, each once. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../storage/storage.h"
#include "translate.h"

enum { BUCKETS = 4096, LONGEST = 255, NEVER = -2 };

enum token token;
name *token_name;
long token_value;
char *token_text;
int line = 1;
const char *path;

static FILE *file;
static int ahead, pushed_back; /* the next character, and one that was read too early */
static name *table[BUCKETS];
static struct kinds names;

static const struct {
    const char *text;
    enum token token;
} keywords[] = {
    {"and", T_AND}, {"array", T_ARRAY}, {"begin", T_BEGIN}, {"case", T_CASE}, {"const", T_CONST}, {"div", T_DIV},
    {"do", T_DO}, {"downto", T_DOWNTO}, {"else", T_ELSE}, {"end", T_END_WORD}, {"for", T_FOR},
    {"function", T_FUNCTION}, {"if", T_IF}, {"in", T_IN}, {"mod", T_MOD}, {"nil", T_NIL}, {"not", T_NOT}, {"of", T_OF},
    {"or", T_OR}, {"procedure", T_PROCEDURE}, {"program", T_PROGRAM}, {"record", T_RECORD}, {"repeat", T_REPEAT},
    {"set", T_SET}, {"then", T_THEN}, {"to", T_TO}, {"type", T_TYPE}, {"until", T_UNTIL}, {"var", T_VAR},
    {"while", T_WHILE}, {"with", T_WITH},
};

static const struct {
    const char *text;
    enum token token;
} signs[] = {
    {"+", T_PLUS}, {"-", T_MINUS}, {"*", T_STAR}, {"/", T_SLASH}, {"=", T_EQUAL}, {"<>", T_NOT_EQUAL}, {"<", T_LESS},
    {"<=", T_AT_MOST}, {">", T_GREATER}, {">=", T_AT_LEAST}, {"(", T_OPEN}, {")", T_CLOSE}, {"[", T_OPEN_BRACKET},
    {"]", T_CLOSE_BRACKET}, {":=", T_ASSIGN}, {":", T_COLON}, {";", T_SEMICOLON}, {",", T_COMMA}, {".", T_DOT},
    {"..", T_DOTS}, {"^", T_CARET}, {"end of file", T_END}, {"a name", T_NAME}, {"a number", T_INTEGER},
    {"a real number", T_REAL}, {"a string", T_STRING},
};

/* What a Pascal name cannot be called in C. */
static const char *const words_of_c[] = {
    "auto", "break", "char", "continue", "default", "double", "enum", "extern", "float", "goto", "inline", "int", "long",
    "main", "register", "restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch", "typedef",
    "union", "unsigned", "void", "volatile", "printf", "malloc", "calloc", "free", "exit", "labs", "result",
};

_Noreturn void refuse(int at, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout);
    fprintf(stderr, "translate: %s:%d: ", path, at);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(2);
}

name *name_of(const char *text, size_t length) {
    uint32_t hash = 2166136261; /* FNV-1a, Fowler, Noll and Vo */
    for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)text[i]) * 16777619;
    name **link = &table[hash % BUCKETS];
    while (*link && ((*link)->hash != hash || strlen((*link)->text) != length || memcmp((*link)->text, text, length)))
        link = &(*link)->next;
    if (!*link) {
        name *n = kinds_take(&names, sizeof *n + length + 1);
        memset(n, 0, sizeof *n);
        n->hash = hash;
        memcpy(n->text, text, length);
        n->text[length] = '\0';
        *link = n;
    }
    return *link;
}

const char *token_spelling(enum token t) {
    for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++)
        if (keywords[i].token == t) return keywords[i].text;
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
        if (signs[i].token == t) return signs[i].text;
    return "?";
}

static void next(void) {
    if (pushed_back) {
        ahead = pushed_back;
        pushed_back = 0;
        return;
    }
    ahead = getc(file);
    if (ahead == '\n') line++;
}

void lexer_open(const char *wanted) {
    path = wanted;
    file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "translate: cannot open %s: %s\n", path, strerror(errno));
        exit(2);
    }
    for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++)
        name_of(keywords[i].text, strlen(keywords[i].text))->keyword = keywords[i].token;
    for (size_t i = 0; i < sizeof words_of_c / sizeof words_of_c[0]; i++)
        name_of(words_of_c[i], strlen(words_of_c[i]))->taken = true;
    next();
    advance();
}

static void skip_comment(bool brace) {
    int begin = line;
    for (;;) {
        if (ahead == EOF) refuse(begin, "this comment does not end");
        int was = ahead;
        next();
        if (brace && was == '}') return;
        if (!brace && was == '*' && ahead == ')') {
            next();
            return;
        }
    }
}

static size_t digits(char *text, size_t length) {
    while (isdigit(ahead)) {
        if (length == LONGEST) refuse(line, "this number is too long");
        text[length++] = (char)ahead;
        next();
    }
    return length;
}

static void read_number(void) {
    char text[LONGEST + 3];
    size_t length = digits(text, 0);
    token = T_INTEGER;
    if (ahead == '.') {
        next();
        if (!isdigit(ahead)) { /* `1..9`, or the end of the program */
            pushed_back = ahead;
            ahead = '.';
        } else {
            token = T_REAL;
            text[length++] = '.';
            length = digits(text, length);
        }
    }
    text[length] = '\0';
    if (token == T_INTEGER) {
        errno = 0;
        token_value = strtol(text, NULL, 10);
        if (errno || token_value > INT32_MAX) refuse(line, "%s is too large for an integer", text);
    } else {
        token_text = strcpy(must(malloc(length + 1)), text);
    }
}

static void read_string(void) {
    size_t length = 0, capacity = 32;
    char *text = must(malloc(capacity));
    int begin = line;
    for (next();; next()) {
        if (ahead == '\'') {
            next();
            if (ahead != '\'') break;
        }
        if (ahead == EOF || ahead == '\n') refuse(begin, "this string does not end");
        if (length + 1 == capacity) text = must(realloc(text, capacity *= 2));
        text[length++] = (char)ahead;
    }
    text[length] = '\0';
    token = T_STRING;
    token_text = text;
}

static void read_name(void) {
    char text[LONGEST];
    size_t length = 0;
    while (isalnum(ahead) || ahead == '_') {
        if (length == LONGEST) refuse(line, "this name is too long");
        text[length++] = (char)tolower(ahead);
        next();
    }
    token_name = name_of(text, length);
    token = token_name->keyword ? (enum token)token_name->keyword : T_NAME;
}

/* A sign that may have a second character. */
static void sign(enum token one, int second, enum token two) {
    next();
    token = one;
    if (ahead == second) {
        next();
        token = two;
    }
}

void advance(void) {
    give_back(token_text);
    token_text = NULL;
    for (;;) {
        while (isspace(ahead)) next();
        if (ahead == '{') {
            skip_comment(true);
            continue;
        }
        if (ahead != '(') break;
        next();
        if (ahead != '*') {
            token = T_OPEN;
            return;
        }
        next();
        skip_comment(false);
    }
    if (isalpha(ahead)) {
        read_name();
        return;
    }
    if (isdigit(ahead)) {
        read_number();
        return;
    }
    switch (ahead) {
    case EOF:
        if (ferror(file)) refuse(line, "cannot read: %s", strerror(errno));
        token = T_END;
        return;
    case '\'': read_string(); return;
    case '+': sign(T_PLUS, NEVER, T_END); return;
    case '-': sign(T_MINUS, NEVER, T_END); return;
    case '*': sign(T_STAR, NEVER, T_END); return;
    case '/': sign(T_SLASH, NEVER, T_END); return;
    case '=': sign(T_EQUAL, NEVER, T_END); return;
    case ')': sign(T_CLOSE, NEVER, T_END); return;
    case '[': sign(T_OPEN_BRACKET, NEVER, T_END); return;
    case ']': sign(T_CLOSE_BRACKET, NEVER, T_END); return;
    case ';': sign(T_SEMICOLON, NEVER, T_END); return;
    case ',': sign(T_COMMA, NEVER, T_END); return;
    case '^': sign(T_CARET, NEVER, T_END); return;
    case ':': sign(T_COLON, '=', T_ASSIGN); return;
    case '.': sign(T_DOT, '.', T_DOTS); return;
    case '>': sign(T_GREATER, '=', T_AT_LEAST); return;
    case '<':
        sign(T_LESS, '=', T_AT_MOST);
        if (token == T_LESS && ahead == '>') {
            next();
            token = T_NOT_EQUAL;
        }
        return;
    default: refuse(line, "the character %d is not Pascal's", ahead);
    }
}
