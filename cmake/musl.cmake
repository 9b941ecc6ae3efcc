# For musl on this processor, by Debian's musl-gcc: a C compiler, so no operator new (HAKMEM_CXX).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${CMAKE_HOST_SYSTEM_PROCESSOR})
set(CMAKE_C_COMPILER musl-gcc)

# musl-gcc leaves out all of /usr/include, the kernel's headers too. Only these are linked in: in
# the whole folder the compiler would find glibc's headers where musl has none.
set(kernel_headers ${CMAKE_BINARY_DIR}/kernel-headers)
file(MAKE_DIRECTORY ${kernel_headers})
file(CREATE_LINK /usr/include/linux ${kernel_headers}/linux SYMBOLIC)
file(CREATE_LINK /usr/include/asm-generic ${kernel_headers}/asm-generic SYMBOLIC)
file(CREATE_LINK /usr/include/${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu/asm ${kernel_headers}/asm
    SYMBOLIC)
set(CMAKE_C_FLAGS_INIT "-isystem ${kernel_headers}")
