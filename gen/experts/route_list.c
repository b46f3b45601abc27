/* The list is made of pairs (row, slot), a thread each: a pair whose expert no row ahead has begins
 * the expert's entry, and as many entries stand ahead of it as there are such pairs of lower
 * experts.
 */
#include "gen/experts/route.h"

/* The ids of a row, a word each, from an array of them in shared memory on. */
static void load_ids(ptx *p, const route *r, val array, val row, val ids[ROUTE_USED])
{
    val at = mad(p, row, imm(U32, r->room * ROUTE_WORD), array);
    for (unsigned i = 0; i < r->room; i += ROUTE_LINE_IDS) {
        val4 line = ld_shared_v4(p, U32, at, i * ROUTE_WORD);
        for (unsigned j = 0; j < ROUTE_LINE_IDS; j++)
            ids[i + j] = line.v[j];
    }
}

/* A place in the arrays of ids, and what there is. */
typedef struct place_of_id {
    val number, row, slot, id;
} place_of_id;

static place_of_id place_new(ptx *p, const route *r, val number)
{
    place_of_id at = { number, div(p, number, r->room), rem(p, number, r->room), { 0 } };
    at.id = ld_shared(p, U32, mad(p, number, ROUTE_WORD, r->ids), 0);
    return at;
}

/* Rows that have an expert, and those of them that are ahead of one. */
typedef struct row_count {
    var all, ahead;
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
            val is_ahead = lt(p, other, at->row);
            assign(p, rows.all, add(p, rows.all, 1));
            assign(p, rows.ahead, select(p, is_ahead, add(p, rows.ahead, 1), rows.ahead));
        }
    }
    return rows;
}

/* Entries of experts lower than one. */
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

val route_entry(ptx *p, const route *r, val number)
{
    val words = mul(p, number, EXPERT_FIRST_ROW + r->m);
    return mad_wide(p, words, ROUTE_WORD,
                    add(p, parameter(p, "list"), EXPERT_LIST_HEAD * ROUTE_WORD));
}

void route_store_head(ptx *p, val entries)
{
    val4 head = { { entries, imm(U32, 0), imm(U32, 0), imm(U32, 0) } };
    st_global_v4(p, U32, parameter(p, "list"), 0, head);
}

/* Stores what a pair says of the list: of its expert the entry's head, if the entry begins with it,
 * and its own number. */
static void store_pair(ptx *p, const route *r, const place_of_id *pair)
{
    row_count rows = count_rows(p, r, pair);
    val at = route_entry(p, r, count_entries(p, r, pair->id));
    PTX_IF (p, eq(p, rows.ahead, 0)) {
        st_global(p, U32, at, 0, pair->id);
        st_global(p, U32, at, ROUTE_WORD, rows.all);
        for (unsigned i = 1; i < r->m; i++)
            PTX_IF (p, le(p, rows.all, i))
                st_global(p, U32, at, (EXPERT_FIRST_ROW + i) * ROUTE_WORD, imm(U32, ROUTE_NO_ID));
    }
    val number = mad(p, pair->row, r->used, pair->slot);
    st_global(p, U32, mad_wide(p, rows.ahead, ROUTE_WORD, at), EXPERT_FIRST_ROW * ROUTE_WORD,
              number);
}

void route_make_list(ptx *p, const route *r)
{
    if (r->m > 1) {
        barrier(p);
        PTX_FOR (p, number, tid_x(p), r->m * r->room, r->threads) {
            place_of_id place = place_new(p, r, number);
            row_count rows = count_rows(p, r, &place);
            val first = select(p, eq(p, rows.ahead, 0), place.id, imm(U32, ROUTE_NO_ID));
            st_shared(p, U32, mad(p, number, ROUTE_WORD, r->firsts), 0, first);
        }
    }
    barrier(p);
    PTX_FOR (p, number, tid_x(p), r->m * r->room, r->threads) {
        place_of_id at = place_new(p, r, number);
        PTX_IF (p, lt(p, at.slot, r->used))
            store_pair(p, r, &at);
    }
    /* Stores the list's head and the entries that are left. */
    val entries = r->m > 1 ? count_entries(p, r, imm(U32, ROUTE_NO_ID)) : imm(U32, r->used);
    PTX_IF (p, eq(p, tid_x(p), 0))
        route_store_head(p, entries);
    unsigned most = (unsigned)problem_experts_listed(&r->in->shape);
    if (r->m > 1)
        PTX_FOR (p, left, add(p, tid_x(p), entries), most, r->threads) {
            val entry = route_entry(p, r, left);
            for (unsigned i = 0; i < EXPERT_FIRST_ROW + r->m; i++)
                st_global(p, U32, entry, i * ROUTE_WORD, imm(U32, i == 1 ? 0 : ROUTE_NO_ID));
        }
}
