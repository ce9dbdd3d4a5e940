//! What the database's refusals mean.

use std::error::Error;

use rexie::Transaction;
use wasm_bindgen::prelude::*;

use crate::{Operation, StoreError};

/// Why a transaction did not come to its end.
pub enum Refused {
    Database(rexie::Error),
    /// All its requests had succeeded: there is no room for what they stored.
    Aborted,
    Value(JsValue),
}

impl From<rexie::Error> for Refused {
    fn from(error: rexie::Error) -> Refused {
        Refused::Database(error)
    }
}

impl From<JsValue> for Refused {
    fn from(error: JsValue) -> Refused {
        Refused::Value(error)
    }
}

pub async fn end(transaction: Transaction) -> Result<(), Refused> {
    match transaction.done().await?.is_committed() {
        true => Ok(()),
        false => Err(Refused::Aborted),
    }
}

impl Refused {
    pub fn told(&self, operation: Operation) -> StoreError {
        match self {
            Refused::Database(error) => refusal(error, operation),
            Refused::Aborted => StoreError::Quota { needed: 0 },
            Refused::Value(error) => StoreError::Browser {
                operation,
                exception: exception(error),
            },
        }
    }
}

pub fn exception(error: &JsValue) -> String {
    let name = js_sys::Reflect::get(error, &"name".into());
    name.ok()
        .and_then(|name| name.as_string())
        .unwrap_or_default()
}

/// The crate keeps what the browser said only as a text that begins with the exception's name.
pub fn refusal(error: &rexie::Error, operation: Operation) -> StoreError {
    let words = error.source().map(ToString::to_string).unwrap_or_default();
    for name in [
        "QuotaExceededError",
        "SecurityError",
        "UnknownError",
        "InvalidStateError",
    ] {
        if words.contains(name) {
            return match name {
                "QuotaExceededError" => StoreError::Quota { needed: 0 },
                "SecurityError" => StoreError::Denied { operation },
                _ => StoreError::Browser {
                    operation,
                    exception: name.into(),
                },
            };
        }
    }
    let exception = words.chars().take(80).collect();
    StoreError::Browser {
        operation,
        exception,
    }
}
