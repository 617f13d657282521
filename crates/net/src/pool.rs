//! A pool of values that come and go, found again by number.

/// Values by number; numbers that are free are used again, the last one first, as its memory is
/// still near. Unlike other slabs it gives the address of a value without looking at it.
#[derive(Clone, Debug)]
pub(crate) struct Pool<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Pool<T> {
    pub fn new() -> Self {
        Pool { places: Vec::new(), free: Vec::new() }
    }

    /// Puts a value in and returns its number.
    pub fn insert(&mut self, value: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.places[number as usize] = Some(value);
            return number;
        }
        self.places.push(Some(value));
        self.places.len() as u32 - 1
    }

    /// Frees a number.
    ///
    /// # Panics
    /// If it has no value.
    pub fn remove(&mut self, number: u32) {
        let value = &mut self.places[number as usize];
        assert!(value.is_some(), "a value of this number");
        *value = None;
        self.free.push(number);
    }

    /// The value of a number, if there is one.
    pub fn get(&self, number: u32) -> Option<&T> {
        self.place(number).as_ref()
    }

    /// Where the value of a number lies.
    pub fn place(&self, number: u32) -> &Option<T> {
        &self.places[number as usize]
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again_the_last_first() {
        let mut pool = Pool::new();
        let numbers = ["a", "b", "c"].map(|value| pool.insert(value));
        assert_eq!((pool.get(numbers[0]), pool.get(numbers[2])), (Some(&"a"), Some(&"c")));
        pool.remove(numbers[0]);
        pool.remove(numbers[2]);
        assert_eq!((pool.len(), pool.get(numbers[0])), (1, None));
        assert_eq!([pool.insert("d"), pool.insert("e")], [numbers[2], numbers[0]]);
        assert_eq!((pool.get(numbers[2]), pool.get(numbers[1])), (Some(&"d"), Some(&"b")));
    }
}
