/* Prints a language model's continuation of a prompt. The header that ptxgen writes from model.ini
 * has the model's step, the computation for a token; this program does the rest. It needs only the
 * CUDA driver: a GPU's, or ptxgen's emulated one, which is slow.
 *
 *     meson setup build && ninja -C build
 *     build/engine MODEL.gguf "Once upon a time"                     ptxgen run build/engine ...
 *
 * main calls, in this order:
 *
 *   loader_open    maps the model's file and compares it with the header
 *   make_tokens    converts the prompt to tokens
 *   loader_load    uses the first GPU, allocates the model's memory (model_create), loads tensors
 *   read_prompt    sets the sampling parameters (model_sampling), runs the prompt (model_prompt)
 *   record_step    records the launches of one token (model_step) as a graph
 *   print_answer   reads a token (model_token), prints it, launches the graph; repeats
 *
 * It applies no chat template: the model continues the prompt as given. The prompt may contain the
 * names of control tokens, such as "<|im_start|>", to spell out a template. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader.h"

const program_info PROGRAM = {
    .name = "engine",
    .usage =
        "MODEL.gguf PROMPT [option value]...\n"
        "Prints the model's continuation of the prompt. Put -- before a prompt that starts with "
        "'-'.\n",
};

enum { CAPTURE_THREAD_LOCAL = 1 }; /* CU_STREAM_CAPTURE_MODE_THREAD_LOCAL */

typedef struct engine {
    command command;
    loader model;
    token_list prompt;
    void *graph;    /* step of one token */
    double started; /* start of the prompt in seconds */
    text_output output;
} engine;

static bool make_tokens(engine *e)
{
    if (!tokenizer_encode(e->model.tokenizer, e->command.text, strlen(e->command.text),
                          TOKENIZE_START | TOKENIZE_SPECIAL, &e->prompt))
        return fail("cannot tokenize the prompt: out of memory, or this engine was built without "
                    "utf8proc, which its characters need");
    if (e->prompt.count == 0)
        return fail("the prompt is empty, and the model has no BOS token: pass a prompt");
    if (e->prompt.count > (uint64_t)model_plan.max_seq_len)
        return fail("the prompt has %lu tokens, but max_seq_len is %lld: increase it in the "
                    "header's spec",
                    (unsigned long)e->prompt.count, (long long)model_plan.max_seq_len);
    return true;
}

/* Runs the prompt through the model, several tokens per step. */
static bool read_prompt(engine *e)
{
    const double *o = e->command.options;
    e->started = seconds();
    return done(&e->model, "model_sampling",
                model_sampling(&e->model.decoder, e->model.stream, (float)o[TEMPERATURE],
                               (uint32_t)o[TOP_K], (float)o[TOP_P], (float)o[MIN_P],
                               (uint64_t)o[SEED])) &&
           done(&e->model, "model_prompt",
                model_prompt(&e->model.decoder, e->model.stream, e->prompt.items,
                             e->prompt.count)) &&
           done(&e->model, "cuStreamSynchronize", e->model.driver.stream_wait(e->model.stream));
}

/* Records a step. It reads token, position and length from GPU memory, so one graph serves all
 * tokens. */
static bool record_step(engine *e)
{
    const driver *d = &e->model.driver;
    void *recorded;
    return done(&e->model, "cuStreamBeginCapture",
                d->begin_capture(e->model.stream, CAPTURE_THREAD_LOCAL)) &&
           done(&e->model, "model_step", model_step(&e->model.decoder, e->model.stream)) &&
           done(&e->model, "cuStreamEndCapture", d->end_capture(e->model.stream, &recorded)) &&
           done(&e->model, "cuGraphInstantiate", d->instantiate(&e->graph, recorded, 0));
}

/* Prints the prompt, then the sampled tokens until the end of the answer. */
static bool print_answer(engine *e)
{
    const size_t room = (size_t)model_plan.max_seq_len - e->prompt.count;
    const double begun = seconds();
    size_t printed = 0;
    print_text(e->command.text, strlen(e->command.text));
    for (;;) {
        uint32_t token;
        if (!done(&e->model, "model_token",
                  model_token(&e->model.decoder, e->model.stream, &token)))
            return false;
        if (token >= (uint64_t)model_plan.vocab)
            return fail("no token sampled: a logit is not a number");
        const bool other = tokenizer_is_suppressed(e->model.tokenizer, token);
        /* The first row of logits: logits = last in model.ini makes it the sampled token's. */
        if (other && !choose_other(&e->model, model_logits(&e->model.decoder), &token))
            return false;
        if (tokenizer_is_end(e->model.tokenizer, token))
            break;
        const gguf_string piece = tokenizer_piece(e->model.tokenizer, token);
        if (!print_piece(&e->output, piece.bytes, piece.length))
            return false;
        if (++printed == (size_t)e->command.options[TOKENS] || printed > room)
            break;
        if (!(other ? done(&e->model, "model_prompt",
                           model_prompt(&e->model.decoder, e->model.stream, &token, 1))
                    : done(&e->model, "cuGraphLaunch",
                           e->model.driver.launch_graph(e->graph, e->model.stream))))
            return false;
    }
    if (!print_end(&e->output))
        return false;
    fprintf(stderr, "prompt %lu tokens in %.2f s, %lu tokens at %.1f tokens/s\n",
            (unsigned long)e->prompt.count, begun - e->started, (unsigned long)printed,
            (double)printed / (seconds() - begun));
    return true;
}

int main(int argc, char **argv)
{
    static engine e;
    int status = command_read(&e.command, argc, argv);
    if (status != GO_ON)
        return status;
    bool made = loader_open(&e.model, &e.command) && make_tokens(&e) && loader_load(&e.model) &&
                read_prompt(&e) && record_step(&e) && print_answer(&e);
    loader_close(&e.model);
    free(e.prompt.items);
    free(e.output.waiting);
    return made ? 0 : 1;
}
