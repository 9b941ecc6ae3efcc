/* A library whose constructor has work for the program that loads it. */
void constructor_work(void);

__attribute__((constructor)) static void begin(void) { constructor_work(); }
