//! Passes work to the fiber scheduler, which may run it on another thread while its other fibers run.
//!
//! `rb_nogvl` could do that, but Ruby keeps the operation's data on the stack of the waiting fiber: all of it
//! in 3.4, the place for its result in 4.0. When an exception ends the wait (`Timeout`, `Fiber#raise`, an
//! exception of the scheduler), a thread that runs the operation afterwards uses freed memory. So the
//! operation itself keeps the [`Job`], which is closed by then.

use std::sync::Arc;

use magnus::{Error, Ruby};
#[cfg(ruby_gte_3_4)]
use magnus::{Value, value::ReprValue};

use super::job::Job;

/// Passes the work to the scheduler of the current fiber, if that has one that accepts work.
#[cfg(ruby_gte_3_4)]
pub(super) fn submit(ruby: &Ruby, job: &Arc<Job>) -> Result<(), Error> {
    use magnus::rb_sys::FromRawValue;

    // SAFETY: the lock is held.
    let scheduler = unsafe { Value::from_raw(rb_sys::rb_fiber_scheduler_current()) };
    if scheduler.is_nil() || !scheduler.respond_to(WAIT, false)? {
        return Ok(());
    }
    submit_to(ruby, scheduler, Arc::clone(job))
}

/// Schedulers accept no work before Ruby 3.4.
#[cfg(ruby_lt_3_4)]
pub(super) fn submit(_ruby: &Ruby, _job: &Arc<Job>) -> Result<(), Error> {
    Ok(())
}

#[cfg(ruby_gte_3_4)]
const WAIT: &str = "blocking_operation_wait";

/// An operation is a proc.
#[cfg(ruby_eq_3_4)]
fn submit_to(ruby: &Ruby, scheduler: Value, job: Arc<Job>) -> Result<(), Error> {
    let work = ruby.proc_from_fn(move |_ruby, _arguments, _block| job.run_released());
    scheduler.funcall::<_, _, Value>(WAIT, (work,))?;
    Ok(())
}

/// Defines the class that passes work to schedulers.
#[cfg(ruby_lte_3_4)]
pub(super) fn define(_ruby: &Ruby, _offlock: magnus::RModule) -> Result<(), Error> {
    Ok(())
}

#[cfg(ruby_gt_3_4)]
pub(super) use operation::define;
#[cfg(ruby_gt_3_4)]
use operation::submit_to;

/// An operation is an object of Ruby's, which native code can also run.
#[cfg(ruby_gt_3_4)]
mod operation {
    use std::cell::UnsafeCell;
    use std::ffi::c_void;
    use std::ptr;

    use magnus::rb_sys::{AsRawValue, protect};
    use magnus::typed_data::Obj;
    use magnus::value::Opaque;
    use magnus::{Class, DataTypeFunctions, Module, RModule, TypedData, gc, method};
    use rb_sys::rb_fiber_scheduler_blocking_operation_state as Outcome;
    use rb_sys::{rb_fiber_scheduler_blocking_operation_wait, rb_intern, rb_ivar_set};

    use super::super::release::FLAGS;
    use super::{Arc, Error, Job, ReprValue, Ruby, Value, WAIT};

    /// Stands between Ruby and the scheduler: it receives the operation, and keeps alive the data that the
    /// operation uses.
    #[derive(TypedData)]
    #[magnus(class = "Offlock::Offer", free_immediately, mark)]
    struct Offer {
        scheduler: Opaque<Value>,
        job: Arc<Job>,
        /// Where Ruby stores the return value of the function, which is not used.
        outcome: UnsafeCell<Outcome>,
    }

    // SAFETY: the outcome is written by the one thread that runs the operation, and never read.
    unsafe impl Send for Offer {}

    impl DataTypeFunctions for Offer {
        fn mark(&self, marker: &gc::Marker) {
            marker.mark(self.scheduler);
        }
    }

    impl Offer {
        /// Called by Ruby with the new operation.
        fn blocking_operation_wait(ruby: &Ruby, this: Obj<Self>, operation: Value) -> Result<Value, Error> {
            // SAFETY: live objects; exceptions are caught here.
            protect(|| unsafe {
                rb_ivar_set(operation.as_raw(), rb_intern(c"offer".as_ptr()), this.as_raw())
            })?;
            ruby.get_inner(this.scheduler).funcall(WAIT, (operation,))
        }
    }

    /// Called by the scheduler's threads, which may never have held the lock.
    unsafe extern "C" fn run(job: *mut c_void) -> *mut c_void {
        // SAFETY: `submit` passed it, and the operation keeps it alive.
        unsafe { &*job.cast::<Job>() }.run();
        ptr::null_mut()
    }

    pub(in super::super) fn define(ruby: &Ruby, offlock: RModule) -> Result<(), Error> {
        let class = offlock.define_class("Offer", ruby.class_object())?;
        class.undef_default_alloc_func();
        class.define_method(WAIT, method!(Offer::blocking_operation_wait, 1))?;
        offlock.funcall::<_, _, Value>("private_constant", ("Offer",))?;
        Ok(())
    }

    pub(super) fn submit_to(ruby: &Ruby, scheduler: Value, job: Arc<Job>) -> Result<(), Error> {
        let outcome = UnsafeCell::new(Outcome { result: ptr::null_mut(), saved_errno: 0 });
        let offer = ruby.obj_wrap(Offer { scheduler: scheduler.into(), job, outcome });
        let this = Arc::as_ptr(&offer.job).cast_mut().cast();
        protect(|| {
            // SAFETY: the lock is held. The operation refers to the offer before the scheduler sees it, so
            // that the job and the outcome live as long as any thread can run the operation. Exceptions of
            // the scheduler are caught here.
            unsafe {
                rb_fiber_scheduler_blocking_operation_wait(
                    offer.as_raw(),
                    Some(run),
                    this,
                    Some(Job::unblock),
                    this,
                    FLAGS,
                    offer.outcome.get(),
                )
            }
        })?;
        Ok(())
    }
}
