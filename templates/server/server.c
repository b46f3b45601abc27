/* Serves a language model to several clients at once.
 *
 *     meson setup build && ninja -C build
 *     build/server MODEL.gguf                    one client: standard input and output
 *     build/server MODEL.gguf --socket PATH      clients connect to a UNIX socket
 *
 * Requests and answers are lines of JSON. A request needs a prompt; the other keys are optional:
 *
 *     {"id": 1, "prompt": "Once upon", "max_tokens": 20, "temperature": 0.8, "top_k": 40,
 *      "top_p": 0.95, "min_p": 0.05, "seed": 7}
 *     {"id": 2, "prompt": [1, 403]}              tokens instead of text
 *     {"cancel": 1}                              cancels the client's requests with this id
 *
 * Answers are pieces of text, then the end: "stop", "length", "cancelled" or "error".
 *
 *     {"id": 1, "text": " a time"}
 *     {"id": 1, "done": "length", "tokens": 20}
 *     {"id": 2, "done": "error", "tokens": 0, "error": "the prompt has no tokens"}
 *     {"error": "the line is not a JSON object"}
 *
 * Requests are batched continuously. A turn of the server launches one step of the model:
 *
 *   admit              opens sequences for waiting requests, in the order of their arrival
 *   fill_batch         adds a row for each sequence that generates, and pieces of prompts (model_run)
 *   set_sampling       sets the sampling parameters of new sequences (model_sampling_of)
 *   run_turn           launches the step (model_launch) and reads its tokens (model_sampled)
 *   clients_exchange   reads requests and writes answers (clients.h)
 *
 * A request starts with the positions of an open sequence whose tokens begin like its own
 * (model_fork, model_trim). Finished sequences stay open for this until their room is needed. If the
 * pages of the cache run out, the youngest request is preempted: its sequence is closed, and
 * computed again from its tokens later.
 *
 * Seed and position decide the random number, and a row's logits have the same bits in all batches
 * that run the same step. So a text depends neither on other requests nor on preemption if all steps
 * round alike: with precision = f32 or with one m in model.ini, or if ptxgen --plan shows the same
 * kinds of products in all steps. */
#define _POSIX_C_SOURCE 200809L
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clients.h"
#include "loader.h"

const program_info PROGRAM = {
    .name = "server",
    .usage = "MODEL.gguf [--socket PATH] [option value]...\n"
             "Answers requests, lines of JSON, from standard input or from clients of a UNIX "
             "socket.\n"
             "Sampling options apply to requests that do not set them.\n",
    .is_server = true,
};

typedef struct request {
    struct request *next; /* in the order of arrival */
    client *client;
    json_t *id;
    uint32_t *tokens;     /* the prompt's, then generated ones */
    size_t prompt, count; /* tokens of the prompt, and all */
    size_t most;          /* tokens to generate */
    double options[OPTIONS];
    text_buffer text; /* bytes of an incomplete character */
    int sequence;     /* NONE: waits */
    bool is_set;      /* the sequence has its sampling parameters */
    bool ended;       /* answered; freed in the next turn */
} request;

/* A sequence of the decoder: of a request, or kept for its tokens. */
typedef struct slot {
    request *request;
    uint32_t *tokens; /* of a kept sequence; else NULL */
    uint64_t used;    /* time of its last use */
} slot;

typedef struct server {
    command command;
    loader model;
    clients clients;
    request *requests;
    slot *slots; /* [sequences] */
    model_batch batch;
    request *wanted[PTXGEN_MOST_ROWS]; /* requests of the batch's rows with logits */
    uint64_t clock, answered, tokens, steps, preempted, shared;
} server;

/* Sends a line of JSON and frees it. */
static void send_line(client *c, json_t *line)
{
    char *text = line ? json_dumps(line, 0) : NULL;
    if (text)
        client_send(c, text);
    else
        fail("out of memory for an answer, which is lost");
    free(text);
    json_decref(line);
}

/* Returns text as a JSON string, with U+FFFD for bytes that are not UTF-8. */
static json_t *json_text(const char *bytes, size_t count)
{
    static const char replacement[] = "\xEF\xBF\xBD";
    text_buffer valid = { NULL, 0, 0 };
    for (size_t at = 0, size; at < count; at += size) {
        json_t *character = NULL;
        for (size = 1; !character && size <= 4 && at + size <= count; size++)
            character = json_stringn(bytes + at, size);
        size = character ? size - 1 : 1;
        if (character)
            buffer_add(&valid, bytes + at, size);
        else
            buffer_add(&valid, replacement, strlen(replacement));
        json_decref(character);
    }
    json_t *text = json_stringn(valid.count ? valid.bytes : "", valid.count);
    free(valid.bytes);
    return text;
}

