/* Parses the items of lists:
 *
 *     number  digits | digits k (times 1024) | digits M (times 1024 k) | 2^digits [ - digits ]
 *     range   number .. number [ : step ]     default step: the key's multiple
 *     shape   number x number
 *     word    one of the key's choices
 *     real    a decimal fraction, with an optional exponent
 *
 * Blanks may separate tokens. The values of a range are counted before they are made, so that a
 * huge range costs no time or memory. */
#include "input/values.h"

#include <stdlib.h>
#include <string.h>

/* A number as written. If an int64_t cannot hold it, value is saturated and huge is set. */
typedef struct number {
    int64_t value;
    bool huge;
    const char *text;
    size_t length;
} number;

typedef struct list {
    arena *arena;
    diags *diags;
    const key *key;
    const item *item;
    value_list *out;
} list;

const char *suggestion(arena *a, const char *text, const char *const *candidates, size_t count,
                       const char *introduction)
{
    const char *closest = closest_match(text, candidates, count);
    if (closest)
        return arena_format(a, "; did you mean '%s'?", closest);
    strbuf all = strbuf_new(a);
    strbuf_format(&all, "; %s", introduction);
    for (size_t i = 0; i < count; i++)
        strbuf_format(&all, "%s %s", i ? "," : "", candidates[i]);
    return all.text;
}

bool section_misspells(const section *s, const char *wanted, const char *const *names, size_t count)
{
    for (size_t i = 0; i < s->entries.count; i++) {
        const char *written = s->entries.items[i].key,
                   *meant = closest_match(written, names, count);
        if (meant && strcmp(meant, written) != 0 && strcmp(meant, wanted) == 0)
            return true;
    }
    return false;
}

/* Parses the digits at *at; saturates. */
static int64_t read_digits(const char **at, bool *huge)
{
    int64_t sum = 0;
    for (; is_digit(**at); ++*at) {
        int digit = **at - '0';
        if (sum > (INT64_MAX - digit) / 10) {
            *huge = true;
            sum = INT64_MAX;
        } else {
            sum = sum * 10 + digit;
        }
    }
    return sum;
}

static void shift_left(number *n, int64_t bits)
{
    n->huge = n->huge || bits > 62 || n->value > INT64_MAX >> bits;
    n->value = n->huge ? INT64_MAX : n->value << bits;
}

/* Parses the number at *at. Returns false if there is none. */
static bool read_number(const char **at, number *out)
{
    enum { KIBI_BITS = 10, MEBI_BITS = 20 };
    *at += strspn(*at, " \t");
    const char *start = *at;
    bool negative = *start == '-';
    *at += negative;
    *out = (number){ .text = start };
    if (!is_digit(**at))
        return false;
    if ((*at)[0] == '2' && (*at)[1] == '^' && is_digit((*at)[2])) {
        *at += 2;
        out->value = 1;
        shift_left(out, read_digits(at, &out->huge));
        if ((*at)[0] == '-' && is_digit((*at)[1])) { /* e.g. 2^31-1, the maximum of many keys */
            ++*at;
            out->value -= read_digits(at, &out->huge);
        }
    } else {
        out->value = read_digits(at, &out->huge);
        if (**at == 'k' || **at == 'M')
            shift_left(out, *(*at)++ == 'k' ? KIBI_BITS : MEBI_BITS);
    }
    if (negative)
        out->value = -out->value;
    out->length = (size_t)(*at - start);
    *at += strspn(*at, " \t");
    return true;
}

bool spec_parse_number(const char *text, int64_t *out)
{
    number n;
    if (!read_number(&text, &n) || *text || n.huge)
        return false;
    *out = n.value;
    return true;
}

static location number_place(const list *l, const number *n)
{
    return location_part(l->item->where, (size_t)(n->text - l->item->text), n->length);
}

/* Returns a number for a message, as written if it does not fit an int64_t. */
static const char *number_text(const list *l, const number *n)
{
    return n->huge ? arena_copy(l->arena, n->text, n->length)
                   : arena_format(l->arena, "%lld", (long long)n->value);
}

