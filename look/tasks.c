#include "tasks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grown.h"

static struct task *tasks;
static size_t count, room;

struct task *task_find(pid_t number)
{
    for (size_t i = 0; i < count; i++)
        if (tasks[i].number == number)
            return &tasks[i];
    return NULL;
}

/* Its process, and who made it, by the kernel's word. */
static void read_status(struct task *task)
{
    char path[48];
    char line[256];
    pid_t parent = 0;
    snprintf(path, sizeof path, "/proc/%d/status", task->number);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "Tgid:", 5) == 0)
            task->process = (pid_t)strtol(line + 5, NULL, 10);
        else if (strncmp(line, "PPid:", 5) == 0)
            parent = (pid_t)strtol(line + 5, NULL, 10);
    if (file != NULL)
        fclose(file);
    task->creator = task->process == task->number ? parent : task->process;
}

struct task *task_get(pid_t number)
{
    struct task *task = task_find(number);
    if (task != NULL)
        return task;
    struct task *more = grown(tasks, count, &room, sizeof *tasks);
    if (more == NULL)
        return NULL;
    tasks = more;
    task = &tasks[count++];
    *task = (struct task){.number = number, .process = number};
    read_status(task);
    return task;
}

static void drop(size_t i)
{
    free(tasks[i].registers);
    tasks[i] = tasks[--count];
}

void task_drop(pid_t number)
{
    struct task *task = task_find(number);
    if (task != NULL)
        drop((size_t)(task - tasks));
}

void tasks_drop(pid_t process, pid_t but)
{
    for (size_t i = count; i-- > 0;)
        if (tasks[i].process == process && tasks[i].number != but)
            drop(i);
}

struct task *task_after(const struct task *task, pid_t process)
{
    for (size_t i = task == NULL ? 0 : (size_t)(task - tasks) + 1; i < count; i++)
        if (process == 0 || tasks[i].process == process)
            return &tasks[i];
    return NULL;
}
