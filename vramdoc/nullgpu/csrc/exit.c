/* A clean end of the process.
 *
 * CPython before 3.14 ends a thread that asks for the interpreter's lock while the interpreter shuts down with
 * pthread_exit. That unwinds the thread's stack; torch's autograd threads have C++ destructors there that must not
 * be unwound through, and the process aborts ("terminate called without an active exception"). On a GPU the thread
 * is done long before, because the program waits for results; here nothing waits, so a program that ends right
 * after backward() meets it. A thread that has used the null GPU therefore stops where it is, as CPython itself does
 * from 3.14 on, and goes with the process. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include "internal.h"

/* Since glibc 2.34 the linker would ask for a newer version of it. */
#ifdef __x86_64__
__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");
#endif

NULLGPU_API __attribute__((noreturn)) void pthread_exit(void *value)
{
    while (nullgpu_thread_used())
        pause();
    void (*next)(void *) = (void (*)(void *))dlsym(RTLD_NEXT, "pthread_exit");
    next(value);
    abort(); /* it does not return */
}
