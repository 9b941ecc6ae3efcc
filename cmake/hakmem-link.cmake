# What the linker is told where a target of hakmem's is linked, in the source tree as installed.
#
#   hakmem_link(SHARED STATIC OVERRIDE NAMES)
function(hakmem_link shared static override names)
    # A program may leave all its calls of malloc to libraries: a linker drops a library that the
    # program itself doesn't call, and takes nothing from an archive.
    target_link_options(${shared} INTERFACE
        "-Wl,--push-state,--no-as-needed,$<TARGET_FILE:${shared}>,--pop-state")
    target_link_options(${static} INTERFACE -pthread -Wl,-u,malloc)
    target_link_options(${names} INTERFACE -pthread)
    # The object serves programs in C too, so it asks for the throw by a weak name, for which nothing
    # is taken from an archive (libstdc++.a).
    target_link_options(${override} INTERFACE -pthread
        $<$<LINK_LANGUAGE:CXX>:-Wl,-u,_ZSt17__throw_bad_allocv>)
endfunction()