static void send_error(client *c, const char *why)
{
    send_line(c, json_pack("{s:o}", "error", json_text(why, strlen(why))));
}

/* Sends the first bytes of a request's text. */
static void send_text(request *r, size_t count)
{
    if (count > 0)
        send_line(r->client,
                  json_pack("{s:O, s:o}", "id", r->id, "text", json_text(r->text.bytes, count)));
    buffer_drop(&r->text, count);
}

/* Takes a request's sequence away: closes it, or keeps it open for its tokens. */
static void release(server *s, request *r, bool keep)
{
    slot *of = &s->slots[r->sequence];
    of->request = NULL;
    if (keep) {
        of->tokens = r->tokens;
        of->used = ++s->clock;
        r->tokens = NULL;
    } else {
        model_close(&s->model.decoder, (unsigned)r->sequence);
    }
    r->sequence = NONE;
}

/* Ends a request. why is the error, or NULL. */
static void finish(server *s, request *r, const char *how, const char *why)
{
    send_text(r, r->text.count);
    json_t *line = json_pack("{s:O, s:s, s:I}", "id", r->id, "done", how, "tokens",
                             (json_int_t)(r->count - r->prompt));
    if (why)
        json_object_set_new(line, "error", json_text(why, strlen(why)));
    send_line(r->client, line);
    if (r->sequence != NONE)
        release(s, r, !why);
    r->ended = true;
    r->client->unanswered--;
    s->answered++;
}

static void remove_ended(server *s)
{
    for (request **at = &s->requests; *at;) {
        request *r = *at;
        if (!r->ended) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        json_decref(r->id);
        free(r->tokens);
        free(r->text.bytes);
        free(r);
    }
}

/* Returns the pages of a number of positions. */
static size_t pages_of(size_t positions)
{
    return model_plan.page ? (positions + model_plan.page - 1) / model_plan.page : 0;
}

/* Returns the most positions that a sequence can have. */
static size_t most_positions(const server *s)
{
    const size_t room = (size_t)model_plan.page * s->model.decoder.memory.pages;
    const size_t length = (size_t)model_plan.max_seq_len;
    return model_plan.page && room < length ? room : length;
}

/* Reads the keys of a request other than its prompt. Returns false with the reason in why. */
static bool read_keys(request *r, json_t *line, char *why, size_t size)
{
    static const char *const keys[] = {
        [TOKENS] = "max_tokens", [TEMPERATURE] = "temperature",
        [TOP_K] = "top_k",       [TOP_P] = "top_p",
        [MIN_P] = "min_p",       [SEED] = "seed",
    };
    for (void *at = json_object_iter(line); at; at = json_object_iter_next(line, at)) {
        const char *key = json_object_iter_key(at);
        const json_t *value = json_object_iter_value(at);
        char range[64];
        int i = 0;
        while (i <= SEED && strcmp(keys[i], key) != 0)
            i++;
        if (i <= SEED) {
            r->options[i] = json_number_value(value);
            if (!option_accepts(i, r->options[i], range, sizeof range) || !json_is_number(value)) {
                snprintf(why, size, "%s is not %s", key, range);
                return false;
            }
        } else if (strcmp(key, "id") != 0 && strcmp(key, "prompt") != 0) {
            snprintf(why, size, "unknown key %s", key);
            return false;
        }
    }
    return true;
}

/* Reads the tokens of a prompt. Returns false with the reason in why. */
static bool read_prompt(const server *s, const json_t *prompt, token_list *tokens, char *why,
                        size_t size)
{
    if (json_is_string(prompt)) {
        snprintf(why, size, "the prompt cannot be converted to tokens");
        return tokenizer_encode(s->model.tokenizer, json_string_value(prompt),
                                json_string_length(prompt), TOKENIZE_START | TOKENIZE_SPECIAL,
                                tokens);
    }
    snprintf(why, size, "prompt is neither text nor a list of tokens");
    if (!json_is_array(prompt))
        return false;
    tokens->items = resize(NULL, json_array_size(prompt) * sizeof *tokens->items);
    for (; tokens->count < json_array_size(prompt); tokens->count++) {
        const json_t *token = json_array_get(prompt, tokens->count);
        if (!json_is_integer(token) || json_integer_value(token) < 0 ||
            json_integer_value(token) >= (json_int_t)model_plan.vocab) {
            snprintf(why, size, "item %lu of the prompt is not a token: it has to be below %lld",
                     (unsigned long)tokens->count, (long long)model_plan.vocab);
            return false;
        }
        tokens->items[tokens->count] = (uint32_t)json_integer_value(token);
    }
    return true;
}

