/* The list of many rows: each expert has a bit for each row that chose it. How many of those stand
 * ahead of a row's is its place in the expert's entry, and how many experts that are in use stand
 * ahead of one is the number of that entry.
 *
 * Of 3 rows that chose experts (4, 1), (4, 7) and (1, 7) the bits are 101 of expert 1, 011 of 4 and
 * 110 of 7, bit 0 on the right; the third row's choice of 7 stands in entry 2, at place 1.
 */
#include "gen/experts/route.h"

enum { WORD_BITS = 32, LINE = 16 };

typedef struct many {
    const route *r;
    unsigned words; /* of an expert's bits */
    unsigned entries;
    val bits;   /* shared memory: [experts, words]; */
    val in_use; /* a bit for each expert; */
    val counts; /* rows of each entry */
} many;

static unsigned words_of(int64_t bits)
{
    return (unsigned)((bits + WORD_BITS - 1) / WORD_BITS);
}

/* Of an array, which starts at a multiple of 16. */
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

/* Bits of an array ahead of one. */
static val bits_ahead(ptx *p, val array, val number)
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

/* The expert of a pair, row * used + slot: another block may have stored it. */
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

/* Behind an entry's choices, and behind the list's entries: a warp each. */
static void store_rest(ptx *p, const many *m, val entries)
{
    val unused = imm(U32, ROUTE_NO_ID);
    PTX_FOR (p, number, warp_id(p), m->entries, m->r->warps) {
        val at = route_entry(p, m->r, number),
            count = ld_shared(p, U32, word_at(p, m->counts, number), 0);
        PTX_FOR (p, place, add(p, lane_id(p), count), m->r->m, WARP)
            st_global(p, U32, mad_wide(p, place, ROUTE_WORD, at), EXPERT_FIRST_ROW * ROUTE_WORD,
                      unused);
        PTX_IF (p, bit_and(p, eq(p, lane_id(p), 0), ge(p, number, entries))) {
            st_global(p, U32, at, 0, unused);
            st_global(p, U32, at, ROUTE_WORD, imm(U32, 0));
        }
    }
    PTX_IF (p, eq(p, tid_x(p), 0))
        route_store_head(p, entries);
}

void route_make_list_of_many(ptx *p, const route *r)
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
            val number = bits_ahead(p, m.in_use, id), at = route_entry(p, m.r, number);
            st_global(p, U32, at, 0, id);
            st_global(p, U32, at, ROUTE_WORD, count);
            st_shared(p, U32, word_at(p, m.counts, number), 0, count);
        }
    }
    PTX_FOR (p, pair, tid_x(p), m.r->m * m.r->used, m.r->threads) {
        val id = id_of(p, pair), entry = route_entry(p, m.r, bits_ahead(p, m.in_use, id));
        val place = bits_ahead(p, bits_of_expert(p, &m, id), div(p, pair, m.r->used));
        st_global(p, U32, mad_wide(p, place, ROUTE_WORD, entry), EXPERT_FIRST_ROW * ROUTE_WORD,
                  pair);
    }
    barrier(p);
    val last = ld_shared(p, U32, m.in_use, (of_experts - 1) * ROUTE_WORD);
    val ahead = bits_ahead(p, m.in_use, imm(U32, (of_experts - 1) * WORD_BITS));
    store_rest(p, &m, add(p, ahead, count_bits(p, last)));
}
