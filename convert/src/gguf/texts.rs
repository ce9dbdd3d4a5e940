//! A long list of short texts, stored as one run of bytes and the ends of each.

/// Texts of a GGUF array. An entry costs its bytes and four more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Texts {
    bytes: String,
    ends: Vec<u32>,
}

impl Texts {
    pub fn push(&mut self, text: &str) {
        self.bytes.push_str(text);
        self.ends.push(self.bytes.len() as u32);
    }

    /// Takes memory for the ends of so many more texts.
    pub fn reserve(&mut self, count: usize) {
        self.ends.reserve_exact(count);
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// All texts, one after the other.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.as_bytes()
    }

    pub fn get(&self, index: usize) -> &str {
        let start = match index {
            0 => 0,
            _ => self.ends[index - 1] as usize,
        };
        &self.bytes[start..self.ends[index] as usize]
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Gives back what growing took too much.
    pub fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_in_order_with_empty_ones() {
        let mut texts = Texts::default();
        ["a", "", "né", "x y"]
            .iter()
            .for_each(|text| texts.push(text));
        assert_eq!(texts.iter().collect::<Vec<_>>(), ["a", "", "né", "x y"]);
        assert_eq!(texts.as_bytes(), "anéx y".as_bytes());
    }
}
