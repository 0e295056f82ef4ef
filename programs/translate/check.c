/* Meaning: what each name stands for, and the type of every expression. Scopes are closed by giving the names back the
 * meaning that they had before. */
#include <string.h>

#include "../storage/storage.h"
#include "translate.h"

static struct kind types, symbols;

type *integer_type, *real_type, *boolean_type, *character_type;
static type *string_type, *nil_type, *no_elements_type;

static symbol *scope;         /* what the innermost scope declares */
static unsigned level;        /* its number */
static const symbol *current; /* the function that is being checked */

static type *new_type(enum type_kind kind) {
    type *t = memset(kind_take(&types, sizeof *t), 0, sizeof *t);
    t->kind = kind;
    return t;
}

static symbol *new_symbol(enum symbol_kind kind, name *of, type *t) {
    symbol *s = memset(kind_take(&symbols, sizeof *s), 0, sizeof *s);
    s->kind = kind;
    s->name = of;
    s->type = t;
    return s;
}

/* Opens a scope; the caller keeps the two of the one around for `leave`. */
static void open_scope(void) {
    static unsigned scopes;
    scope = NULL;
    level = ++scopes;
}

static void enter(symbol *s) {
    s->level = level;
    s->hidden = s->name->symbol;
    s->name->symbol = s;
    s->next = scope;
    scope = s;
}

static symbol *declare(enum symbol_kind kind, const node *n, type *t) {
    if (n->name->symbol && n->name->symbol->level == level) refuse(n->line, "%s is declared twice", n->name->text);
    symbol *s = new_symbol(kind, n->name, t);
    enter(s);
    return s;
}

static void leave(symbol *outer, unsigned outer_level) {
    for (symbol *s = scope; s; s = s->next) s->name->symbol = s->hidden;
    scope = outer;
    level = outer_level;
}

static bool counted(const type *t) {
    return t->kind == INTEGER || t->kind == BOOLEAN || t->kind == CHARACTER || t->kind == ENUMERATION;
}

static bool number(const type *t) { return t->kind == INTEGER || t->kind == REAL; }

/* A subrange is a type of its own, with the kind and the members of its host. */
static bool same_kind(const type *a, const type *b) {
    if (a->kind != b->kind) return false;
    if (a->kind == ENUMERATION) return a->members == b->members;
    if (a->kind == SET) return !a->base || !b->base || same_kind(a->base, b->base);
    return a->kind == INTEGER || a->kind == REAL || a->kind == BOOLEAN || a->kind == CHARACTER || a == b
           || (a->kind == POINTER && a->base == b->base);
}

static bool assignable(const type *to, const type *from) {
    if (same_kind(to, from)) return true;
    return (to->kind == REAL && from->kind == INTEGER) || (to->kind == POINTER && from->kind == NIL);
}

bool constant_value(const node *n, long *value) {
    long left, right;
    switch (n->kind) {
    case N_INTEGER: *value = n->value; return true;
    case N_STRING: *value = (unsigned char)n->text[0]; return n->type == character_type;
    case N_NAME: *value = n->symbol->value; return n->symbol->kind == CONSTANT && counted(n->type);
    case N_UNARY:
        if (n->value == T_NOT || !constant_value(n->left, &left)) return false;
        *value = n->value == T_MINUS ? -left : left;
        return true;
    case N_BINARY:
        if (!constant_value(n->left, &left) || !constant_value(n->right, &right)) return false;
        if (n->value == T_PLUS) *value = left + right;
        else if (n->value == T_MINUS) *value = left - right;
        else if (n->value == T_STAR) *value = left * right;
        else if (n->value == T_DIV && right != 0) *value = left / right;
        else return false;
        return n->type->kind == INTEGER;
    default: return false;
    }
}

static void check_expression(node *n);

static long constant_of(node *n) {
    long value;
    check_expression(n);
    if (!constant_value(n, &value)) refuse(n->line, "a constant is expected here");
    return value;
}

static symbol *meaning(const node *n) {
    if (!n->name->symbol) refuse(n->line, "%s is not declared", n->name->text);
    return n->name->symbol;
}

static type *check_type(node *n);

static type *subrange(const type *host, long low, long high, int at) {
    if (low > high) refuse(at, "a range ends before it begins");
    type *t = new_type(host->kind);
    *t = *host;
    t->low = low;
    t->high = high;
    return t;
}

