/* The source as a tree, by recursive descent. The tree stays until the program ends: the whole of it is checked before
 * anything is translated. */
#include <string.h>

#include "../storage/storage.h"
#include "translate.h"

static struct kind nodes;

static node *statement(void);
static node *expression(void);
static node *type_expression(void);

static node *make_at(enum node_kind kind, int at) {
    node *n = memset(kind_take(&nodes, sizeof *n), 0, sizeof *n);
    n->kind = kind;
    n->line = at;
    return n;
}

static node *make(enum node_kind kind) { return make_at(kind, line); }

static void expected(enum token wanted) {
    refuse(line, "%s is expected here, not %s", token_spelling(wanted),
           token == T_NAME ? token_name->text : token_spelling(token));
}

static bool accept(enum token wanted) {
    if (token != wanted) return false;
    advance();
    return true;
}

static void expect(enum token wanted) {
    if (!accept(wanted)) expected(wanted);
}

static name *expect_name(void) {
    if (token != T_NAME) expected(T_NAME);
    name *n = token_name;
    advance();
    return n;
}

static char *take_text(void) {
    char *text = token_text;
    token_text = NULL;
    advance();
    return text;
}

/* name {, name}: a list of nodes of the kind. */
static node *name_list(enum node_kind kind) {
    node *first = NULL, **last = &first;
    do {
        node *n = make(kind);
        n->name = expect_name();
        *last = n;
        last = &n->next;
    } while (accept(T_COMMA));
    return first;
}

static node *expression_list(enum token end) {
    node *first = NULL, **last = &first;
    do {
        node *n = expression();
        if (end == T_CLOSE_BRACKET && accept(T_DOTS)) {
            node *range = make(N_RANGE);
            range->left = n;
            range->right = expression();
            n = range;
        }
        *last = n;
        last = &n->next;
    } while (accept(T_COMMA));
    expect(end);
    return first;
}

/* The indices, members and ^ that follow a name. */
static node *selected(node *n) {
    for (;;) {
        int at = line;
        if (accept(T_OPEN_BRACKET)) {
            do {
                node *index = make_at(N_INDEX, at);
                index->left = n;
                index->right = expression();
                n = index;
            } while (accept(T_COMMA));
            expect(T_CLOSE_BRACKET);
        } else if (accept(T_DOT)) {
            node *field = make_at(N_FIELD, at);
            field->left = n;
            field->name = expect_name();
            n = field;
        } else if (accept(T_CARET)) {
            node *pointed = make_at(N_POINTED, at);
            pointed->left = n;
            n = pointed;
        } else {
            return n;
        }
    }
}

static node *factor(void) {
    node *n;
    switch (token) {
    case T_INTEGER:
        n = make(N_INTEGER);
        n->value = token_value;
        advance();
        return n;
    case T_REAL:
        n = make(N_REAL);
        n->text = take_text();
        return n;
    case T_STRING:
        n = make(N_STRING);
        n->text = take_text();
        return n;
    case T_NIL:
        n = make(N_NIL);
        advance();
        return n;
    case T_NOT:
        n = make(N_UNARY);
        n->value = T_NOT;
        advance();
        n->left = factor();
        return n;
    case T_OPEN:
        advance();
        n = expression();
        expect(T_CLOSE);
        return n;
    case T_OPEN_BRACKET:
        n = make(N_ELEMENTS);
        advance();
        if (!accept(T_CLOSE_BRACKET)) n->left = expression_list(T_CLOSE_BRACKET);
        return n;
    case T_NAME:
        n = make(N_NAME);
        n->name = expect_name();
        if (accept(T_OPEN)) {
            n->kind = N_INVOKE;
            n->left = expression_list(T_CLOSE);
            return n;
        }
        return selected(n);
    default: refuse(line, "an expression is expected here, not %s", token_spelling(token));
    }
}

static node *binary(node *left, enum token operator, node *right) {
    node *n = make_at(N_BINARY, left->line);
    n->left = left;
    n->value = operator;
    n->right = right;
    return n;
}

static node *term(void) {
    node *n = factor();
    while (token == T_STAR || token == T_SLASH || token == T_DIV || token == T_MOD || token == T_AND) {
        enum token operator = token;
        advance();
        n = binary(n, operator, factor());
    }
    return n;
}

