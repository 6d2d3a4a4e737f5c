/* The same as methods of Ruby. */
#include <ruby.h>
#include <ruby/thread.h>

#include "lock.c"

static VALUE hold_locked(VALUE self, VALUE nanoseconds) {
    struct times times = hold(NUM2LL(nanoseconds));
    return rb_ary_new_from_args(2, LL2NUM(times.begin), LL2NUM(times.end));
}

static void *rest_unlocked(void *time) {
    *(int64_t *)time = rest(*(int64_t *)time);
    return NULL;
}

static VALUE rest_off_lock(VALUE self, VALUE nanoseconds) {
    int64_t time = NUM2LL(nanoseconds);
    rb_thread_call_without_gvl(rest_unlocked, &time, NULL, NULL);
    return LL2NUM(time);
}

void Init_lock(void) {
    VALUE module = rb_define_module("CLock");
    rb_define_module_function(module, "hold", hold_locked, 1);
    rb_define_module_function(module, "rest", rest_off_lock, 1);
}
