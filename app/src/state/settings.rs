//! How answers are sampled, and how peers are reached. Values are checked where they are typed, so
//! a kept one is right.

use format::ModelId;
use p2p::IceServer;
use protocol::Sampling;

/// More tokens than this in one answer would be longer than any context we load.
pub const MAX_NEW_MAX: u32 = 8_192;
const TEMPERATURE_MAX: f32 = 2.0;

#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub temperature: f32,
    pub top_p: f32,
    pub max_new: u32,
    /// `None` takes a fresh seed for every answer.
    pub seed: Option<u64>,
    pub system: String,
    /// Keep what was computed of conversations in the store.
    pub keep: bool,
    /// Servers that help peers through routers, one a line; none by default.
    pub ice_servers: String,
    pub last_model: Option<ModelId>,
}

/// Why a typed value is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldError {
    NotANumber,
    NotWhole,
    Outside,
    NotAServer,
}

/// Models this small fall into loops without a mild penalty.
const REPETITION_PENALTY: f32 = 1.1;

impl Default for Settings {
    /// Temperature and top-p as the card of SmolLM2-135M-Instruct recommends them.
    fn default() -> Settings {
        Settings {
            temperature: 0.2,
            top_p: 0.9,
            max_new: 512,
            seed: None,
            system: String::new(),
            keep: false,
            ice_servers: String::new(),
            last_model: None,
        }
    }
}

impl FieldError {
    pub fn words(self) -> &'static str {
        match self {
            FieldError::NotANumber => "This is not a number.",
            FieldError::NotWhole => "This must be a whole number.",
            FieldError::Outside => "This is outside the range.",
            FieldError::NotAServer => {
                "Each line must be stun:HOST:PORT or turn:HOST:PORT,USER,PASSWORD."
            }
        }
    }
}

impl Settings {
    pub fn sampling(&self, seed: u64) -> Sampling {
        Sampling {
            seed,
            temperature: self.temperature,
            top_p: self.top_p,
            max_new: self.max_new,
            repetition_penalty: REPETITION_PENALTY,
            ..Sampling::GREEDY
        }
    }

    pub fn set_temperature(&mut self, text: &str) -> Result<(), FieldError> {
        let value = number(text)?;
        if !(0.0..=TEMPERATURE_MAX).contains(&value) {
            return Err(FieldError::Outside);
        }
        self.temperature = value;
        Ok(())
    }

    pub fn set_top_p(&mut self, text: &str) -> Result<(), FieldError> {
        let value = number(text)?;
        if value <= 0.0 || value > 1.0 {
            return Err(FieldError::Outside);
        }
        self.top_p = value;
        Ok(())
    }

    pub fn set_max_new(&mut self, text: &str) -> Result<(), FieldError> {
        let value: u32 = text.trim().parse().map_err(|_| FieldError::NotWhole)?;
        if !(1..=MAX_NEW_MAX).contains(&value) {
            return Err(FieldError::Outside);
        }
        self.max_new = value;
        Ok(())
    }

    /// Nothing typed means a fresh seed each time.
    pub fn set_seed(&mut self, text: &str) -> Result<(), FieldError> {
        self.seed = match text.trim() {
            "" => None,
            text => Some(text.parse().map_err(|_| FieldError::NotWhole)?),
        };
        Ok(())
    }

    pub fn set_ice_servers(&mut self, text: &str) -> Result<(), FieldError> {
        IceServer::parse_lines(text).map_err(|_| FieldError::NotAServer)?;
        self.ice_servers = text.trim().to_owned();
        Ok(())
    }

    /// True if every value is one that the fields would take.
    pub fn valid(&self) -> bool {
        let mut copy = self.clone();
        copy.set_temperature(&self.temperature.to_string()).is_ok()
            && copy.set_top_p(&self.top_p.to_string()).is_ok()
            && copy.set_max_new(&self.max_new.to_string()).is_ok()
            && copy.set_ice_servers(&self.ice_servers).is_ok()
    }
}

/// A comma is taken for a decimal point: half of the world's keyboards write it so.
fn number(text: &str) -> Result<f32, FieldError> {
    let value: f32 = text
        .trim()
        .replace(',', ".")
        .parse()
        .map_err(|_| FieldError::NotANumber)?;
    if value.is_finite() {
        Ok(value)
    } else {
        Err(FieldError::NotANumber)
    }
}
