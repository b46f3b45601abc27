/* For one group of rows, the list is made from pairs (row, slot), one thread each. A pair starts
 * its expert's entry if no earlier row has the expert. The index of the entry is the number of such
 * pairs with lower experts.
 *
 * For several groups, each expert has a bit per row that chose it. The number of earlier bits is a
 * row's place in the expert's entry, and the number of earlier experts in use is the entry's index.
 * Example: 3 rows choose experts (4, 1), (4, 7) and (1, 7). The bits, with bit 0 on the right, are
 * 101 for expert 1, 011 for 4 and 110 for 7. The third row's choice of 7 is in entry 2, at place 1.
 */
#include "gen/experts/route.h"

enum { WORD_BITS = 32, LINE = 16 };

static val entry_at(ptx *p, const route *r, val number)
{
    val words = mul(p, number, EXPERT_FIRST_ROW + r->m);
    return mad_wide(p, words, ROUTE_WORD,
                    add(p, parameter(p, "list"), EXPERT_LIST_HEAD * ROUTE_WORD));
}

static void store_head(ptx *p, val entries)
{
    val4 head = { { entries, imm(U32, 0), imm(U32, 0), imm(U32, 0) } };
    PTX_IF (p, eq(p, tid_x(p), 0))
        st_global_v4(p, U32, parameter(p, "list"), 0, head);
}

static void load_ids(ptx *p, const route *r, val array, val row, val ids[ROUTE_USED])
{
    val at = mad(p, row, imm(U32, r->room * ROUTE_WORD), array);
    for (unsigned i = 0; i < r->room; i += ROUTE_LINE_IDS) {
        val4 line = ld_shared_v4(p, U32, at, i * ROUTE_WORD);
        for (unsigned j = 0; j < ROUTE_LINE_IDS; j++)
            ids[i + j] = line.v[j];
    }
}

/* A position in the array of ids, and the id there. */
typedef struct place_of_id {
    val number, row, slot, id;
} place_of_id;

static place_of_id place_new(ptx *p, const route *r, val number)
{
    place_of_id at = { number, div(p, number, r->room), rem(p, number, r->room), { 0 } };
    at.id = ld_shared(p, U32, mad(p, number, ROUTE_WORD, r->ids), 0);
    return at;
}

/* The number of rows that have an expert, and the number of them before a given row. */
typedef struct row_count {
    var all, before;
} row_count;

static row_count count_rows(ptx *p, const route *r, const place_of_id *at)
{
    row_count rows = { var_u32(p, r->m > 1 ? 0 : 1), var_u32(p, 0) };
    if (r->m == 1)
        return rows;
    PTX_FOR (p, other, 0, r->m, 1) {
        val ids[ROUTE_USED], has_it = { 0 };
        load_ids(p, r, r->ids, other, ids);
        for (unsigned i = 0; i < r->used; i++)
            has_it = i ? bit_or(p, has_it, eq(p, ids[i], at->id)) : eq(p, ids[i], at->id);
        PTX_IF (p, has_it) {
            val earlier = lt(p, other, at->row);
            assign(p, rows.all, add(p, rows.all, 1));
            assign(p, rows.before, select(p, earlier, add(p, rows.before, 1), rows.before));
        }
    }
    return rows;
}

/* Returns the number of entries with experts below id. */
static val count_entries(ptx *p, const route *r, val id)
{
    var count = var_u32(p, 0);
    PTX_FOR (p, listed, 0, r->m, 1) {
        val ids[ROUTE_USED];
        load_ids(p, r, r->firsts, listed, ids);
        for (unsigned i = 0; i < r->used; i++)
            assign(p, count, select(p, lt(p, ids[i], id), add(p, count, 1), count));
    }
    return get(p, count);
}

