#define _GNU_SOURCE
#include "fit.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "notes.h"

#define INTERPRETERS_MOST 4 /* of an interpreter, and so on: as the kernel has it */
#define HEADERS_MOST 64
#define DYNAMIC_MOST 64

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#error "which processor is this?"
#endif

#if defined(__GLIBC__)
#define MUSL_HERE false
#define OTHER_LIBC "it is a program for musl, and libhakmem.so is for glibc"
#else
#define MUSL_HERE true
#define OTHER_LIBC "it is a program for glibc, and libhakmem.so is for musl"
#endif

struct program {
    int file;
    Elf64_Phdr headers[HEADERS_MOST];
    unsigned count;
};

static const Elf64_Phdr *header(const struct program *p, unsigned type)
{
    for (unsigned i = 0; i < p->count; i++)
        if (p->headers[i].p_type == type)
            return &p->headers[i];
    return NULL;
}

static bool has_note(const struct program *p, const char *name)
{
    for (unsigned i = 0; i < p->count; i++) {
        unsigned char notes[NOTES_MOST];
        struct note note;
        size_t next = 0;
        const Elf64_Phdr *part = &p->headers[i];
        size_t most = part->p_filesz < sizeof notes ? part->p_filesz : sizeof notes;
        ssize_t length =
            part->p_type != PT_NOTE ? 0 : pread(p->file, notes, most, (off_t)part->p_offset);
        if (length > 0 && note_next(notes, (size_t)length, &next, name, &note))
            return true;
    }
    return false;
}

/* The loader, started by its own name with a program as its argument, preloads as ever. It has no
 * interpreter either, but a library's name, which no program has that is linked statically. */
static bool is_loader(const struct program *p)
{
    Elf64_Dyn entries[DYNAMIC_MOST];
    const Elf64_Phdr *dynamic = header(p, PT_DYNAMIC);
    if (dynamic == NULL)
        return false;
    size_t most = dynamic->p_filesz < sizeof entries ? dynamic->p_filesz : sizeof entries;
    ssize_t length = pread(p->file, entries, most, (off_t)dynamic->p_offset);
    for (ssize_t i = 0; i < length / (ssize_t)sizeof *entries; i++)
        if (entries[i].d_tag == DT_SONAME)
            return true;
    return false;
}

static bool loader_is_musl(const struct program *p, const Elf64_Phdr *loader)
{
    char path[PATH_MAX] = "";
    size_t most = loader->p_filesz < sizeof path ? loader->p_filesz : sizeof path;
    return pread(p->file, path, most - (most > 0), (off_t)loader->p_offset) > 0 &&
           strstr(path, "ld-musl") != NULL;
}

/* The loader ignores LD_PRELOAD in a program that the kernel gives more rights than its caller has.
 */
static bool is_privileged(int file)
{
    struct stat about;
    struct statvfs system;
    if (fstat(file, &about) != 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ||
        (fstatvfs(file, &system) == 0 && (system.f_flag & ST_NOSUID) != 0))
        return false;
    return ((about.st_mode & S_ISUID) != 0 && about.st_uid != getuid()) ||
           ((about.st_mode & S_ISGID) != 0 && about.st_gid != getgid()) ||
           (geteuid() != 0 && fgetxattr(file, "security.capability", NULL, 0) > 0);
}

static enum fit fit_of_elf(struct program *p, const Elf64_Ehdr *elf, const char **why)
{
    *why = "it is a program for another processor, or of 32 bits";
    if (elf->e_machine != MACHINE || elf->e_ident[EI_CLASS] != ELFCLASS64)
        return FITS_NOT;
    p->count = elf->e_phnum < HEADERS_MOST ? elf->e_phnum : HEADERS_MOST;
    ssize_t bytes = (ssize_t)(p->count * sizeof *p->headers);
    if (elf->e_phentsize != sizeof *p->headers ||
        pread(p->file, p->headers, (size_t)bytes, (off_t)elf->e_phoff) != bytes)
        return FITS;
    const Elf64_Phdr *loader = header(p, PT_INTERP);
    *why = "it runs with raised privileges (setuid, setgid or capabilities), so the loader ignores "
           "LD_PRELOAD";
    if (loader != NULL && is_privileged(p->file))
        return FITS_PRIVILEGED;
    *why = OTHER_LIBC;
    if (loader != NULL)
        return loader_is_musl(p, loader) == MUSL_HERE ? FITS : FITS_OTHER_LIBC;
    if (is_loader(p))
        return FITS;
    *why = "it is a Go program without cgo, which takes its memory from the kernel";
    if (has_note(p, "Go"))
        return FITS_NOT;
    *why = "it is linked statically, so no loader can replace its malloc; link it dynamically, "
           "or with libhakmem.a";
    return has_note(p, "hakmem") ? FITS : FITS_NOT;
}

static enum fit fit_of_file(const char *path, unsigned interpreters, const char **why);

/* The interpreter is named in the first line, which ends with a zero. */
static enum fit fit_of_script(char *line, unsigned interpreters, const char **why)
{
    line += strspn(line, " \t");
    line[strcspn(line, " \t\n")] = 0;
    return interpreters > 0 ? fit_of_file(line, interpreters - 1, why) : FITS;
}

static enum fit fit_of_file(const char *path, unsigned interpreters, const char **why)
{
    union {
        char text[PATH_MAX + 1];
        Elf64_Ehdr elf;
    } begin = {.text = ""};
    struct program p = {.file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    enum fit fit = FITS;
    if (p.file < 0)
        return FITS;
    ssize_t length = read(p.file, begin.text, sizeof begin.text - 1);
    if (length > 2 && memcmp(begin.text, "#!", 2) == 0)
        fit = fit_of_script(begin.text + 2, interpreters, why);
    else if (length >= (ssize_t)sizeof begin.elf && memcmp(begin.text, ELFMAG, SELFMAG) == 0)
        fit = fit_of_elf(&p, &begin.elf, why);
    close(p.file);
    return fit;
}

/* As execvp looks for it; false where it is nowhere. */
static bool find(const char *program, char *path, size_t room)
{
    const char *folders = getenv("PATH");
    if (strchr(program, '/') != NULL)
        return (size_t)snprintf(path, room, "%s", program) < room;
    for (bool more = folders != NULL; more;) {
        size_t length = strcspn(folders, ":");
        struct stat about;
        const char *folder = length > 0 ? folders : ".";
        int used = snprintf(path, room, "%.*s/%s", length > 0 ? (int)length : 1, folder, program);
        if ((size_t)used < room && access(path, X_OK) == 0 && stat(path, &about) == 0 &&
            S_ISREG(about.st_mode))
            return true;
        more = folders[length] != 0;
        folders += length + 1;
    }
    return false;
}

enum fit fit_of(const char *program, const char **why)
{
    char path[PATH_MAX];
    return find(program, path, sizeof path) ? fit_of_file(path, INTERPRETERS_MOST, why) : FITS;
}