static node *simple_expression(void) {
    node *n;
    if (token == T_MINUS || token == T_PLUS) {
        n = make(N_UNARY);
        n->value = token;
        advance();
        n->left = term();
    } else {
        n = term();
    }
    while (token == T_PLUS || token == T_MINUS || token == T_OR) {
        enum token operator = token;
        advance();
        n = binary(n, operator, term());
    }
    return n;
}

static node *expression(void) {
    node *n = simple_expression();
    if ((token >= T_EQUAL && token <= T_AT_LEAST) || token == T_IN) {
        enum token operator = token;
        advance();
        n = binary(n, operator, simple_expression());
    }
    return n;
}

/* Statements that are separated by semicolons, up to a token that is left there. */
static node *statements(enum token end) {
    node *first = NULL, **last = &first;
    do {
        node *n = statement();
        if (n->kind == N_EMPTY) continue;
        *last = n;
        last = &n->next;
    } while (accept(T_SEMICOLON));
    expect(end);
    return first;
}

static node *write_statement(bool new_line) {
    node *n = make(N_WRITE), **last = &n->left;
    n->value = new_line;
    if (!accept(T_OPEN)) return n;
    do {
        node *item = make(N_ITEM);
        item->left = expression();
        if (accept(T_COLON)) item->right = expression();
        if (accept(T_COLON)) item->third = expression();
        *last = item;
        last = &item->next;
    } while (accept(T_COMMA));
    expect(T_CLOSE);
    return n;
}

static node *case_statement(void) {
    node *n = make(N_CASE), **last = &n->right;
    advance();
    n->left = expression();
    expect(T_OF);
    while (token != T_END_WORD) {
        node *arm = make(N_ARM);
        if (accept(T_ELSE)) arm->value = 1;
        else arm->left = expression_list(T_COLON);
        arm->right = statement();
        *last = arm;
        last = &arm->next;
        if (!accept(T_SEMICOLON)) break;
    }
    expect(T_END_WORD);
    return n;
}

static node *for_statement(void) {
    node *n = make(N_FOR);
    advance();
    n->left = make(N_NAME);
    n->left->name = expect_name();
    expect(T_ASSIGN);
    n->right = expression();
    n->value = token;
    if (!accept(T_DOWNTO)) expect(T_TO);
    n->third = expression();
    expect(T_DO);
    n->body = statement();
    return n;
}

/* with a, b do: one inside the other. */
static node *with_statement(void) {
    node *n = make(N_WITH);
    n->left = make(N_NAME);
    n->left->name = expect_name();
    n->left = selected(n->left);
    if (accept(T_COMMA)) {
        n->right = with_statement();
    } else {
        expect(T_DO);
        n->right = statement();
    }
    return n;
}

static node *named_statement(void) {
    static name *write, *writeln;
    if (!write) {
        write = name_of("write", 5);
        writeln = name_of("writeln", 7);
    }
    int at = line;
    name *called = expect_name();
    if (called == write || called == writeln) return write_statement(called == writeln);
    node *n = make_at(N_NAME, at);
    n->name = called;
    if (accept(T_OPEN)) {
        n->kind = N_CALL;
        n->left = expression_list(T_CLOSE);
        return n;
    }
    n = selected(n);
    if (token == T_ASSIGN) {
        node *assign = make_at(N_ASSIGN, at);
        advance();
        assign->left = n;
        assign->right = expression();
        return assign;
    }
    if (n->kind != N_NAME) expected(T_ASSIGN);
    n->kind = N_CALL;
    return n;
}

static node *statement(void) {
    node *n;
    switch (token) {
    case T_BEGIN:
        n = make(N_COMPOUND);
        advance();
        n->left = statements(T_END_WORD);
        return n;
    case T_IF:
        n = make(N_IF);
        advance();
        n->left = expression();
        expect(T_THEN);
        n->right = statement();
        if (accept(T_ELSE)) n->third = statement();
        return n;
    case T_WHILE:
        n = make(N_WHILE);
        advance();
        n->left = expression();
        expect(T_DO);
        n->right = statement();
        return n;
    case T_REPEAT:
        n = make(N_REPEAT);
        advance();
        n->left = statements(T_UNTIL);
        n->right = expression();
        return n;
    case T_FOR: return for_statement();
    case T_CASE: return case_statement();
    case T_WITH: advance(); return with_statement();
    case T_NAME: return named_statement();
    default: return make(N_EMPTY);
    }
}

