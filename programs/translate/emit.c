/* C from the checked tree. Expressions become texts, each a heap object that goes into the text of what it is a part
 * of and is given back; statements are written line by line. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../storage/storage.h"
#include "translate.h"

typedef struct {
    size_t length;
    char bytes[];
} text;

static struct kinds texts;
static int depth; /* of blocks, for the indentation */

static text *text_new(size_t length) {
    text *t = kinds_take(&texts, sizeof *t + length + 1);
    t->length = length;
    t->bytes[length] = '\0';
    return t;
}

static void text_give(text *t) { kinds_give(&texts, t, sizeof *t + t->length + 1); }

static text *text_of(const char *bytes) {
    size_t length = strlen(bytes);
    text *t = text_new(length);
    memcpy(t->bytes, bytes, length);
    return t;
}

static text *number(long value) {
    char bytes[24];
    snprintf(bytes, sizeof bytes, value < 0 ? "(%ld)" : "%ld", value);
    return text_of(bytes);
}

/* The format with a text in place of each @, which is given back. */
static text *join(const char *format, ...) {
    size_t length = 0;
    va_list arguments;
    va_start(arguments, format);
    for (const char *f = format; *f; f++) length += *f == '@' ? va_arg(arguments, text *)->length : 1;
    va_end(arguments);
    text *result = text_new(length);
    char *to = result->bytes;
    va_start(arguments, format);
    for (const char *f = format; *f; f++) {
        if (*f != '@') {
            *to++ = *f;
            continue;
        }
        text *part = va_arg(arguments, text *);
        memcpy(to, part->bytes, part->length);
        to += part->length;
        text_give(part);
    }
    va_end(arguments);
    return result;
}

/* Writes a line, and gives the text back. */
static void put(text *t) {
    for (int i = 0; i < depth; i++) fputs("    ", stdout);
    fputs(t->bytes, stdout);
    putchar('\n');
    text_give(t);
}

static void put_line(const char *bytes) { put(text_of(bytes)); }

static text *name_in_c(const name *n) { return n->taken ? join("@_", text_of(n->text)) : text_of(n->text); }

static text *quoted(const char *bytes, char quote) {
    size_t length = 2;
    for (const char *b = bytes; *b; b++) length += *b == '\\' || *b == quote ? 2 : 1;
    text *t = text_new(length);
    char *to = t->bytes;
    *to++ = quote;
    for (const char *b = bytes; *b; b++) {
        if (*b == '\\' || *b == quote) *to++ = '\\';
        *to++ = *b;
    }
    *to = quote;
    return t;
}

static text *tag_of(type *t) {
    static unsigned count;
    if (!t->tag) {
        char *tag = must(malloc(24));
        snprintf(tag, 24, "unnamed_%u", ++count);
        t->tag = tag;
    }
    return name_in_c(name_of(t->tag, strlen(t->tag)));
}

static text *type_in_c(type *t, int at) {
    switch (t->kind) {
    case REAL: return text_of("double");
    case BOOLEAN: return text_of("_Bool");
    case CHARACTER: return text_of("char");
    case SET: return text_of("unsigned long long");
    case ARRAY:
    case RECORD: return join("struct @", tag_of(t));
    case POINTER: {
        const type *to = t->base;
        for (int i = 0; to->kind == POINTER; i++, to = to->base)
            if (i == 50) refuse(at, "a pointer that points to its own type is not translated");
        return join("@ *", type_in_c(t->base, at));
    }
    default: return text_of("int"); /* integers, and enumerations, whose members are integers in C */
    }
}

static text *expression(const node *n);

static const char *operator_in_c(long token, bool sets) {
    switch (token) {
    case T_PLUS: return sets ? "|" : "+";
    case T_MINUS: return sets ? "& ~" : "-";
    case T_STAR: return sets ? "&" : "*";
    case T_SLASH:
    case T_DIV: return "/";
    case T_MOD: return "%";
    case T_AND: return "&&";
    case T_OR: return "||";
    case T_EQUAL: return "==";
    case T_NOT_EQUAL: return "!=";
    case T_LESS: return "<";
    case T_AT_MOST: return "<=";
    case T_GREATER: return ">";
    default: return ">=";
    }
}

