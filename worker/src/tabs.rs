//! Several tabs, one owner: who does the work, and how the others get at it.
//!
//! Sans-IO like the session: `handle` one input, then `poll` until nothing comes. The shell holds
//! locks and channels; the rules are here. Reading order: `pending` (what a page has under way),
//! `hub` (the owner's side: whose request is whose), `tab` (the machine of one tab).
//!
//! Facts that the rules rest on: a lock has one holder and falls free when its worker ends, a
//! channel keeps the order of one sender, and between channels there is no order.

mod hub;
mod pending;
mod tab;

pub use hub::{CLIENTS_MAX, Hub, HubOutput};
pub use pending::{Left, Pending};
pub use tab::{HELD_MAX, Tab, TabInput, TabOutput};