static type *make_type(node *n) {
    type *t;
    switch (n->kind) {
    case N_NAMED: {
        const symbol *s = meaning(n);
        if (s->kind == CONSTANT) refuse(n->line, "%s is a constant, and no type", n->name->text);
        if (s->kind != TYPE) refuse(n->line, "%s is no type", n->name->text);
        return s->type;
    }
    case N_ENUMERATION: {
        t = new_type(ENUMERATION);
        symbol **last = &t->members;
        for (node *m = n->left; m; m = m->next) {
            declare(CONSTANT, m, t)->value = t->high++;
            symbol *member = new_symbol(CONSTANT, m->name, t);
            *last = member;
            last = &member->next;
        }
        t->high--;
        return t;
    }
    case N_SUBRANGE: {
        long low = constant_of(n->left), high = constant_of(n->right);
        if (!same_kind(n->left->type, n->right->type)) refuse(n->line, "the ends of a range differ in type");
        return subrange(n->left->type, low, high, n->line);
    }
    case N_ARRAY:
        t = new_type(ARRAY);
        t->index = check_type(n->left);
        if (!counted(t->index) || t->index == integer_type) refuse(n->line, "an array cannot have this index");
        t->base = check_type(n->right);
        return t;
    case N_RECORD: {
        t = new_type(RECORD);
        symbol **last = &t->members;
        for (node *f = n->left; f; f = f->next) {
            for (const symbol *s = t->members; s; s = s->next)
                if (s->name == f->name) refuse(f->line, "%s is twice in a record", f->name->text);
            symbol *field = new_symbol(FIELD, f->name, check_type(f->left));
            *last = field;
            last = &field->next;
        }
        return t;
    }
    case N_POINTER: return new_type(POINTER); /* its base may be declared later */
    case N_SET:
        t = new_type(SET);
        t->base = check_type(n->left);
        if (!counted(t->base) || t->base->low < 0 || t->base->high > 63)
            refuse(n->line, "a set can have elements from 0 to 63");
        return t;
    default: refuse(n->line, "a type is expected here");
    }
}

static type *check_type(node *n) {
    if (!n->type) n->type = make_type(n);
    return n->type;
}

/* Pointers may point to what is declared after them: they are resolved at the end of a block's declarations. */
static void resolve_pointers(node *n) {
    if (!n) return;
    if (n->kind == N_POINTER && !n->type->base) {
        const symbol *s = meaning(n);
        if (s->kind != TYPE) refuse(n->line, "%s is no type", n->name->text);
        n->type->base = s->type;
    }
    if (n->kind == N_ARRAY || n->kind == N_RECORD) {
        resolve_pointers(n->right);
        for (node *f = n->left; f && n->kind == N_RECORD; f = f->next) resolve_pointers(f->left);
    }
}

static type *read_only_value(node *n) {
    check_expression(n);
    if (!n->type) refuse(n->line, "a procedure has no value");
    return n->type;
}

static bool is_variable(const node *n) {
    switch (n->kind) {
    case N_NAME: return n->symbol->kind == VARIABLE || n->symbol->kind == FIELD;
    case N_INDEX:
    case N_FIELD: return is_variable(n->left);
    default: return n->kind == N_POINTED;
    }
}

static void check_arguments(node *n, const symbol *called) {
    const symbol *parameter = called->parameters;
    for (node *a = n->left; a; a = a->next, parameter = parameter->next) {
        if (!parameter) refuse(a->line, "%s does not take so many arguments", called->name->text);
        const type *t = read_only_value(a);
        if (parameter->by_reference ? !is_variable(a) || !same_kind(parameter->type, t)
                                    : !assignable(parameter->type, t))
            refuse(a->line, "%s cannot take this argument as %s", called->name->text, parameter->name->text);
    }
    if (parameter) refuse(n->line, "%s needs %s too", called->name->text, parameter->name->text);
}

