//! A pool of values that come and go, found again by number.

/// Values by number; numbers that are free are used again, the last one first, as its memory is
/// still near. Unlike other slabs it gives the address of a value without looking at it, and keeps
/// nothing beside the values: whoever asks for a number must have got it and not given it back.
#[derive(Clone, Debug)]
pub(crate) struct Pool<T> {
    places: Vec<T>,
    free: Vec<u32>,
}

impl<T> Pool<T> {
    pub fn new() -> Self {
        Pool { places: Vec::new(), free: Vec::new() }
    }

    /// Puts a value in and returns its number.
    #[inline(always)]
    pub fn insert(&mut self, value: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.places[number as usize] = value;
            return number;
        }
        self.places.push(value);
        self.places.len() as u32 - 1
    }

    /// Frees a number that has a value.
    pub fn remove(&mut self, number: u32) {
        debug_assert!(self.places.len() > self.free.len(), "no value is left");
        self.free.push(number);
    }

    /// The value of a number.
    pub fn get(&self, number: u32) -> &T {
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
        assert_eq!((*pool.get(numbers[0]), *pool.get(numbers[2])), ("a", "c"));
        pool.remove(numbers[0]);
        pool.remove(numbers[2]);
        assert_eq!((pool.len(), *pool.get(numbers[1])), (1, "b"));
        assert_eq!([pool.insert("d"), pool.insert("e")], [numbers[2], numbers[0]]);
        assert_eq!((*pool.get(numbers[2]), *pool.get(numbers[0])), ("d", "e"));
    }
}
