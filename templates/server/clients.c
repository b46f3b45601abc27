#define _POSIX_C_SOURCE 200809L
#include "clients.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "options.h"

enum {
    CHUNK = 4096, /* bytes of a write; pipes that are ready take them without blocking */
    FLUSH_TRIES = 20,
    FLUSH_MILLISECONDS = 50
};

static volatile sig_atomic_t stopped;
static int signal_pipe[2]; /* a signal writes a byte, so that poll returns */

static void stop(int number)
{
    const int error = errno;
    (void)number;
    stopped = 1;
    ssize_t written = write(signal_pipe[1], "", 1);
    (void)written;
    errno = error;
}

void *resize(void *memory, size_t bytes)
{
    memory = realloc(memory, bytes ? bytes : 1);
    if (!memory) {
        fail("out of memory for %lu bytes", (unsigned long)bytes);
        exit(1);
    }
    return memory;
}

void buffer_add(text_buffer *b, const char *bytes, size_t count)
{
    if (b->count + count > b->capacity) {
        b->capacity = 2 * (b->count + count);
        b->bytes = resize(b->bytes, b->capacity);
    }
    if (count > 0)
        memcpy(b->bytes + b->count, bytes, count);
    b->count += count;
}

void buffer_drop(text_buffer *b, size_t count)
{
    b->count -= count;
    if (b->count > 0)
        memmove(b->bytes, b->bytes + count, b->count);
}

void client_send(client *c, const char *line)
{
    if (c->out == NONE)
        return;
    buffer_add(&c->output, line, strlen(line));
    buffer_add(&c->output, "\n", 1);
}

static void open_client(clients *s, int in, int out, int socket)
{
    client *c = s->all;
    while (c->is_open)
        c++;
    *c = (client){ .is_open = true, .in = in, .out = out, .socket = socket };
}

static void close_client(clients *s, client *c)
{
    c->out = NONE; /* sends nothing any more */
    s->gone(s->user, c);
    if (c->socket != NONE)
        close(c->socket);
    free(c->input.bytes);
    free(c->output.bytes);
    memset(c, 0, sizeof *c);
}

static void read_client(clients *s, client *c)
{
    char bytes[CHUNK], *end;
    const ssize_t count = read(c->in, bytes, sizeof bytes);
    if (count < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (count > 0)
        buffer_add(&c->input, bytes, (size_t)count);
    else
        c->in = NONE;
    if (c->in == NONE && c->input.count > 0) /* the last line may lack its end */
        buffer_add(&c->input, "\n", 1);
    while (c->input.count > 0 && (end = memchr(c->input.bytes, '\n', c->input.count))) {
        const size_t length = (size_t)(end - c->input.bytes);
        if (!c->skips)
            s->read_line(s->user, c, c->input.bytes, length);
        c->skips = false;
        buffer_drop(&c->input, length + 1);
    }
    if (c->input.count > MOST_LINE) {
        if (!c->skips)
            s->read_line(s->user, c, NULL, 0);
        c->skips = true;
        c->input.count = 0;
    }
}

static void write_client(client *c)
{
    const ssize_t count =
        write(c->out, c->output.bytes, c->output.count < CHUNK ? c->output.count : CHUNK);
    if (count >= 0)
        buffer_drop(&c->output, (size_t)count);
    else if (errno != EINTR && errno != EAGAIN)
        c->out = NONE;
}

static void accept_client(clients *s)
{
    const int socket = accept(s->listener, NULL, NULL);
    if (socket == NONE)
        return;
    fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
    open_client(s, socket, socket, socket);
}

/* Returns a request to poll a file; -1 is ignored. */
static struct pollfd polled(bool wanted, int file, short events)
{
    return (struct pollfd){ .fd = wanted ? file : NONE, .events = events };
}

/* Waits up to some milliseconds, or with -1 until something is possible. */
static void exchange(clients *s, int milliseconds)
{
    enum { SIGNAL, LISTENER, CLIENTS };
    struct pollfd files[CLIENTS + 2 * MOST_CLIENTS];
    bool has_place = false;
    for (int i = 0; i < MOST_CLIENTS; i++) {
        const client *c = &s->all[i];
        const size_t waiting = c->output.count;
        files[CLIENTS + 2 * i] =
            polled(c->is_open && !stopped && waiting <= MOST_OUTPUT, c->in, POLLIN);
        files[CLIENTS + 2 * i + 1] = polled(c->is_open && waiting > 0, c->out, POLLOUT);
        has_place |= !c->is_open;
    }
    files[SIGNAL] = polled(!stopped, signal_pipe[0], POLLIN);
    files[LISTENER] = polled(!stopped && has_place, s->listener, POLLIN);
    if (poll(files, sizeof files / sizeof *files, milliseconds) <= 0)
        return;
    for (int i = 0; i < MOST_CLIENTS; i++) {
        client *c = &s->all[i];
        if (files[CLIENTS + 2 * i].revents)
            read_client(s, c);
        if (files[CLIENTS + 2 * i + 1].revents)
            write_client(c);
    }
    if (files[LISTENER].revents)
        accept_client(s);
}

void clients_exchange(clients *s, bool wait)
{
    exchange(s, wait ? -1 : 0);
    for (int i = 0; i < MOST_CLIENTS; i++) {
        client *c = &s->all[i];
        const bool has_ended = c->in == NONE && c->output.count == 0 && c->unanswered == 0;
        if (c->is_open && (c->out == NONE || has_ended))
            close_client(s, c);
    }
}

bool clients_ended(const clients *s)
{
    return stopped || (s->listener == NONE && !s->all[0].is_open);
}

/* Returns false after an error message. */
static bool open_socket(clients *s)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    const size_t length = strlen(s->path);
    if (length >= sizeof address.sun_path)
        return fail("the path of the socket has %lu bytes; use at most %lu", (unsigned long)length,
                    (unsigned long)sizeof address.sun_path - 1);
    memcpy(address.sun_path, s->path, length);
    const int made = socket(AF_UNIX, SOCK_STREAM, 0);
    if (made == NONE || bind(made, (const struct sockaddr *)&address, sizeof address) != 0)
        return fail("cannot make the socket %s: %s", s->path, strerror(errno));
    s->listener = made;
    return listen(made, MOST_CLIENTS) == 0 || fail("cannot listen: %s", strerror(errno));
}

bool clients_open(clients *s, const char *path)
{
    const struct sigaction on_stop = { .sa_handler = stop, .sa_flags = (int)SA_RESETHAND };
    const struct sigaction ignored = { .sa_handler = SIG_IGN };
    s->path = path;
    s->listener = NONE;
    if (pipe(signal_pipe) != 0)
        return fail("cannot make a pipe: %s", strerror(errno));
    sigaction(SIGTERM, &on_stop, NULL);
    sigaction(SIGINT, &on_stop, NULL);
    sigaction(SIGPIPE, &ignored, NULL);
    if (path)
        return open_socket(s);
    open_client(s, STDIN_FILENO, STDOUT_FILENO, NONE);
    return true;
}

void clients_close(clients *s)
{
    int tries = 0;
    stopped = 1; /* reads no more */
    for (int i = 0; i < MOST_CLIENTS; i++) {
        client *c = &s->all[i];
        while (c->is_open && c->out != NONE && c->output.count > 0 && tries++ < FLUSH_TRIES)
            exchange(s, FLUSH_MILLISECONDS);
        if (c->is_open)
            close_client(s, c);
    }
    if (s->path && s->listener != NONE) {
        close(s->listener);
        unlink(s->path);
    }
}