static void check_builtin(node *n, const symbol *called) {
    node *a = n->left;
    bool statement = called->value == B_NEW || called->value == B_DISPOSE || called->value == B_EXIT;
    if (statement != (n->kind == N_CALL) || (called->value == B_EXIT ? a != NULL : !a || a->next))
        refuse(n->line, "%s cannot be called so", called->name->text);
    if (!a) return;
    const type *t = read_only_value(a);
    bool fits;
    switch ((enum builtin)called->value) {
    case B_NEW: fits = t->kind == POINTER && is_variable(a); break;
    case B_DISPOSE: fits = t->kind == POINTER; break;
    case B_ABS:
    case B_SQR:
        fits = number(t);
        n->type = t->kind == REAL ? real_type : integer_type;
        break;
    case B_CHR:
        fits = t->kind == INTEGER;
        n->type = character_type;
        break;
    case B_ODD:
        fits = t->kind == INTEGER;
        n->type = boolean_type;
        break;
    case B_PRED:
    case B_SUCC:
        fits = counted(t);
        n->type = a->type;
        break;
    case B_ORD:
        fits = counted(t);
        n->type = integer_type;
        break;
    default:
        fits = t->kind == REAL;
        n->type = integer_type;
        break;
    }
    if (!fits) refuse(n->line, "%s cannot take this", called->name->text);
}

static void check_call(node *n) {
    n->symbol = meaning(n);
    if (n->symbol->kind == BUILTIN) {
        check_builtin(n, n->symbol);
    } else if (n->symbol->kind == ROUTINE) {
        check_arguments(n, n->symbol);
        n->type = n->symbol->type;
    } else {
        refuse(n->line, "%s cannot be called", n->name->text);
    }
}

static type *binary_type(const node *n, const type *a, const type *b) {
    bool integers = a->kind == INTEGER && b->kind == INTEGER, numbers = number(a) && number(b);
    bool sets = a->kind == SET && same_kind(a, b);
    switch (n->value) {
    case T_PLUS:
    case T_MINUS:
    case T_STAR:
        if (sets) return a->base ? n->left->type : n->right->type;
        return integers ? integer_type : numbers ? real_type : NULL;
    case T_SLASH: return numbers ? real_type : NULL;
    case T_DIV:
    case T_MOD: return integers ? integer_type : NULL;
    case T_AND:
    case T_OR: return a->kind == BOOLEAN && b->kind == BOOLEAN ? boolean_type : NULL;
    case T_IN: return counted(a) && b->kind == SET && (!b->base || same_kind(a, b->base)) ? boolean_type : NULL;
    case T_EQUAL:
    case T_NOT_EQUAL:
        if (sets || assignable(a, b) || assignable(b, a)) return a->kind == ARRAY || a->kind == RECORD ? NULL : boolean_type;
        return NULL;
    default: return numbers || (counted(a) && same_kind(a, b)) ? boolean_type : NULL;
    }
}

static type *elements_type(node *n) {
    type *t = NULL;
    for (node *e = n->left; e; e = e->next) {
        node *ends[] = {e->kind == N_RANGE ? e->left : e, e->kind == N_RANGE ? e->right : NULL};
        for (int i = 0; i < 2 && ends[i]; i++) {
            type *found = read_only_value(ends[i]);
            if (!counted(found) || (t && !same_kind(t, found))) refuse(e->line, "this cannot be in the set");
            t = found;
        }
    }
    if (!t) return no_elements_type;
    type *set = new_type(SET);
    set->base = t;
    return set;
}

static const symbol *member(const type *t, const name *wanted) {
    for (const symbol *s = t->members; s; s = s->next)
        if (s->name == wanted) return s;
    return NULL;
}