static text *binary(const node *n) {
    long folded;
    if (constant_value(n, &folded)) return number(folded);
    bool sets = n->left->type->kind == SET;
    text *left = expression(n->left), *right = expression(n->right);
    if (n->value == T_IN) return join("((@ >> @) & 1)", right, left);
    if (n->value == T_AT_MOST && sets) return join("((@ & ~@) == 0)", left, right);
    if (n->value == T_AT_LEAST && sets) return join("((@ & ~@) == 0)", right, left);
    const char *format = n->value == T_SLASH ? "((double)@ @ @)" : "(@ @ @)";
    return join(format, left, text_of(operator_in_c(n->value, sets)), right);
}

static text *elements(const node *n) {
    text *all = text_of("0ULL");
    for (const node *e = n->left; e; e = e->next) {
        text *one = e->kind == N_RANGE ? join("pascal_range(@, @)", expression(e->left), expression(e->right))
                                       : join("1ULL << @", expression(e));
        all = join("@ | @", all, one);
    }
    return join("(@)", all);
}

static text *arguments(const node *n, const symbol *called) {
    text *all = text_of("");
    const symbol *parameter = called->parameters;
    for (const node *a = n->left; a; a = a->next, parameter = parameter->next) {
        text *one = parameter->by_reference ? join("&@", expression(a)) : expression(a);
        all = join(a == n->left ? "@@" : "@, @", all, one);
    }
    return all;
}

static text *builtin(const node *n) {
    text *a = n->left ? expression(n->left) : text_of("");
    bool real = n->left && n->left->type->kind == REAL;
    switch ((enum builtin)n->symbol->value) {
    case B_ABS: return join(real ? "pascal_real_abs(@)" : "pascal_abs(@)", a);
    case B_SQR: return join(real ? "pascal_real_sqr(@)" : "pascal_sqr(@)", a);
    case B_CHR: return join("(char)@", a);
    case B_ORD: return join("(int)@", a);
    case B_ODD: return join("((@ & 1) != 0)", a);
    case B_PRED: return join("(@ - 1)", a);
    case B_SUCC: return join("(@ + 1)", a);
    case B_TRUNC: return join("(int)@", a);
    case B_ROUND: return join("pascal_round(@)", a);
    case B_DISPOSE: return join("free(@)", a);
    case B_NEW: return join("@ = pascal_new(sizeof(@))", a, type_in_c(n->left->type->base, n->line));
    default: return join("exit(0)@", a);
    }
}

static text *invocation(const node *n) {
    if (n->symbol->kind == BUILTIN) return builtin(n);
    return join("@(@)", name_in_c(n->name), arguments(n, n->symbol));
}

static text *named(const node *n) {
    const symbol *s = n->symbol;
    long value;
    if (s->kind == ROUTINE) return text_of("result"); /* of the function that it stands in */
    if (s->kind == CONSTANT && n->type->kind != ENUMERATION && constant_value(n, &value)) return number(value);
    if (s->through) return join("@->@", text_of(s->through), name_in_c(s->name));
    return join(s->by_reference ? "(*@)" : "@", name_in_c(s->name));
}

static text *index_in_c(const node *n) {
    long low = n->left->type->index->low, value;
    text *array = expression(n->left);
    if (constant_value(n->right, &value)) return join("@.at[@]", array, number(value - low));
    if (low == 0) return join("@.at[@]", array, expression(n->right));
    return join("@.at[@ - @]", array, expression(n->right), number(low));
}

static text *expression(const node *n) {
    switch (n->kind) {
    case N_INTEGER: return number(n->value);
    case N_REAL: return text_of(n->text);
    case N_STRING: return quoted(n->text, n->type->kind == CHARACTER ? '\'' : '"');
    case N_NIL: return text_of("(void *)0");
    case N_NAME: return named(n);
    case N_INVOKE: return invocation(n);
    case N_INDEX: return index_in_c(n);
    case N_FIELD:
        if (n->left->kind == N_POINTED) return join("@->@", expression(n->left->left), name_in_c(n->name));
        return join("@.@", expression(n->left), name_in_c(n->name));
    case N_POINTED: return join("(*@)", expression(n->left));
    case N_UNARY: return join(n->value == T_NOT ? "!@" : n->value == T_MINUS ? "(-@)" : "@", expression(n->left));
    case N_BINARY: return binary(n);
    default: return elements(n);
    }
}

