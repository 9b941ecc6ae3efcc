# Gives every name in an archive that is hidden in a shared library the prefix hakmem__, since a
# linker knows of no hidden names between members and a program: one that has a function lock_wait
# or a variable policy of its own could not be linked.
#
#   cmake -D ARCHIVE=FILE -D READELF=PROGRAM -D OBJCOPY=PROGRAM -P prefix_names.cmake
execute_process(COMMAND ${READELF} --syms --wide ${ARCHIVE}
    OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
# As "12: 00000040 24 FUNC GLOBAL HIDDEN 1 lock_wait".
string(REGEX MATCHALL "(GLOBAL|WEAK) +HIDDEN +[0-9]+ [^\n]+" hidden "${symbols}")
list(TRANSFORM hidden REPLACE "^.* ([^ ]+)$" "\\1 hakmem__\\1")
list(REMOVE_DUPLICATES hidden)
list(FILTER hidden EXCLUDE REGEX "^hakmem__")
list(JOIN hidden "\n" lines)
file(WRITE ${ARCHIVE}.names "${lines}\n")
execute_process(COMMAND ${OBJCOPY} --redefine-syms=${ARCHIVE}.names ${ARCHIVE}
    COMMAND_ERROR_IS_FATAL ANY)