/* a, b: type -- one node for each name, which share the type. */
static node ***variables(node ***last, bool by_reference) {
    node *first = name_list(N_VAR);
    expect(T_COLON);
    node *type = type_expression();
    **last = first;
    for (node *n = first; n; n = n->next) {
        n->left = type;
        n->value = by_reference;
        *last = &n->next;
    }
    return last;
}

static node *type_expression(void) {
    node *n;
    switch (token) {
    case T_OPEN:
        n = make(N_ENUMERATION);
        advance();
        n->left = name_list(N_NAME);
        expect(T_CLOSE);
        return n;
    case T_CARET:
        n = make(N_POINTER);
        advance();
        n->name = expect_name();
        return n;
    case T_SET:
        n = make(N_SET);
        advance();
        expect(T_OF);
        n->left = type_expression();
        return n;
    case T_RECORD: {
        n = make(N_RECORD);
        advance();
        node **end = &n->left, ***last = &end;
        while (token == T_NAME) {
            variables(last, false);
            if (!accept(T_SEMICOLON)) break;
        }
        expect(T_END_WORD);
        return n;
    }
    case T_ARRAY: {
        n = make(N_ARRAY);
        node *inner = n;
        advance();
        expect(T_OPEN_BRACKET);
        inner->left = type_expression();
        while (accept(T_COMMA)) { /* array [a, b] of t is array [a] of array [b] of t */
            inner->right = make(N_ARRAY);
            inner = inner->right;
            inner->left = type_expression();
        }
        expect(T_CLOSE_BRACKET);
        expect(T_OF);
        inner->right = type_expression();
        return n;
    }
    default: {
        node *low = simple_expression();
        if (token != T_DOTS) {
            if (low->kind != N_NAME) refuse(low->line, "a type is expected here");
            low->kind = N_NAMED;
            return low;
        }
        n = make_at(N_SUBRANGE, low->line);
        advance();
        n->left = low;
        n->right = simple_expression();
        return n;
    }
    }
}

static node *block(void);

static node *routine(void) {
    node *n = make(N_ROUTINE);
    bool function = token == T_FUNCTION;
    advance();
    n->name = expect_name();
    if (accept(T_OPEN)) {
        node **end = &n->left, ***last = &end;
        do {
            bool by_reference = accept(T_VAR);
            variables(last, by_reference);
        } while (accept(T_SEMICOLON));
        expect(T_CLOSE);
    }
    if (function) {
        expect(T_COLON);
        n->right = type_expression();
    }
    expect(T_SEMICOLON);
    n->body = block();
    expect(T_SEMICOLON);
    return n;
}

static node *block(void) {
    node *n = make(N_BLOCK), **end = &n->left, ***last = &end;
    for (;;) {
        enum token section = token;
        if (section == T_PROCEDURE || section == T_FUNCTION) {
            **last = routine();
            *last = &(**last)->next;
        } else if (accept(T_VAR)) {
            do {
                variables(last, false);
                expect(T_SEMICOLON);
            } while (token == T_NAME);
        } else if (accept(T_CONST) || accept(T_TYPE)) {
            do {
                node *declared = make(section == T_CONST ? N_CONST : N_TYPE);
                declared->name = expect_name();
                expect(T_EQUAL);
                declared->left = section == T_CONST ? expression() : type_expression();
                expect(T_SEMICOLON);
                **last = declared;
                *last = &declared->next;
            } while (token == T_NAME);
        } else {
            break;
        }
    }
    if (token != T_BEGIN) expected(T_BEGIN);
    n->right = statement();
    return n;
}

node *parse_program(void) {
    node *n = make(N_PROGRAM);
    expect(T_PROGRAM);
    n->name = expect_name();
    if (accept(T_OPEN)) {
        name_list(N_NAME);
        expect(T_CLOSE);
    }
    expect(T_SEMICOLON);
    n->body = block();
    expect(T_DOT);
    if (token != T_END) refuse(line, "the program has ended before this");
    return n;
}
