//! A table of connections that are told apart even when one takes another's place. No I/O.

/// Names an entry: its place, and how many had that place before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    index: u32,
    generation: u32,
}

/// Generations start again after so many: tokens as numbers stay below 2^63.
const GENERATION_MASK: u32 = 0x7fff_ffff;

impl Token {
    /// As a number below 2^63, for the poller.
    pub fn number(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// Back from the number.
    pub fn from_number(number: u64) -> Self {
        Token { index: number as u32, generation: (number >> 32) as u32 }
    }
}

/// Entries by token. Places are used again; the table is as large as it ever had to be.
pub struct Table<T> {
    places: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Table<T> {
    /// Adds an entry.
    pub fn insert(&mut self, entry: T) -> Token {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            self.places.len() as u32 - 1
        });
        let (generation, place) = &mut self.places[index as usize];
        *place = Some(entry);
        Token { index, generation: *generation }
    }

    /// The entry, unless it was removed.
    pub fn get(&mut self, token: Token) -> Option<&mut T> {
        let (generation, place) = self.places.get_mut(token.index as usize)?;
        if *generation == token.generation { place.as_mut() } else { None }
    }

    /// Takes an entry out.
    pub fn remove(&mut self, token: Token) -> Option<T> {
        self.get(token)?;
        let (generation, place) = &mut self.places[token.index as usize];
        *generation = (*generation + 1) & GENERATION_MASK;
        self.free.push(token.index);
        place.take()
    }

    /// Takes out all entries for which `is_over` says so.
    pub fn extract(&mut self, mut is_over: impl FnMut(&mut T) -> bool) -> usize {
        let mut count = 0;
        for index in 0..self.places.len() as u32 {
            let (generation, place) = &mut self.places[index as usize];
            let token = Token { index, generation: *generation };
            if place.as_mut().is_some_and(&mut is_over) {
                self.remove(token);
                count += 1;
            }
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_token_does_not_lead_to_the_next_entry_in_its_place() {
        let mut table = Table::default();
        let [one, two] = ["one", "two"].map(|entry| table.insert(entry));
        assert_eq!((table.remove(one), table.remove(one)), (Some("one"), None));
        let three = table.insert("three");
        assert_eq!((three.index, table.get(one)), (one.index, None));
        assert_eq!((table.get(two).copied(), table.get(three).copied()), (Some("two"), Some("three")));
        assert_eq!(table.places.len(), 2);
    }

    #[test]
    fn tokens_survive_as_numbers_below_the_pollers_own() {
        for generation in [0, 1, GENERATION_MASK] {
            let token = Token { index: u32::MAX, generation };
            assert_eq!(Token::from_number(token.number()), token);
            assert!(token.number() < 1 << 63);
        }
        let mut table: Table<()> = Table::default();
        assert_eq!(table.get(Token::from_number(u64::MAX)), None);
    }

    #[test]
    fn generations_start_again() {
        let mut table = Table { places: vec![(GENERATION_MASK, None)], free: vec![0] };
        let last = table.insert(());
        table.remove(last);
        assert_eq!(table.insert(()).generation, 0);
    }

    #[test]
    fn what_is_over_is_taken_out() {
        let mut table = Table::default();
        let tokens: Vec<_> = (0..10).map(|number| table.insert(number)).collect();
        assert_eq!(table.extract(|number| *number % 3 == 0), 4);
        let left: Vec<_> = tokens.iter().filter_map(|token| table.get(*token).copied()).collect();
        assert_eq!(left, [1, 2, 4, 5, 7, 8]);
    }
}
