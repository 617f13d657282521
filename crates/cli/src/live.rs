//! `--live`: what goes on, on the terminal.

mod comparison;
mod run;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratatui::Frame;

use crate::error::Error;
use crate::terminal::{Key, Screen};

pub use comparison::OfComparison;
pub use run::OfRun;

/// Time between two looks.
const LOOK: Duration = Duration::from_millis(100);

/// What is shown.
pub trait View: Sync {
    /// Is it shown at the end, too, until a key is pressed?
    const STAYS: bool;

    /// Draws it as it is now; `over`: it has come to its end.
    fn draw(&self, frame: &mut Frame, over: bool);
}

/// Shows `view` until what `run` does is done, and sets `stop` where the user interrupts it.
///
/// # Errors
/// Standard output is no terminal.
pub fn shown<T, V: View>(view: &V, stop: &AtomicBool, run: impl FnOnce() -> T) -> Result<T, Error> {
    /// The run is over, however it ended.
    struct Over<'a>(&'a AtomicBool, &'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
            if std::thread::panicking() {
                self.1.store(true, Ordering::Relaxed);
            }
        }
    }
    let mut screen = Screen::open()?;
    let over = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Which gives the terminal back where it cannot be drawn on.
        let shower = scope.spawn(move || {
            while look(&mut screen, view, over, stop)? {}
            Ok::<(), Error>(())
        });
        let result = {
            let _over = Over(over, stop);
            run()
        };
        // A terminal that went away takes no results with it.
        let _ = shower.join();
        Ok(result)
    })
}

/// Draws once and waits for a key; false: it is enough.
fn look<V: View>(
    screen: &mut Screen,
    view: &V,
    over: &AtomicBool,
    stop: &AtomicBool,
) -> Result<bool, Error> {
    let is_over = || over.load(Ordering::Relaxed);
    screen.draw(|frame| view.draw(frame, is_over()))?;
    let (key, over) = (screen.key(LOOK)?, is_over());
    if key == Some(Key::Interrupt) && !over {
        stop.store(true, Ordering::Relaxed);
    }
    Ok(!over || (V::STAYS && key.is_none() && !stop.load(Ordering::Relaxed)))
}

/// What a terminal of this size shows of a view.
#[cfg(test)]
fn lines(view: &impl View, (width, height): (u16, u16)) -> Vec<String> {
    let backend = ratatui::backend::TestBackend::new(width, height);
    let mut terminal = ratatui::Terminal::new(backend).unwrap();
    terminal.draw(|frame| view.draw(frame, false)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |row: u16| (0..width).map(|column| buffer[(column, row)].symbol()).collect();
    (0..height).map(line).collect()
}