static void statement(const node *n);

static void block_of(const node *n) {
    depth++;
    if (n->kind == N_COMPOUND)
        for (const node *s = n->left; s; s = s->next) statement(s);
    else statement(n);
    depth--;
}

/* The conversion for printf, and its arguments. */
static text *written(const node *item, text **values) {
    text *width = item->right ? text_of("*") : text_of("");
    if (item->right) *values = join("@, @", *values, expression(item->right));
    text *value = expression(item->left);
    switch (item->left->type->kind) {
    case REAL:
        if (!item->third) return *values = join("@, @", *values, value), join("%@g", width);
        *values = join("@, @, @", *values, expression(item->third), value);
        return join("%@.*f", width);
    case BOOLEAN: return *values = join("@, @ ? \"TRUE\" : \"FALSE\"", *values, value), join("%@s", width);
    case CHARACTER: return *values = join("@, @", *values, value), join("%@c", width);
    case STRING: return *values = join("@, @", *values, value), join("%@s", width);
    default: return *values = join("@, @", *values, value), join("%@d", width);
    }
}

static void write_statement(const node *n) {
    text *format = text_of(""), *values = text_of("");
    for (const node *item = n->left; item; item = item->next) format = join("@@", format, written(item, &values));
    put(join(n->value ? "printf(\"@\\n\"@);" : "printf(\"@\"@);", format, values));
}

static void for_statement(const node *n) {
    static unsigned count;
    char limit[24];
    bool down = n->value == T_DOWNTO;
    snprintf(limit, sizeof limit, "limit_%u", ++count);
    put_line("{");
    depth++;
    put(join("int @ = @;", text_of(limit), expression(n->third)));
    put(join("@ = @;", expression(n->left), expression(n->right)));
    /* The count ends with the limit and never passes it: there may be no such value. */
    put(join(down ? "if (@ >= @) for (;; @--) {" : "if (@ <= @) for (;; @++) {", expression(n->left), text_of(limit),
             expression(n->left)));
    block_of(n->body);
    depth++;
    put(join("if (@ == @) break;", expression(n->left), text_of(limit)));
    depth--;
    put_line("}");
    depth--;
    put_line("}");
}

static void case_statement(const node *n) {
    put(join("switch (@) {", expression(n->left)));
    for (const node *arm = n->right; arm; arm = arm->next) {
        text *labels = text_of(arm->value ? "default:" : "");
        for (const node *label = arm->left; label; label = label->next)
            labels = join("@case @: ", labels, expression(label));
        put(labels);
        block_of(arm->right);
        depth++;
        put_line("break;");
        depth--;
    }
    put_line("}");
}

static void with_statement(const node *n) {
    put_line("{");
    depth++;
    put(join("@ *@ = &@;", type_in_c(n->left->type, n->line), text_of(n->text), expression(n->left)));
    block_of(n->right);
    depth--;
    put_line("}");
}

static void statement(const node *n) {
    switch (n->kind) {
    case N_EMPTY: put_line(";"); return;
    case N_COMPOUND:
        put_line("{");
        block_of(n);
        put_line("}");
        return;
    case N_ASSIGN: put(join("@ = @;", expression(n->left), expression(n->right))); return;
    case N_CALL: put(join("@;", invocation(n))); return;
    case N_IF:
        put(join("if (@) {", expression(n->left)));
        block_of(n->right);
        if (n->third) {
            put_line("} else {");
            block_of(n->third);
        }
        put_line("}");
        return;
    case N_WHILE:
        put(join("while (@) {", expression(n->left)));
        block_of(n->right);
        put_line("}");
        return;
    case N_REPEAT:
        put_line("do {");
        depth++;
        for (const node *s = n->left; s; s = s->next) statement(s);
        depth--;
        put(join("} while (!@);", expression(n->right)));
        return;
    case N_FOR: for_statement(n); return;
    case N_CASE: case_statement(n); return;
    case N_WITH: with_statement(n); return;
    default: write_statement(n); return;
    }
}

