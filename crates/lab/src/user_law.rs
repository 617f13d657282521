//! The law that this process loaded at run time, where one can be loaded.

/// A version of a law.
#[derive(Clone, Copy)]
pub struct UserLaw {
    /// Its name.
    pub name: &'static str,
    /// SHA-256 of its sources.
    pub sha256: &'static str,
}

/// The one that is loaded.
#[cfg(target_os = "linux")]
pub fn loaded() -> Option<UserLaw> {
    let law = narrows_laws::user::loaded()?;
    Some(UserLaw { name: law.name(), sha256: law.sha256() })
}

/// There is none.
#[cfg(not(target_os = "linux"))]
pub fn loaded() -> Option<UserLaw> {
    None
}