static void make_list_of_few(ptx *p, const route *r)
{
    if (r->m > 1) {
        barrier(p);
        PTX_FOR (p, number, tid_x(p), r->m * r->room, r->threads) {
            place_of_id place = place_new(p, r, number);
            row_count rows = count_rows(p, r, &place);
            val first = select(p, eq(p, rows.before, 0), place.id, imm(U32, ROUTE_NO_ID));
            st_shared(p, U32, mad(p, number, ROUTE_WORD, r->firsts), 0, first);
        }
    }
    barrier(p);
    PTX_FOR (p, number, tid_x(p), r->m * r->room, r->threads) {
        place_of_id pair = place_new(p, r, number);
        PTX_IF (p, lt(p, pair.slot, r->used)) {
            row_count rows = count_rows(p, r, &pair);
            val at = entry_at(p, r, count_entries(p, r, pair.id));
            PTX_IF (p, eq(p, rows.before, 0)) { /* this pair starts the entry */
                st_global(p, U32, at, 0, pair.id);
                st_global(p, U32, at, ROUTE_WORD, rows.all);
                for (unsigned i = 1; i < r->m; i++)
                    PTX_IF (p, le(p, rows.all, i))
                        st_global(p, U32, at, (EXPERT_FIRST_ROW + i) * ROUTE_WORD,
                                  imm(U32, ROUTE_NO_ID));
            }
            val word = mad(p, pair.row, r->used, pair.slot);
            st_global(p, U32, mad_wide(p, rows.before, ROUTE_WORD, at),
                      EXPERT_FIRST_ROW * ROUTE_WORD, word);
        }
    }
    val entries = r->m > 1 ? count_entries(p, r, imm(U32, ROUTE_NO_ID)) : imm(U32, r->used);
    store_head(p, entries);
    if (r->m > 1)
        PTX_FOR (p, left, add(p, tid_x(p), entries), problem_experts_listed(&r->in->shape),
                 r->threads) {
            val entry = entry_at(p, r, left);
            for (unsigned i = 0; i < EXPERT_FIRST_ROW + r->m; i++)
                st_global(p, U32, entry, i * ROUTE_WORD, imm(U32, i == 1 ? 0 : ROUTE_NO_ID));
        }
}

typedef struct many {
    const route *r;
    unsigned words; /* words of bits per expert */
    unsigned entries;
    val bits;   /* shared memory, [experts, words] */
    val in_use; /* one bit per expert */
    val counts; /* rows per entry */
} many;

static unsigned words_of(int64_t bits)
{
    return (unsigned)((bits + WORD_BITS - 1) / WORD_BITS);
}

static int64_t array_bytes(int64_t words)
{
    return (words * ROUTE_WORD + LINE - 1) / LINE * LINE;
}

int64_t route_bytes_of_many(const instance *in)
{
    int64_t experts = in->shape.experts;
    return array_bytes(experts * words_of(in->shape.m)) + array_bytes(words_of(experts)) +
           problem_experts_listed(&in->shape) * ROUTE_WORD;
}

static val word_at(ptx *p, val array, val number)
{
    return mad(p, number, ROUTE_WORD, array);
}

static void set_bit(ptx *p, val array, val number)
{
    atomic_add_shared(p, word_at(p, array, shr(p, number, 5)),
                      shl(p, imm(U32, 1), bit_and(p, number, WORD_BITS - 1)));
}

/* Returns the number of set bits before bit `number`. */
static val bits_before(ptx *p, val array, val number)
{
    val word = shr(p, number, 5), bit = bit_and(p, number, WORD_BITS - 1);
    val below = sub(p, shl(p, imm(U32, 1), bit), 1);
    var count =
        var_u32(p, count_bits(p, bit_and(p, ld_shared(p, U32, word_at(p, array, word), 0), below)));
    PTX_FOR (p, other, 0, word, 1)
        assign(p, count,
               add(p, count, count_bits(p, ld_shared(p, U32, word_at(p, array, other), 0))));
    return get(p, count);
}

static val bits_of_expert(ptx *p, const many *m, val id)
{
    return mad(p, id, m->words * ROUTE_WORD, m->bits);
}

static void clear(ptx *p, val array, unsigned words, unsigned threads)
{
    PTX_FOR (p, word, tid_x(p), words, threads)
        st_shared(p, U32, word_at(p, array, word), 0, imm(U32, 0));
}

