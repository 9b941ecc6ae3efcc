/* An empty library, to measure what the loader does for any library that is preloaded. */
extern const int options_nothing;
const int options_nothing = 0;