/* Checks the length of a prompt, and that there is room in the queue. */
static bool check_room(const server *s, const request *r, char *why, size_t size)
{
    size_t waiting = 0;
    for (const request *other = s->requests; other; other = other->next)
        waiting += other != r && other->sequence == NONE && !other->ended;
    if (r->prompt == 0)
        snprintf(why, size, "the prompt has no tokens");
    else if (r->prompt > most_positions(s))
        snprintf(why, size, "the prompt has %lu tokens, but a sequence has room for %lu",
                 (unsigned long)r->prompt, (unsigned long)most_positions(s));
    else if (waiting >= (size_t)s->command.options[QUEUE])
        snprintf(why, size, "%lu requests wait, and the queue is full: try again later",
                 (unsigned long)waiting);
    else
        return true;
    return false;
}

static void open_request(server *s, client *c, json_t *line)
{
    char why[256];
    token_list tokens = { NULL, 0, 0 };
    request *r = resize(NULL, sizeof *r), **end = &s->requests;
    memset(r, 0, sizeof *r);
    memcpy(r->options, s->command.options, sizeof r->options);
    r->client = c;
    c->unanswered++;
    r->sequence = NONE;
    r->id = json_object_get(line, "id");
    r->id = r->id ? json_incref(r->id) : json_null();
    while (*end)
        end = &(*end)->next;
    *end = r;
    bool right = read_keys(r, line, why, sizeof why) &&
                 read_prompt(s, json_object_get(line, "prompt"), &tokens, why, sizeof why);
    r->tokens = tokens.items;
    r->prompt = r->count = tokens.count;
    if (!right || !check_room(s, r, why, sizeof why)) {
        finish(s, r, "error", why);
        return;
    }
    /* The last token needs no position. */
    r->most = most_positions(s) - r->prompt + 1;
    if (r->options[TOKENS] > 0 && r->options[TOKENS] < (double)r->most)
        r->most = (size_t)r->options[TOKENS];
    r->tokens = resize(r->tokens, (r->prompt + r->most) * sizeof *r->tokens);
}

/* Cancels the requests of a client, or those with an id. Returns their number. */
static size_t cancel(server *s, const client *c, const json_t *id)
{
    size_t count = 0;
    for (request *r = s->requests; r; r = r->next)
        if (r->client == c && !r->ended && (!id || json_equal(r->id, id))) {
            finish(s, r, "cancelled", NULL);
            count++;
        }
    return count;
}

static void read_line(void *user, client *c, const char *bytes, size_t count)
{
    server *s = user;
    json_error_t error;
    json_t *line =
        bytes ? json_loadb(bytes, count, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error) : NULL;
    const json_t *id = json_object_get(line, "cancel");
    const char *wrong = NULL;
    if (!line)
        wrong = bytes ? error.text : "the line is longer than 1 MiB";
    else if (!json_is_object(line))
        wrong = "the line is not a JSON object";
    else if (!id)
        open_request(s, c, line);
    else if (!cancel(s, c, id))
        wrong = "no request has the id to cancel";
    if (wrong)
        send_error(c, wrong);
    json_decref(line);
}

static void leave(void *user, client *c)
{
    cancel(user, c, NULL);
}

/* Closes the least recently used kept sequence but one. Returns false if there is none. */
static bool drop_kept(server *s, int but)
{
    int oldest = NONE;
    for (int i = 0; i < (int)model_plan.sequences; i++)
        if (s->slots[i].tokens && i != but &&
            (oldest == NONE || s->slots[i].used < s->slots[oldest].used))
            oldest = i;
    if (oldest == NONE)
        return false;
    model_close(&s->model.decoder, (unsigned)oldest);
    free(s->slots[oldest].tokens);
    s->slots[oldest].tokens = NULL;
    return true;
}

/* Returns the open sequence that shares most first tokens with a request, or NONE. The request's last
 * token is not shared, since its row has the logits. */