/* Returns the expert of a pair, row * used + slot. Another block may have stored it. */
static val id_of(ptx *p, val pair)
{
    return ld_global(p, U32, mad_wide(p, pair, ROUTE_WORD, parameter(p, "ids")), 0);
}

static val rows_of_expert(ptx *p, const many *m, val id)
{
    val at = bits_of_expert(p, m, id), count = { 0 };
    for (unsigned i = 0; i < m->words; i++) {
        val of_word = count_bits(p, ld_shared(p, U32, at, i * ROUTE_WORD));
        count = i ? add(p, count, of_word) : of_word;
    }
    return count;
}

/* Pads the choices of every entry and fills the unused entries, one warp per entry. */
static void store_rest(ptx *p, const many *m, val entries)
{
    val unused = imm(U32, ROUTE_NO_ID);
    PTX_FOR (p, number, warp_id(p), m->entries, m->r->warps) {
        val at = entry_at(p, m->r, number),
            count = ld_shared(p, U32, word_at(p, m->counts, number), 0);
        PTX_FOR (p, place, add(p, lane_id(p), count), m->r->m, WARP)
            st_global(p, U32, mad_wide(p, place, ROUTE_WORD, at), EXPERT_FIRST_ROW * ROUTE_WORD,
                      unused);
        PTX_IF (p, bit_and(p, eq(p, lane_id(p), 0), ge(p, number, entries))) {
            st_global(p, U32, at, 0, unused);
            st_global(p, U32, at, ROUTE_WORD, imm(U32, 0));
        }
    }
    store_head(p, entries);
}

static void make_list_of_many(ptx *p, const route *r)
{
    many m = { .r = r,
               .words = words_of(r->m),
               .entries = (unsigned)problem_experts_listed(&r->in->shape) };
    unsigned of_experts = words_of(r->experts);
    m.bits = shared_array(p, "rows_of_experts", U32, r->experts * m.words);
    m.in_use = shared_array(p, "experts_in_use", U32, of_experts);
    m.counts = shared_array(p, "rows_of_entries", U32, m.entries);
    clear(p, m.bits, r->experts * m.words, r->threads);
    clear(p, m.in_use, of_experts, r->threads);
    clear(p, m.counts, m.entries, r->threads);
    barrier(p);
    PTX_FOR (p, pair, tid_x(p), m.r->m * m.r->used, m.r->threads)
        set_bit(p, bits_of_expert(p, &m, id_of(p, pair)), div(p, pair, m.r->used));
    barrier(p);
    PTX_FOR (p, id, tid_x(p), m.r->experts, m.r->threads)
        PTX_IF (p, ne(p, rows_of_expert(p, &m, id), 0))
            set_bit(p, m.in_use, id);
    barrier(p);
    PTX_FOR (p, id, tid_x(p), m.r->experts, m.r->threads) {
        val count = rows_of_expert(p, &m, id);
        PTX_IF (p, ne(p, count, 0)) {
            val number = bits_before(p, m.in_use, id), at = entry_at(p, m.r, number);
            st_global(p, U32, at, 0, id);
            st_global(p, U32, at, ROUTE_WORD, count);
            st_shared(p, U32, word_at(p, m.counts, number), 0, count);
        }
    }
    PTX_FOR (p, pair, tid_x(p), m.r->m * m.r->used, m.r->threads) {
        val id = id_of(p, pair), entry = entry_at(p, m.r, bits_before(p, m.in_use, id));
        val place = bits_before(p, bits_of_expert(p, &m, id), div(p, pair, m.r->used));
        st_global(p, U32, mad_wide(p, place, ROUTE_WORD, entry), EXPERT_FIRST_ROW * ROUTE_WORD,
                  pair);
    }
    barrier(p);
    val last = ld_shared(p, U32, m.in_use, (of_experts - 1) * ROUTE_WORD);
    val before = bits_before(p, m.in_use, imm(U32, (of_experts - 1) * WORD_BITS));
    store_rest(p, &m, add(p, before, count_bits(p, last)));
}

void route_make_list(ptx *p, const route *r)
{
    if (r->m > r->group)
        make_list_of_many(p, r);
    else
        make_list_of_few(p, r);
}