/* Returns true if a number is in the key's range and a multiple of its unit, or reports it. */
static bool check_number(const list *l, const key *k, const number *n, location where)
{
    int64_t unit = k->multiple_of > 1 && !k->of_weights ? k->multiple_of : 1;
    int64_t least = (k->min + unit - 1) / unit * unit, most = k->max / unit * unit;
    int64_t below = n->value / unit * unit;
    if (n->value < least)
        diag_error(l->diags, DIAG_OUT_OF_RANGE, where, "%s = %s is too small; the smallest is %lld",
                   k->name, number_text(l, n), (long long)least);
    else if (n->value > most)
        diag_error(l->diags, DIAG_OUT_OF_RANGE, where, "%s = %s is too large; the largest is %lld",
                   k->name, number_text(l, n), (long long)most);
    else if (n->value != below)
        diag_error(l->diags, DIAG_NOT_A_MULTIPLE, where,
                   "%s = %s is not a multiple of %lld; use %lld or %lld", k->name,
                   number_text(l, n), (long long)unit, (long long)below, (long long)(below + unit));
    else
        return true;
    return false;
}

static void add_value(const list *l, int64_t first, int64_t second)
{
    *VEC_PUSH(l->arena, l->out) = (value){ .numbers = { first, second }, .item = l->item };
}

static void report_no_number(const list *l)
{
    const char *hint = "write 4096, 4k, 1M, 2^12 or a range 1..8";
    if (strchr(l->item->text, '#'))
        hint = "a comment after a value starts with ';'";
    diag_error(l->diags, DIAG_NOT_A_NUMBER, l->item->where, "%s = '%s' is not a number; %s",
               l->key->name, l->item->text, hint);
}

static void read_range(const list *l, const number *first, const number *last, const number *step)
{
    location where = l->item->where;
    if (step && step->value < 1) {
        diag_error(l->diags, DIAG_BAD_RANGE, number_place(l, step),
                   "the step %lld is too small; the smallest is 1", (long long)step->value);
        return;
    }
    if (last->value < first->value) {
        diag_error(l->diags, DIAG_BAD_RANGE, where, "the range %s..%s is descending; write %s..%s",
                   number_text(l, first), number_text(l, last), number_text(l, last),
                   number_text(l, first));
        return;
    }
    int64_t unit = l->key->multiple_of > 1 ? l->key->multiple_of : 1;
    number bound = *last; /* upper bound; the last value of the range may be smaller */
    if (!bound.huge && bound.value >= unit)
        bound.value = bound.value / unit * unit;
    if (!check_number(l, l->key, first, number_place(l, first)) ||
        !check_number(l, l->key, &bound, number_place(l, last)))
        return;
    int64_t stride = step ? step->value : unit;
    int64_t count = (last->value - first->value) / stride + 1;
    if (count > SPEC_MAX_INSTANCES) {
        diag_error(l->diags, DIAG_TOO_MANY, where,
                   "%s = %s has %lld values; a spec may have at most %d instances", l->key->name,
                   l->item->text, (long long)count, SPEC_MAX_INSTANCES);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        number n = { .value = first->value + i * stride };
        if (!check_number(l, l->key, &n, where))
            return; /* reports only the first wrong value of a range */
        add_value(l, n.value, 0);
    }
}

static void read_numbers(const list *l)
{
    const char *at = l->item->text;
    number first, last, step;
    bool has_step = false;
    if (!read_number(&at, &first)) {
        report_no_number(l);
        return;
    }
    if (!*at) {
        if (check_number(l, l->key, &first, l->item->where))
            add_value(l, first.value, 0);
        return;
    }
    bool range = at[0] == '.' && at[1] == '.';
    at += range ? 2 : 0;
    range = range && read_number(&at, &last);
    if (range && *at == ':') {
        at++;
        has_step = read_number(&at, &step);
        range = has_step;
    }
    if (range && !*at)
        read_range(l, &first, &last, has_step ? &step : NULL);
    else
        report_no_number(l);
}