/* What a type needs that has no name of its own in C: enumerators and structures, the inner ones first. */
static void declare_type(const node *n) {
    if (n->type->written) return;
    switch (n->kind) {
    case N_ENUMERATION: {
        text *all = text_of("");
        for (const node *m = n->left; m; m = m->next)
            all = join(m == n->left ? "@@" : "@, @", all, name_in_c(m->name));
        put(join("enum { @ };", all));
        break;
    }
    case N_SET: declare_type(n->left); return;
    case N_ARRAY: {
        declare_type(n->left);
        declare_type(n->right);
        long count = n->type->index->high - n->type->index->low + 1;
        put(join("struct @ { @ at[@]; };", tag_of(n->type), type_in_c(n->type->base, n->line), number(count)));
        break;
    }
    case N_RECORD:
        for (const node *f = n->left; f; f = f->next) declare_type(f->left);
        put(join("struct @ {", tag_of(n->type)));
        depth++;
        for (const node *f = n->left; f; f = f->next)
            put(join("@ @;", type_in_c(f->left->type, n->line), name_in_c(f->name)));
        depth--;
        put_line("};");
        break;
    default: return;
    }
    n->type->written = true;
}

/* Numbers and characters stand wherever they are used. */
static void declare_constant(const node *n) {
    text *called = name_in_c(n->name), *value = expression(n->left);
    switch (n->symbol->type->kind) {
    case REAL: put(join("static const double @ = @;", called, value)); return;
    case STRING: put(join("static const char @[] = @;", called, value)); return;
    case ENUMERATION: put(join("enum { @ = @ };", called, value)); return;
    default:
        text_give(called);
        text_give(value);
        return;
    }
}

static text *parameters(const node *n) {
    text *all = text_of(n->left ? "" : "void");
    for (const node *p = n->left; p; p = p->next)
        all = join(p == n->left ? "@@ @@" : "@, @ @@", all, type_in_c(p->left->type, n->line),
                   text_of(p->value ? "*" : ""), name_in_c(p->name));
    return all;
}

static void block(const node *n, const char *storage);

static void routine(const node *n) {
    text *result = n->right ? type_in_c(n->right->type, n->line) : text_of("void");
    put(join("static @ @(@) {", result, name_in_c(n->name), parameters(n)));
    depth++;
    if (n->right) put(join("@ result = {0};", type_in_c(n->right->type, n->line)));
    block(n->body, "");
    if (n->right) put_line("return result;");
    depth--;
    put_line("}\n");
}

static void block(const node *n, const char *storage) {
    for (const node *d = n->left; d; d = d->next) {
        if (d->kind == N_TYPE && d->left->kind == N_RECORD) put(join("struct @;", tag_of(d->left->type)));
    }
    for (const node *d = n->left; d; d = d->next) {
        switch (d->kind) {
        case N_CONST: declare_constant(d); break;
        case N_TYPE: declare_type(d->left); break;
        case N_VAR:
            declare_type(d->left);
            put(join("@@ @;", text_of(storage), type_in_c(d->left->type, d->line), name_in_c(d->name)));
            break;
        default: routine(d); break;
        }
    }
    if (*storage) {
        put_line("int main(void) {");
        depth++;
    }
    for (const node *s = n->right->left; s; s = s->next) statement(s);
    if (*storage) {
        put_line("return 0;");
        depth--;
        put_line("}");
    }
}

void emit_program(const node *program) {
    put(join("/* program @ */", name_in_c(program->name)));
    put_line("extern int printf(const char *, ...);");
    put_line("extern void *malloc(__SIZE_TYPE__), free(void *), exit(int);\n");
    put_line("static inline void *pascal_new(__SIZE_TYPE__ size) {\n    void *new = malloc(size);\n"
             "    if (!new) exit(1);\n    return new;\n}");
    put_line("static inline int pascal_abs(int x) { return x < 0 ? -x : x; }");
    put_line("static inline int pascal_sqr(int x) { return x * x; }");
    put_line("static inline double pascal_real_abs(double x) { return x < 0 ? -x : x; }");
    put_line("static inline double pascal_real_sqr(double x) { return x * x; }");
    put_line("static inline int pascal_round(double x) { return (int)(x < 0 ? x - 0.5 : x + 0.5); }");
    put_line("static inline unsigned long long pascal_range(int low, int high) {\n"
             "    return low > high ? 0 : (~0ULL >> (63 - high)) & (~0ULL << low);\n}\n");
    block(program->body, "static ");
}
