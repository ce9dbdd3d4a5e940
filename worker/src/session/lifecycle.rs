//! The life of the one model that the engine holds, as a closed state machine.
//!
//! Diagnostics are an overlay: they may be asked for in every state and change none.

/// Where the model stands. Every failure before `Loaded` leads to `Unloaded`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Nothing is open, or only the files are.
    #[default]
    Created,
    /// The header region is read and its length is plausible.
    Parsed,
    /// The pieces with the header have the hashes that the root promises.
    Authenticated,
    /// The header describes a model of this format, and the tokenizer's hash is right.
    Validated,
    /// The memory plan fits.
    Planned,
    /// The engine holds the memory.
    Allocated,
    /// Every byte is there and checked: requests are legal.
    Loaded,
    /// A request's prompt is with the engine.
    Prefilled,
    /// Its positions are being committed.
    Stepping,
    /// Its first token is out.
    Generating,
    /// The request was stopped; committed positions stay.
    Cancelled,
    /// The request came to its end; committed positions stay.
    Reset,
    /// The memory is free again.
    Unloaded,
    /// The engine is lost: it trapped.
    Destroyed,
}

/// A step that the machine does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IllegalMove {
    pub from: State,
    pub to: State,
}

impl State {
    pub fn advance(&mut self, to: State) -> Result<(), IllegalMove> {
        if !self.leads_to(to) {
            return Err(IllegalMove { from: *self, to });
        }
        *self = to;
        Ok(())
    }

    /// A request may begin.
    pub fn is_idle(self) -> bool {
        matches!(self, State::Loaded | State::Cancelled | State::Reset)
    }

    /// A request is running.
    pub fn is_busy(self) -> bool {
        matches!(self, State::Prefilled | State::Stepping | State::Generating)
    }

    fn leads_to(self, to: State) -> bool {
        match (self, to) {
            (State::Destroyed, _) => false,
            (_, State::Destroyed) => true,
            (State::Unloaded, State::Created) => true,
            (State::Unloaded, _) => false,
            (_, State::Unloaded) => true,
            (State::Created, State::Parsed)
            | (State::Parsed, State::Authenticated)
            | (State::Authenticated, State::Validated)
            | (State::Validated, State::Planned)
            | (State::Planned, State::Allocated)
            | (State::Allocated, State::Loaded)
            | (State::Prefilled, State::Stepping)
            | (State::Stepping, State::Generating) => true,
            (from, State::Prefilled) => from.is_idle(),
            (from, State::Cancelled | State::Reset) => from.is_busy(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::State::*;
    use super::*;

    const ALL: [State; 14] = [
        Created,
        Parsed,
        Authenticated,
        Validated,
        Planned,
        Allocated,
        Loaded,
        Prefilled,
        Stepping,
        Generating,
        Cancelled,
        Reset,
        Unloaded,
        Destroyed,
    ];

    #[test]
    fn the_way_of_one_request() {
        let mut state = Created;
        for to in [
            Parsed,
            Authenticated,
            Validated,
            Planned,
            Allocated,
            Loaded,
            Prefilled,
            Stepping,
            Generating,
            Reset,
            Prefilled,
            Stepping,
            Cancelled,
            Unloaded,
            Created,
        ] {
            assert_eq!(state.advance(to), Ok(()), "{state:?} to {to:?}");
        }
    }

    /// Written out by hand from the table in the design: who may reach `Prefilled`, and that
    /// nothing leaves `Destroyed`.
    #[test]
    fn no_other_way() {
        for from in ALL {
            let may_begin = [Loaded, Cancelled, Reset].contains(&from);
            assert_eq!(from.leads_to(Prefilled), may_begin, "{from:?}");
            let may_end = [Prefilled, Stepping, Generating].contains(&from);
            assert_eq!(from.leads_to(Reset), may_end, "{from:?}");
            assert_eq!(from.leads_to(Loaded), from == Allocated, "{from:?}");
            assert!(!Destroyed.leads_to(from));
            assert_eq!(from.leads_to(Created), from == Unloaded, "{from:?}");
        }
        let mut state = Created;
        let refused = state.advance(Loaded);
        assert_eq!(
            refused,
            Err(IllegalMove {
                from: Created,
                to: Loaded
            })
        );
        assert_eq!(state, Created);
    }
}