static int find_prefix(const server *s, const request *r, uint32_t *shared)
{
    int best = NONE;
    *shared = 0;
    for (int i = 0; i < (int)model_plan.sequences; i++) {
        const slot *of = &s->slots[i];
        const uint32_t *tokens = of->request ? of->request->tokens : of->tokens;
        const uint32_t length = tokens ? model_length(&s->model.decoder, (unsigned)i) : 0;
        uint32_t same = 0;
        while (same < length && same + 1 < r->count && tokens[same] == r->tokens[same])
            same++;
        if (same > *shared && (same == length || !model_plan.recurrent)) {
            *shared = same;
            best = i;
        }
    }
    return best;
}

/* Opens a sequence for a waiting request, and leaves a page to each of the running ones. Returns
 * false while pages or sequences are lacking. */
static bool admit(server *s, request *r, size_t running)
{
    model_decoder *decoder = &s->model.decoder;
    uint32_t shared;
    const int parent = find_prefix(s, r, &shared);
    const size_t own = pages_of(r->count + 1) - (shared ? pages_of(shared + 1) - 1 : 0);
    const size_t needed = model_plan.page ? own + running : 0;
    while (needed > model_unused_pages(decoder) && drop_kept(s, parent))
        continue;
    if (needed > model_unused_pages(decoder) && running > 0)
        return false;
    int number = NONE;
    do
        number = parent == NONE ? model_open(decoder) : model_fork(decoder, (unsigned)parent);
    while (number == NONE && drop_kept(s, parent));
    if (number == NONE && parent != NONE && s->slots[parent].tokens) {
        number = parent; /* the last kept sequence becomes the request's */
        free(s->slots[parent].tokens);
    }
    if (number == NONE)
        return false;
    if (shared && model_trim(decoder, (unsigned)number, shared) != PTXGEN_CUDA_SUCCESS) {
        model_trim(decoder, (unsigned)number, 0); /* the caches have lost these positions */
        shared = 0;
    }
    if (parent != NONE)
        s->slots[parent].used = ++s->clock;
    s->slots[number].tokens = NULL;
    s->slots[number].request = r;
    s->shared += shared;
    r->sequence = number;
    r->is_set = false;
    return true;
}

static void admit_waiting(server *s)
{
    size_t running = 0;
    for (const request *r = s->requests; r; r = r->next)
        running += r->sequence != NONE;
    for (request *r = s->requests; r; r = r->next)
        if (r->sequence == NONE && !admit(s, r, running++))
            return;
}

/* Frees pages: closes a kept sequence, or else preempts the youngest request. */
static void make_room(server *s)
{
    request *youngest = NULL;
    model_batch_begin(&s->model.decoder, &s->batch); /* forgets runs */
    if (drop_kept(s, NONE))
        return;
    for (request *r = s->requests; r; r = r->next)
        if (r->sequence != NONE)
            youngest = r;
    release(s, youngest, false);
    s->preempted++;
}

/* Fills the batch: sequences that generate first, then pieces of prompts; older requests first. */
static ptxgen_result fill_batch(server *s)
{
    const unsigned most_wanted = model_plan.steps[model_plan.step_count - 1].logits_rows;
    model_batch *batch = &s->batch;
    ptxgen_result result = model_batch_begin(&s->model.decoder, batch);
    for (int prompts = 0; prompts < 2; prompts++)
        for (request *r = s->requests; r && result == PTXGEN_CUDA_SUCCESS; r = r->next) {
            if (r->sequence == NONE || r->client->output.count > MOST_OUTPUT)
                continue;
            const size_t length = model_length(&s->model.decoder, (unsigned)r->sequence);
            const size_t left = r->count - length, room = model_plan.rows - batch->rows;
            const bool is_last = left <= room;
            if ((left > 1) != prompts || (is_last && batch->wanted == most_wanted))
                continue;
            result = model_run(batch, (unsigned)r->sequence, r->tokens + length,
                               (unsigned)(is_last ? left : room),
                               is_last ? PTXGEN_LOGITS_LAST : PTXGEN_NO_LOGITS);
            if (is_last && result == PTXGEN_CUDA_SUCCESS)
                s->wanted[batch->wanted - 1] = r;
        }
    return result;
}

/* Sets the sampling parameters of sequences that were opened since their last token. */
static bool set_sampling(server *s)
{
    for (unsigned i = 0; i < s->batch.wanted; i++) {
        request *r = s->wanted[i];
        const double *o = r->options;
        if (!r->is_set &&
            !done(&s->model, "model_sampling_of",
                  model_sampling_of(&s->model.decoder, s->model.stream, (unsigned)r->sequence,
                                    (float)o[TEMPERATURE], (uint32_t)o[TOP_K], (float)o[TOP_P],
                                    (float)o[MIN_P], (uint64_t)o[SEED])))
            return false;
        r->is_set = true;
    }
    return true;
}

