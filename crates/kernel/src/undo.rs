//! Changes that are taken back unless all of them went well.

/// Steps back, the last first, unless all went well.
#[derive(Default)]
pub struct Undo(Vec<Box<dyn FnOnce()>>);

impl Undo {
    /// One more step back.
    pub fn push(&mut self, step: impl FnOnce() + 'static) {
        self.0.push(Box::new(step));
    }

    /// All went well.
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
