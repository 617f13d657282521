//! Changes that are undone unless all succeed.

/// Undoes steps, the last first, unless all succeeded.
#[derive(Default)]
pub struct Undo(Vec<Box<dyn FnOnce()>>);

impl Undo {
    /// Adds a step to undo.
    pub fn push(&mut self, step: impl FnOnce() + 'static) {
        self.0.push(Box::new(step));
    }

    /// All steps succeeded: undo nothing.
    pub fn forget(&mut self) {
        self.0.clear();
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        while let Some(step) = self.0.pop() {
            step();
        }
    }
}