/* Appends the token sampled for the batch's i-th row with logits. */
static bool take_token(server *s, unsigned i, uint32_t token)
{
    const tokenizer *t = s->model.tokenizer;
    request *r = s->wanted[i];
    if (token < (uint64_t)model_plan.vocab && tokenizer_is_suppressed(t, token) &&
        !choose_other(&s->model, model_logits_of(&s->batch, i), &token))
        return false;
    if (token >= (uint64_t)model_plan.vocab) {
        finish(s, r, "error", "no token sampled: a logit is not a number");
    } else if (tokenizer_is_end(t, token)) {
        finish(s, r, "stop", NULL);
    } else {
        const gguf_string piece = tokenizer_piece(t, token);
        r->tokens[r->count++] = token;
        s->tokens++;
        buffer_add(&r->text, piece.bytes, piece.length);
        send_text(r, tokenizer_whole_bytes(r->text.bytes, r->text.count));
        if (r->count - r->prompt == r->most)
            finish(s, r, "length", NULL);
    }
    return true;
}

/* Runs a step. Returns false after an error; sets *ran if there was something to run. */
static bool run_turn(server *s, bool *ran)
{
    uint32_t tokens[PTXGEN_MOST_ROWS];
    ptxgen_result result;
    remove_ended(s);
    admit_waiting(s);
    while ((result = fill_batch(s)) == PTXGEN_CUDA_ERROR_OUT_OF_MEMORY)
        make_room(s);
    *ran = s->batch.rows > 0;
    if (!done(&s->model, "model_run", result))
        return false;
    if (!*ran)
        return true;
    if (!set_sampling(s) || !done(&s->model, "model_launch",
                                  model_launch(&s->model.decoder, s->model.stream, &s->batch)))
        return false;
    s->steps++;
    if (s->batch.wanted > 0 &&
        !done(&s->model, "model_sampled", model_sampled(&s->batch, s->model.stream, tokens)))
        return false;
    for (unsigned i = 0; i < s->batch.wanted; i++)
        if (!take_token(s, i, tokens[i]))
            return false;
    return true;
}

static bool start(server *s)
{
    model_decoder *decoder = &s->model.decoder;
    if (model_plan.steps[0].sampled_rows == 0)
        return fail("the header's steps do not sample: remove sampling = caller from model.ini");
    s->slots = resize(NULL, model_plan.sequences * sizeof *s->slots);
    memset(s->slots, 0, model_plan.sequences * sizeof *s->slots);
    for (int number = 0; number != NONE;) /* sequences may have pages from the start */
        number = model_open(decoder);
    for (unsigned number = 0; number < model_plan.sequences; number++)
        model_close(decoder, number);
    s->clients.user = s;
    s->clients.read_line = read_line;
    s->clients.gone = leave;
    return clients_open(&s->clients, s->command.socket);
}

/* Answers requests until a signal, or until standard input ends and all are answered. */
static bool serve(server *s)
{
    bool ran = false;
    while (!clients_ended(&s->clients)) {
        clients_exchange(&s->clients, !ran);
        if (!run_turn(s, &ran))
            return false;
    }
    return true;
}

static void close_all(server *s)
{
    const model_decoder *decoder = &s->model.decoder;
    for (request *r = s->requests; r; r = r->next)
        if (!r->ended)
            finish(s, r, "cancelled", NULL);
    remove_ended(s);
    clients_close(&s->clients);
    while (s->slots && drop_kept(s, NONE))
        continue;
    if (s->slots)
        fprintf(
            stderr,
            "%llu answers, %llu tokens in %llu steps, %llu preemptions, %llu tokens shared; unused "
            "pages: %lu of %lu\n",
            (unsigned long long)s->answered, (unsigned long long)s->tokens,
            (unsigned long long)s->steps, (unsigned long long)s->preempted,
            (unsigned long long)s->shared, (unsigned long)model_unused_pages(decoder),
            (unsigned long)decoder->memory.pages);
    free(s->slots);
    loader_close(&s->model);
}

int main(int argc, char **argv)
{
    static server s;
    int status = command_read(&s.command, argc, argv);
    if (status != GO_ON)
        return status;
    bool right =
        loader_open(&s.model, &s.command) && loader_load(&s.model) && start(&s) && serve(&s);
    close_all(&s);
    return right ? 0 : 1;
}