static void check_expression(node *n) {
    const type *left;
    switch (n->kind) {
    case N_INTEGER: n->type = integer_type; return;
    case N_REAL: n->type = real_type; return;
    case N_STRING: n->type = strlen(n->text) == 1 ? character_type : string_type; return;
    case N_NIL: n->type = nil_type; return;
    case N_NAME:
        n->symbol = meaning(n);
        if (n->symbol->kind == TYPE) refuse(n->line, "%s is a type, and no value", n->name->text);
        if (n->symbol->kind == ROUTINE || n->symbol->kind == BUILTIN) {
            n->kind = N_INVOKE;
            check_call(n);
        } else {
            n->type = n->symbol->type;
        }
        return;
    case N_INVOKE: check_call(n); return;
    case N_INDEX:
        left = read_only_value(n->left);
        if (left->kind != ARRAY) refuse(n->line, "what is indexed is no array");
        if (!same_kind(left->index, read_only_value(n->right))) refuse(n->line, "the index has a wrong type");
        n->type = left->base;
        return;
    case N_FIELD:
        left = read_only_value(n->left);
        n->symbol = left->kind == RECORD ? (symbol *)member(left, n->name) : NULL;
        if (!n->symbol) refuse(n->line, "there is no member %s", n->name->text);
        n->type = n->symbol->type;
        return;
    case N_POINTED:
        left = read_only_value(n->left);
        if (left->kind != POINTER) refuse(n->line, "what is followed is no pointer");
        n->type = left->base;
        return;
    case N_UNARY:
        left = read_only_value(n->left);
        if (n->value == T_NOT ? left->kind != BOOLEAN : !number(left)) refuse(n->line, "an operand has a wrong type");
        n->type = n->value == T_NOT ? boolean_type : left->kind == REAL ? real_type : integer_type;
        return;
    case N_BINARY:
        left = read_only_value(n->left);
        n->type = binary_type(n, left, read_only_value(n->right));
        if (!n->type) refuse(n->line, "%s cannot be used on these", token_spelling((enum token)n->value));
        return;
    case N_ELEMENTS: n->type = elements_type(n); return;
    default: refuse(n->line, "an expression is expected here");
    }
}

static void check_condition(node *n) {
    if (read_only_value(n)->kind != BOOLEAN) refuse(n->line, "a condition is expected here");
}

static void check_statement(node *n);

static void check_all(node *n) {
    for (; n; n = n->next) check_statement(n);
}

static void check_assignment(node *n) {
    node *to = n->left;
    symbol *s = to->kind == N_NAME ? meaning(to) : NULL;
    if (s && s == current) { /* the function's result */
        to->symbol = s;
        to->type = s->type;
    } else {
        check_expression(to);
        if (!is_variable(to)) refuse(n->line, "this cannot be assigned to");
    }
    if (!assignable(to->type, read_only_value(n->right))) refuse(n->line, "what is assigned has a wrong type");
}

static void check_for(node *n) {
    const type *t = read_only_value(n->left);
    if (n->left->symbol->kind != VARIABLE || !counted(t)) refuse(n->line, "a loop cannot count with this");
    if (!same_kind(t, read_only_value(n->right)) || !same_kind(t, read_only_value(n->third)))
        refuse(n->line, "the bounds have a wrong type");
    check_statement(n->body);
}

static void check_case(node *n) {
    const type *t = read_only_value(n->left);
    if (!counted(t)) refuse(n->line, "a case cannot depend on this");
    for (node *arm = n->right; arm; arm = arm->next) {
        for (node *label = arm->left; label; label = label->next) {
            constant_of(label);
            if (!same_kind(t, label->type)) refuse(label->line, "a label has a wrong type");
        }
        check_statement(arm->right);
    }
}

/* The members of the record are a scope of their own. What they are taken from is a pointer in C. */
static void check_with(node *n) {
    static unsigned count;
    const type *t = read_only_value(n->left);
    if (t->kind != RECORD || !is_variable(n->left)) refuse(n->line, "with needs a variable that is a record");
    char *through = must(malloc(24));
    snprintf(through, 24, "with_%u", ++count);
    n->text = through;
    symbol *outer = scope;
    unsigned outer_level = level;
    open_scope();
    for (const symbol *s = t->members; s; s = s->next) {
        symbol *field = new_symbol(FIELD, s->name, s->type);
        field->through = through;
        enter(field);
    }
    check_statement(n->right);
    leave(outer, outer_level);
}

static void check_write(node *n) {
    for (node *item = n->left; item; item = item->next) {
        const type *t = read_only_value(item->left);
        if (!number(t) && t->kind != BOOLEAN && t->kind != CHARACTER && t->kind != STRING)
            refuse(item->line, "this cannot be written");
        if (item->right && read_only_value(item->right)->kind != INTEGER) refuse(item->line, "a width is a number");
        if (item->third && (t->kind != REAL || read_only_value(item->third)->kind != INTEGER))
            refuse(item->line, "only a real number has digits after its point");
    }
}

