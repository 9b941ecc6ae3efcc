/* A library of nothing: what the loader does for any that is preloaded. */
extern const int options_nothing;
const int options_nothing = 0;