static void read_real(const list *l)
{
    const char *text = l->item->text;
    const real_range *range = l->key->real;
    char *end;
    double parsed = strtod(text, &end);
    if (end == text || *end || text[strspn(text, "0123456789.eE+-")])
        diag_error(l->diags, DIAG_NOT_A_NUMBER, l->item->where,
                   "%s = '%s' is not a number; write 1e-5 or 0.00001", l->key->name, text);
    else if (parsed < range->min)
        diag_error(l->diags, DIAG_OUT_OF_RANGE, l->item->where,
                   "%s = %s is too small; the smallest is %s", l->key->name, text,
                   real_text(l->arena, range->min));
    else if (parsed > range->max)
        diag_error(l->diags, DIAG_OUT_OF_RANGE, l->item->where,
                   "%s = %s is too large; the largest is %s", l->key->name, text,
                   real_text(l->arena, range->max));
    else
        add_value(l, real_bits(parsed + 0.0), 0); /* -0 becomes 0 */
}

static void read_word(const list *l)
{
    VEC(const char *) words = { 0 };
    for (const choice *c = l->key->choices; c->word; c++) {
        if (!key_takes_choice(l->key, c))
            continue;
        if (strcmp(c->word, l->item->text) == 0) {
            add_value(l, c - l->key->choices, 0);
            return;
        }
        *VEC_PUSH(l->arena, &words) = c->word;
    }
    diag_error(l->diags, DIAG_BAD_CHOICE, l->item->where, "%s cannot be '%s'%s", l->key->name,
               l->item->text,
               suggestion(l->arena, l->item->text, words.items, words.count, "the choices are"));
}

/* Compares by numbers, then by position in the list. */
static int by_numbers(const void *left, const void *right)
{
    const value *a = *(const value *const *)left, *b = *(const value *const *)right;
    for (int i = 0; i < 2; i++)
        if (a->numbers[i] != b->numbers[i])
            return a->numbers[i] < b->numbers[i] ? -1 : 1;
    return a < b ? -1 : a > b;
}

/* Keeps the first of equal values, and warns about the first duplicate. */
static void drop_duplicates(arena *a, const entry *e, value_list *values, diags *d)
{
    if (e->items.count < 2)
        return;
    const value **sorted = arena_alloc(a, values->count * sizeof *sorted);
    bool *twice = arena_zalloc(a, values->count * sizeof *twice);
    for (size_t i = 0; i < values->count; i++)
        sorted[i] = &values->items[i];
    qsort(sorted, values->count, sizeof *sorted, by_numbers);
    for (size_t i = 1; i < values->count; i++)
        twice[sorted[i] - values->items] = sorted[i]->numbers[0] == sorted[i - 1]->numbers[0] &&
                                           sorted[i]->numbers[1] == sorted[i - 1]->numbers[1];

    size_t kept = 0;
    const item *repeated = NULL;
    for (size_t i = 0; i < values->count; i++) {
        if (!twice[i])
            values->items[kept++] = values->items[i];
        else if (!repeated)
            repeated = values->items[i].item;
    }
    values->count = kept;
    if (repeated)
        diag_warning(d, DIAG_DUPLICATE_VALUE, repeated->where,
                     "'%s' repeats a value of '%s'; the duplicate is ignored", repeated->text,
                     e->key);
}

void values_read(arena *a, const key *k, const entry *e, value_list *out, diags *d)
{
    list l = { .arena = a, .diags = d, .key = k, .out = out };
    for (size_t i = 0; i < e->items.count && out->count <= SPEC_MAX_INSTANCES; i++) {
        l.item = &e->items.items[i];
        if (k->choices)
            read_word(&l);
        else if (k->real)
            read_real(&l);
        else
            read_numbers(&l);
    }
    drop_duplicates(a, e, out, d);
}

void values_read_shapes(arena *a, const key *k, const key *n, const entry *e, value_list *out,
                        diags *d)
{
    list l = { .arena = a, .diags = d, .key = k, .out = out };
    for (size_t i = 0; i < e->items.count; i++) {
        l.item = &e->items.items[i];
        const char *at = l.item->text;
        number columns, rows;
        bool right = read_number(&at, &columns) && (*at == 'x' || *at == 'X');
        at += right;
        if (!right || !read_number(&at, &rows) || *at) {
            diag_error(d, DIAG_BAD_SHAPE, l.item->where,
                       "'%s' is not a shape; write K x N, such as 4096x14336", l.item->text);
            continue;
        }
        bool columns_right = check_number(&l, k, &columns, number_place(&l, &columns));
        if (check_number(&l, n, &rows, number_place(&l, &rows)) && columns_right)
            add_value(&l, columns.value, rows.value);
    }
    drop_duplicates(a, e, out, d);
}
