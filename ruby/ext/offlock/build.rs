//! Tells the compiler the version of Ruby that the extension is built for, as `cfg(ruby_gte_3_4)` and the
//! like.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    rb_sys_env::activate()?;
    // See `misuse/`.
    println!("cargo::rustc-check-cfg=cfg(misuse)");
    Ok(())
}
