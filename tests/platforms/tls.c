/* A library that needs a little thread-local memory at a fixed offset (initial-exec). */
__thread char mine[16] __attribute__((tls_model("initial-exec"), aligned(16)));

char *thread_local_of_mine(void);
char *thread_local_of_mine(void) { return mine; }