static void check_statement(node *n) {
    switch (n->kind) {
    case N_EMPTY: return;
    case N_COMPOUND: check_all(n->left); return;
    case N_ASSIGN: check_assignment(n); return;
    case N_CALL:
        check_call(n);
        if (n->type) refuse(n->line, "the value of %s is lost", n->name->text);
        return;
    case N_IF:
        check_condition(n->left);
        check_statement(n->right);
        if (n->third) check_statement(n->third);
        return;
    case N_WHILE:
        check_condition(n->left);
        check_statement(n->right);
        return;
    case N_REPEAT:
        check_all(n->left);
        check_condition(n->right);
        return;
    case N_FOR: check_for(n); return;
    case N_CASE: check_case(n); return;
    case N_WITH: check_with(n); return;
    case N_WRITE: check_write(n); return;
    default: refuse(n->line, "a statement is expected here");
    }
}

static void check_block(node *n);

static void check_routine(node *n) {
    symbol *s = declare(ROUTINE, n, NULL);
    n->symbol = s;
    if (n->right) s->type = check_type(n->right);
    symbol *outer = scope, **last = &s->parameters;
    unsigned outer_level = level;
    const symbol *around = current;
    if (around) refuse(n->line, "a routine inside a routine is not translated");
    open_scope();
    current = s;
    for (node *p = n->left; p; p = p->next) {
        p->symbol = declare(VARIABLE, p, check_type(p->left));
        p->symbol->by_reference = p->value;
        symbol *parameter = new_symbol(VARIABLE, p->name, p->symbol->type);
        parameter->by_reference = p->value;
        *last = parameter;
        last = &parameter->next;
    }
    check_block(n->body);
    leave(outer, outer_level);
    current = around;
}

static void check_block(node *n) {
    node *section = NULL; /* where types begin */
    for (node *d = n->left; d; d = d->next) {
        switch (d->kind) {
        case N_CONST:
            read_only_value(d->left);
            d->symbol = declare(CONSTANT, d, d->left->type);
            if (!constant_value(d->left, &d->symbol->value) && d->left->kind != N_REAL && d->left->kind != N_STRING)
                refuse(d->line, "a constant is expected here");
            break;
        case N_TYPE: {
            type *t = check_type(d->left);
            declare(TYPE, d, t);
            if (!t->tag) t->tag = d->name->text;
            break;
        }
        case N_VAR: d->symbol = declare(VARIABLE, d, check_type(d->left)); break;
        default: break;
        }
        /* The last of several types ends what their pointers may wait for. */
        if (d->kind == N_VAR) resolve_pointers(d->left);
        if (d->kind == N_TYPE) {
            if (!section) section = d;
            if (d->next && d->next->kind == N_TYPE) continue;
            for (; section != d->next; section = section->next) resolve_pointers(section->left);
            section = NULL;
        }
        if (d->kind == N_ROUTINE) check_routine(d);
    }
    check_statement(n->right);
}

static void predeclare(enum symbol_kind kind, const char *text, type *t, long value) {
    symbol *s = new_symbol(kind, name_of(text, strlen(text)), t);
    s->value = value;
    enter(s);
}

void check_program(node *program) {
    static const char *const builtins[] = {"abs", "chr", "dispose", "halt", "new", "odd", "ord", "pred", "round", "sqr",
                                           "succ", "trunc"};
    integer_type = new_type(INTEGER);
    integer_type->low = -INT32_MAX;
    integer_type->high = INT32_MAX;
    real_type = new_type(REAL);
    boolean_type = new_type(BOOLEAN);
    boolean_type->high = 1;
    character_type = new_type(CHARACTER);
    character_type->high = 127;
    string_type = new_type(STRING);
    nil_type = new_type(NIL);
    no_elements_type = new_type(SET);
    predeclare(TYPE, "integer", integer_type, 0);
    predeclare(TYPE, "real", real_type, 0);
    predeclare(TYPE, "boolean", boolean_type, 0);
    predeclare(TYPE, "char", character_type, 0);
    predeclare(CONSTANT, "false", boolean_type, 0);
    predeclare(CONSTANT, "true", boolean_type, 1);
    predeclare(CONSTANT, "maxint", integer_type, INT32_MAX);
    for (size_t i = 0; i < sizeof builtins / sizeof builtins[0]; i++)
        predeclare(BUILTIN, builtins[i], NULL, (long)i);
    symbol *outer = scope;
    unsigned outer_level = level;
    open_scope();
    check_block(program->body);
    leave(outer, outer_level);
}
