/*
 * A program's own clock in the place of the kernel's. The kernel maps a small
 * shared object into each process, whose functions read the clock, and tells
 * libc where it lies (getauxval(AT_SYSINFO_EHDR), vdso(7)). What reads the
 * clock by that function, as hakmem does, is not reached by a clock_gettime
 * that stands before libc's. A file that includes this one defines getauxval,
 * and so shows an object with the function `kernel_clock`, which it defines.
 */
#ifndef KERNEL_CLOCK_H
#define KERNEL_CLOCK_H

#include <elf.h>
#include <stdint.h>
#include <time.h>

int kernel_clock(clockid_t clock, struct timespec *now);

unsigned long __getauxval(unsigned long type); /* glibc's, by its other name */
unsigned long getauxval(unsigned long type);

static struct {
    Elf64_Ehdr head;
    Elf64_Phdr part;
    Elf64_Dyn dynamic[4];
    Elf64_Sym symbols[3];
    uint32_t hash[2 + 1 + 3]; /* no chain is followed */
    char names[64];
} kernel_object;

static uint64_t kernel_object_at(const void *place)
{
    return (uint64_t)((uintptr_t)place - (uintptr_t)&kernel_object);
}

unsigned long getauxval(unsigned long type)
{
    if (type != AT_SYSINFO_EHDR)
        return __getauxval(type);
    /* Its names on AArch64 and on x86-64. */
    static const char names[] = "\0__kernel_clock_gettime\0__vdso_clock_gettime";
    for (unsigned i = 0; i < sizeof names; i++)
        kernel_object.names[i] = names[i];
    kernel_object.head.e_phoff = kernel_object_at(&kernel_object.part);
    kernel_object.head.e_phnum = 1;
    kernel_object.part.p_type = PT_DYNAMIC;
    kernel_object.part.p_vaddr = kernel_object_at(kernel_object.dynamic);
    kernel_object.part.p_offset = kernel_object.part.p_vaddr;
    kernel_object.dynamic[0].d_tag = DT_SYMTAB;
    kernel_object.dynamic[0].d_un.d_ptr = kernel_object_at(kernel_object.symbols);
    kernel_object.dynamic[1].d_tag = DT_STRTAB;
    kernel_object.dynamic[1].d_un.d_ptr = kernel_object_at(kernel_object.names);
    kernel_object.dynamic[2].d_tag = DT_HASH;
    kernel_object.dynamic[2].d_un.d_ptr = kernel_object_at(kernel_object.hash);
    kernel_object.hash[1] = 3;
    kernel_object.symbols[1].st_name = 1;
    kernel_object.symbols[2].st_name = 1 + sizeof "__kernel_clock_gettime";
    for (unsigned i = 1; i < 3; i++) {
        kernel_object.symbols[i].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
        kernel_object.symbols[i].st_shndx = 1; /* it is defined */
        kernel_object.symbols[i].st_value = kernel_object_at((const void *)kernel_clock);
    }
    return (unsigned long)&kernel_object;
}

#endif
