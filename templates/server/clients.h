/* Clients that send and receive lines: standard input and output, or the clients of a UNIX socket. */
#ifndef CLIENTS_H
#define CLIENTS_H

#include <stdbool.h>
#include <stddef.h>

enum {
    NONE = -1,
    MOST_CLIENTS = 64,
    MOST_LINE = 1 << 20,  /* bytes of a line to read */
    MOST_OUTPUT = 1 << 20 /* bytes to write, beyond which a client is not read any more */
};

/* Bytes in memory. Functions that resize memory end the program if there is none. */
typedef struct text_buffer {
    char *bytes;
    size_t count, capacity;
} text_buffer;

void *resize(void *memory, size_t bytes);
void buffer_add(text_buffer *b, const char *bytes, size_t count);
void buffer_drop(text_buffer *b, size_t count); /* the first bytes */

typedef struct client {
    bool is_open;
    int in, out;        /* file descriptors; NONE at the end of input, or without a reader */
    int socket;         /* NONE for standard input and output */
    text_buffer input;  /* an incomplete line */
    text_buffer output; /* not written yet */
    bool skips;         /* drops the rest of a line that is too long */
    size_t unanswered;  /* requests; the client stays open until all are answered */
} client;

typedef struct clients {
    const char *path; /* of the socket, or NULL */
    int listener;     /* NONE: not open */
    client all[MOST_CLIENTS];
    /* Receives a line without its end; NULL for one that is longer than MOST_LINE. */
    void (*read_line)(void *user, client *c, const char *line, size_t length);
    void (*gone)(void *user, client *c); /* the client is closed after the call */
    void *user;
} clients;

/* Opens a socket or, if path is NULL, standard input and output, and starts to catch SIGTERM and
 * SIGINT. Returns false after an error message. */
bool clients_open(clients *s, const char *path);

/* Closes all clients, writes what they read within a second, and removes the socket. */
void clients_close(clients *s);

/* Reads and writes what is possible without waiting. With wait, first waits until something is. */
void clients_exchange(clients *s, bool wait);

/* Returns true after a signal, or if standard input has ended and all requests are answered. */
bool clients_ended(const clients *s);

/* Sends a line, to which '\n' is added. */
void client_send(client *c, const char *line);

#endif
